// What a client asks of the files that a job makes, in its request's "output_config": which forms
// of them are to be made beside the files as they are (docs/outputs.md). Plain values.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/json.hpp"

namespace comfyd::jobs {

enum class PictureFormat { png, jpeg, webp, avif };
std::string_view to_string(PictureFormat format);

struct OutputWishes {
    std::optional<PictureFormat> format;  // of pictures; nullopt: as they are
    std::optional<int> quality;           // 1 to 100; nullopt: what suits the format
    bool lossless = false;
    std::optional<int> side_max;  // pixels of the longest side; none is ever enlarged
    std::optional<int> width_max;
    std::optional<int> height_max;
    bool strip_metadata = false;  // the workflow that is written into the file, and what else is
    std::vector<int> thumbnails;  // longest sides, each once, the largest first
    bool poster = false;          // a picture of a video or an animation

    bool resizes() const { return side_max || width_max || height_max; }
    // Something other than the files as they are.
    bool any() const {
        return format || resizes() || strip_metadata || !thumbnails.empty() || poster;
    }

    // The members of "output_config" that are about this; others are left to others.
    // Code::invalid_argument, with the field.
    static Result<OutputWishes> from_json(const json::object& output_config);
    // Of a job; what was accepted once can be read.
    static OutputWishes of(const json::object& dialect_data);
    json::object to_json() const;  // the same for equal wishes; empty: none
};

}  // namespace comfyd::jobs
