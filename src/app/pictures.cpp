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
constexpr FilterLimits kLimits{Millis(20'000), 1ULL << 30};

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

const char* name_of(api::PictureRequest::Channel channel) {
    using Channel = api::PictureRequest::Channel;
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

}  // namespace

Result<std::string> convert_picture(const api::PictureRequest& request) {
    return make(
        {"--channel",
         name_of(request.channel),
         "--format",
         request.format,
         "--quality",
         std::to_string(request.quality)},
        request.bytes
    );
}

Result<std::string> replace_alpha(const std::string& picture, const std::string& mask) {
    return make({"--mask-at", std::to_string(picture.size())}, picture + mask);
}

}  // namespace comfyd::app
