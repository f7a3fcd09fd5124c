#include "app/pictures.hpp"

#include <unistd.h>

#include <utility>
#include <vector>

#include "app/child_environment.hpp"
#include "app/commands/picture_command.hpp"
#include "base/filter_process.hpp"
#include "base/log.hpp"

namespace comfyd::app {
namespace {

// The child gives up after ten seconds of its own.
const FilterLimits kLimits{Millis(20'000), 1ULL << 30};

Result<std::string> make(std::vector<std::string> arguments, std::string_view input) {
    arguments.insert(arguments.begin(), {"picture", "--supervisor", std::to_string(::getpid())});
    const ChildCommand command{
        "the process that reads a picture",
        "/proc/self/exe",
        std::move(arguments),
        child_environment()
    };
    auto output = run_filter(command, input, kLimits);
    if (!output && output.error().code != Code::worker_unavailable) {
        log::warning("a picture was not made", {{"error", output.error().message}});
        return fail(Code::invalid_argument, "the picture cannot be read");
    }
    if (!output) {
        return output;
    }
    if (output->starts_with(kPictureMade)) {
        output->erase(0, kPictureMade.size());
        return output;
    }
    const bool is_refused = output->starts_with(kPictureRefused);
    return fail(
        Code::invalid_argument,
        is_refused ? output->substr(kPictureRefused.size()) : "the picture cannot be read"
    );
}

using comfy::server::Channel;
using comfy::server::PictureFormat;

const char* name_of(Channel channel) {
    switch (channel) {
        case Channel::rgb:
            return "rgb";
        case Channel::alpha:
            return "alpha";
        case Channel::rgba:
            break;
    }
    return "rgba";
}

const char* name_of(PictureFormat format) {
    switch (format) {
        case PictureFormat::webp:
            return "webp";
        case PictureFormat::jpeg:
            return "jpeg";
        case PictureFormat::png:
            break;
    }
    return "png";
}

}  // namespace

Result<std::string> convert_picture(
    const std::string& picture, const comfy::server::PictureForm& form
) {
    return make(
        {"--channel",
         name_of(form.channel),
         "--format",
         name_of(form.format),
         "--quality",
         std::to_string(form.quality),
         "--longest-side",
         std::to_string(form.longest_side)},
        picture
    );
}

Result<std::string> replace_alpha(const std::string& picture, const std::string& mask) {
    return make({"--mask-at", std::to_string(picture.size())}, picture + mask);
}

}  // namespace comfyd::app
