// `comfyd picture`: a picture in another form, from standard input to standard output. A process of
// its own for each, because what strangers send as pictures may break, fill or hold up whoever
// decodes it (app/pictures.hpp). For `comfyd serve` alone.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace CLI {
class App;
}

namespace comfyd::app {

struct PictureFlags {
    int supervisor = 0;         // pid of the `comfyd serve` that wants it
    std::string channel;        // "rgba", "rgb", "alpha"; empty: replace the alpha
    std::string format;         // "webp", "jpeg", "png"
    int quality = 90;           // not of PNG
    int longest_side = 0;       // 0: any
    std::uint64_t mask_at = 0;  // where in the input the mask begins
};

// What it writes: one of these and then the picture, or what is wrong with it.
inline constexpr std::string_view kPictureMade = "made\n";
inline constexpr std::string_view kPictureRefused = "refused\n";

void add_picture_flags(CLI::App& command, PictureFlags& flags);
int run_picture(const PictureFlags& flags);

}  // namespace comfyd::app
