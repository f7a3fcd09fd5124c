#include "app/commands/upload_model.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "app/commands/ask_server.hpp"
#include "app/commands/cli.hpp"
#include "comfy/members.hpp"
#include "models/hash_file.hpp"
#include "models/wish.hpp"

namespace comfyd::app {
namespace {

constexpr std::uint64_t kPartBytes = 16ULL << 20;  // that are held in memory

}  // namespace

UploadedModel upload_model(
    const std::string& url, const std::string& key, const std::string& file
) {
    std::error_code error;
    const std::uint64_t total = std::filesystem::file_size(file, error);
    const std::string sha256 =
        error ? std::string() : models::hash_file(file, [] { return false; });
    std::ifstream in(file, std::ios::binary);
    if (sha256.empty() || total == 0 || !in) {
        std::fprintf(stderr, "comfyd: '%s' cannot be read, or is empty\n", file.c_str());
        return {{}, kExitUsage};
    }
    Question question{url, key, "/v2/model-contents/" + sha256};
    question.may_miss = true;
    const Asked found = ask_server(question);
    if (found.exit_code != kExitOk) {
        return {{}, found.exit_code};
    }
    const bool is_begun = found.answer && comfy::text_of(*found.answer, "state") == "partial";
    const bool is_there = found.answer && !is_begun;
    const auto begun =
        is_begun ? static_cast<std::uint64_t>(comfy::integer_of(*found.answer, "bytes")) : 0;
    std::uint64_t at = is_there ? total : begun < total ? begun : 0;
    in.seekg(static_cast<std::streamoff>(at));
    while (at < total) {
        const std::uint64_t length = std::min(kPartBytes, total - at);
        Question part{url, key, "/v2/model-contents/" + sha256, "PUT"};
        part.path += models::is_safetensors(file) ? "" : "?format=other";
        part.body.resize(length);
        part.type = "application/octet-stream";
        part.range = "bytes " + std::to_string(at) + "-" + std::to_string(at + length - 1) + "/" +
                     std::to_string(total);
        if (!in.read(part.body.data(), static_cast<std::streamsize>(length))) {
            std::fprintf(stderr, "comfyd: '%s' cannot be read to its end\n", file.c_str());
            return {{}, kExitUsage};
        }
        const Asked sent = ask_server(std::move(part));
        if (!sent.answer) {
            return {{}, sent.exit_code};
        }
        at += length;
    }
    return {sha256, kExitOk};
}

}  // namespace comfyd::app
