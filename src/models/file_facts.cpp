#include "models/file_facts.hpp"

#include <algorithm>

#include "models/wish.hpp"

namespace comfyd::models {
namespace {

constexpr std::size_t kWordBytesMax = 32;

std::string word_in(const json::object& from, std::string_view key) {
    auto found = json::find_string(from, key).value_or(std::nullopt).value_or("");
    const bool is_word = found.size() <= kWordBytesMax &&
                         std::ranges::all_of(found, [](char c) { return c > ' ' && c < '\x7f'; });
    return is_word ? found : std::string();
}

}  // namespace

json::object FileFacts::to_json() const {
    json::object made;
    for (const auto& [key, value] :
         {std::pair{"kind", &kind}, std::pair{"family", &family}, std::pair{"dtype", &dtype}}) {
        if (!value->empty()) {
            made[key] = *value;
        }
    }
    if (bytes) {
        made["bytes"] = *bytes;
    }
    return made;
}

FileFacts FileFacts::from_json(const json::object& from) {
    FileFacts read{word_in(from, "kind"), word_in(from, "family"), word_in(from, "dtype"), {}, {}};
    for (const char* key : {"bytes", "size"}) {
        const auto bytes = json::find_int(from, key).value_or(std::nullopt);
        if (bytes && *bytes > 0) {
            read.bytes = static_cast<std::uint64_t>(*bytes);
        }
    }
    auto sha256 = json::find_string(from, "sha256").value_or(std::nullopt).value_or("");
    if (is_sha256(sha256)) {
        read.sha256 = std::move(sha256);
    }
    return read;
}

}  // namespace comfyd::models
