// What is known of a model file by what is in it, whoever has read that: as an agent tells it, and
// as it is kept. Plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/json.hpp"

namespace comfyd::models {

struct FileFacts {
    // As in models/family.hpp; empty: not known.
    std::string kind{};
    std::string family{};
    std::string dtype{};                   // that most bytes have: "F16"
    std::optional<std::uint64_t> bytes{};  // of the whole file
    std::string sha256{};                  // empty: nobody has read all of it

    // Of its head nothing is known.
    bool has_head() const { return !kind.empty() || !dtype.empty(); }
    // {"kind","family","dtype","bytes"}, as far as they are known.
    json::object to_json() const;
    // Those, "size" for the bytes, and "sha256". What is not as it should be is not known.
    static FileFacts from_json(const json::object& from);

    bool operator==(const FileFacts&) const = default;
};

}  // namespace comfyd::models
