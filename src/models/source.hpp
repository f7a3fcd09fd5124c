// Where a model is had from, as it is written, and what the places say of it. Pure.
//
//   https://host/path                      any server; http where the operator allows the host
//   hf:OWNER/REPO[@REVISION]/PATH          Hugging Face; also the address of its page or file
//   civitai:VERSION                        Civitai; also https://civitai.com/api/download/models/…
//   s3://BUCKET/KEY                        a bucket of the gateway's stores
//   upload:SHA256                          a file that was uploaded to the gateway
//
// The last two are had by a link that the gateway gives for a while.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "net/http.hpp"

namespace comfyd::models {

struct Source {
    enum class Kind { url, hugging_face, civitai, bucket, upload };
    Kind kind = Kind::url;
    std::string url{};       // kind url
    std::string repo{};      // hugging_face: "owner/name", like the next two
    std::string revision{};  // percent-encoded, like the path
    std::string path{};
    std::string version{};  // civitai
    std::string bucket{};   // bucket, like the next one
    std::string key{};
    std::string sha256{};  // upload

    bool needs_link() const { return kind == Kind::bucket || kind == Kind::upload; }
};

// Where the places are: others than the usual ones where somebody has a mirror.
struct Endpoints {
    std::string hugging_face = "https://huggingface.co";
    std::string civitai = "https://civitai.com";
};

// Code::invalid_argument. Addresses of the usual places are read as theirs.
Result<Source> parse_source(std::string_view text);
// As a message may have it: without a query, which of a signed link is a secret.
std::string shown_source(std::string_view text);

// Where the bytes are, and what is known of them before one has come.
struct Target {
    std::string url;
    std::string sha256{};  // empty: not known
    std::optional<std::uint64_t> bytes{};
};

std::string hugging_face_url(const Endpoints& at, const Source& source);
// From the answer to a HEAD of that. `url`: that was asked. What is served is named by its commit,
// so that it cannot change between two requests.
Result<Target> read_hugging_face(
    const Endpoints& at, const Source& source, int status, const net::Headers& headers
);

std::string civitai_url(const Endpoints& at, const Source& source);
// From the body of the answer to a GET of that.
Result<Target> read_civitai(const Endpoints& at, const Source& source, std::string_view body);

}  // namespace comfyd::models
