// A model that shall be in ComfyUI's folders: where, under which name, and where it is had from. As
// operators write it (COMFYD_MODELS, a pool's `template.models`, POST /worker/v1/models). Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/json.hpp"

namespace comfyd::models {

struct ModelWish {
    std::string folder;    // of ComfyUI's `models`: "checkpoints"
    std::string name;      // in it: "sd15.safetensors", "sub/name.safetensors"
    std::string source;    // models/source.hpp
    std::string sha256{};  // in small hex; empty: whatever the source has
    std::optional<std::uint64_t> bytes{};
    bool required = true;  // ComfyUI does not start without it

    std::string path() const { return folder + "/" + name; }

    friend bool operator==(const ModelWish&, const ModelWish&) = default;
};

inline constexpr std::size_t kWishesMax = 1'000;

// {"folder","name","source","sha256"?,"bytes"?,"required"?}. Code::invalid_argument names what is
// wrong: a place outside of ComfyUI's folders, an ending that ComfyUI does not look at, a source
// that is none.
Result<ModelWish> read_wish(const json::object& from);
// A JSON list of them, none twice.
Result<std::vector<ModelWish>> read_wishes(std::string_view text);
json::object to_json(const ModelWish& wish);

// Files that run code when they are loaded, by their ending.
bool is_pickle(std::string_view name);
bool is_safetensors(std::string_view name);
bool is_sha256(std::string_view text);  // in small hex

}  // namespace comfyd::models
