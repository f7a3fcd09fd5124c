// Takes files into the store that a request names by where they can be had: "http(s)://…",
// "data:<type>;base64,…", "asset:<id>" or "blake3:<hash>".
//
// Runs on the executor that is handed in, a few downloads at a time. Bytes go to the store as they
// arrive; what a file is, its bytes say. Each connection and each redirect is judged anew: by
// HostJudge for the name, by net::Client for the address that is connected to. Equal bytes are
// stored once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assets/store.hpp"
#include "base/error.hpp"
#include "base/task.hpp"
#include "base/time.hpp"

namespace comfyd::assets {

struct IntakeLimits {
    std::uint64_t bytes_max = 256ULL * 1024 * 1024;  // of all files of one request together
    Millis timeout{60'000};                          // for all of them
    std::size_t files_max = 64;
    std::size_t parallel_max = 4;
    std::string ca_file{};  // PEM, in addition to the system's authorities
};

inline constexpr int kRedirectsMax = 5;

// Which addresses a host may have.
enum class HostRule { refused, public_only, any };
// `host` in lower case, without the dot that may end it; IPv6 without brackets.
using HostJudge = std::function<HostRule(const std::string& host)>;

enum class MediaKind { image, audio, video, any };

struct Wanted {
    std::string source;
    MediaKind kind = MediaKind::any;
};

struct IntakeRequest {
    std::string tenant;
    std::vector<Wanted> files;
    HostJudge judge_host;
    IntakeLimits limits{};
    std::optional<Time> expires_at{};  // of the assets that are made
};

// The content of "data:<type>;base64,…". Code::invalid_argument, Code::payload_too_large.
struct DataContent {
    std::string content_type;  // as it says; may be empty
    std::string bytes;
};
Result<DataContent> decode_data_url(std::string_view url, std::uint64_t bytes_max);

// One result for each file, in their order; the same source is taken once. Failures:
//   Code::invalid_argument        no usable source, or more files than allowed
//   Code::address_refused         a host or an address that may not be asked, also by a redirect
//   Code::connection_failed, Code::request_timeout, Code::protocol_error, Code::upstream_error
//                                 the address gives no file
//   Code::unsupported_media_type  the bytes are no such medium
//   Code::payload_too_large       more bytes than allowed; no more than that are read
//   Code::missing_asset           the tenant has no such asset
//   Code::cancelled, and those of Store
Task<std::vector<Result<Asset>>> take_in(Executor executor, Store& store, IntakeRequest request);

}  // namespace comfyd::assets
