#include "app/commands/picture_command.hpp"

#include <cstdio>
#include <iostream>
#include <iterator>

#include "app/commands/cli.hpp"
#include "base/confinement.hpp"
#include "standalone/pictures.hpp"

namespace comfyd::app {
namespace {

constexpr std::uint64_t kMemoryBytesMax = 3ULL << 30;
constexpr std::uint64_t kCpuSecondsMax = 30;

standalone::Channel channel_of(const PictureFlags& flags) {
    if (flags.channel == "rgb") {
        return standalone::Channel::rgb;
    }
    return flags.channel == "alpha" ? standalone::Channel::alpha : standalone::Channel::rgba;
}

standalone::PictureFormat format_of(const PictureFlags& flags) {
    if (flags.format == "png") {
        return standalone::PictureFormat::png;
    }
    return flags.format == "jpeg" ? standalone::PictureFormat::jpeg
                                  : standalone::PictureFormat::webp;
}

Result<std::string> make_picture(const PictureFlags& flags, std::string_view input) {
    if (flags.channel.empty()) {
        const std::string_view picture = input.substr(0, flags.mask_at);
        return standalone::replace_alpha(picture, input.substr(picture.size()));
    }
    return standalone::convert_picture(
        input, {channel_of(flags), format_of(flags), flags.quality, flags.longest_side}
    );
}

}  // namespace

int run_picture(const PictureFlags& flags) {
    Confinement limits;
    limits.parent = flags.supervisor;
    limits.memory_bytes_max = kMemoryBytesMax;
    limits.cpu_seconds_max = kCpuSecondsMax;
    limits.reads_system = false;
    limits.only_computes = true;
    if (!confine(limits)) {
        return kExitUnavailable;
    }
    const std::string input(std::istreambuf_iterator<char>(std::cin), {});
    const auto made = make_picture(flags, input);
    const std::string_view first = made ? kPictureMade : kPictureRefused;
    const std::string& rest = made ? *made : made.error().message;
    std::fwrite(first.data(), 1, first.size(), stdout);
    std::fwrite(rest.data(), 1, rest.size(), stdout);
    return std::fflush(stdout) == 0 ? kExitOk : kExitUnavailable;
}

}  // namespace comfyd::app
