// What is known of a file. Plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.hpp"

namespace comfyd::media {

enum class Kind { image, animated_image, video, audio, text, model_3d, other };
std::string_view to_string(Kind kind);

struct Facts {
    Kind kind = Kind::other;
    std::string format;  // "png", "mp4"; empty: not known
    std::optional<std::uint32_t> width;
    std::optional<std::uint32_t> height;
    std::optional<int> bit_depth;  // of a channel of a picture
    std::optional<bool> has_alpha;
    std::optional<std::uint64_t> frames;
    std::optional<double> duration_s;
    std::optional<double> fps;
    std::string codec;        // of the pictures of a video, or of a sound
    std::string audio_codec;  // of the sound of a video
    std::optional<int> sample_rate;
    std::optional<int> channels;
    std::optional<bool> has_workflow;  // ComfyUI's, or its prompt, is written in the file
    std::string blurhash;              // of a picture, or a picture of a video
    std::string dominant_color;        // "#rrggbb", likewise

    bool is_picture() const { return kind == Kind::image || kind == Kind::animated_image; }
    bool is_moving() const { return kind == Kind::video || kind == Kind::audio; }

    json::object to_json() const;
    // Leaves out what is of the wrong type.
    static Facts from_json(const json::object& from);
};

}  // namespace comfyd::media
