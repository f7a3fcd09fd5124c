#include "app/pictures.hpp"

#include "standalone/pictures.hpp"

namespace comfyd::app {
namespace {

standalone::Channel channel_of(const api::PictureRequest& request) {
    using Channel = api::PictureRequest::Channel;
    switch (request.channel) {
        case Channel::rgb:
            return standalone::Channel::rgb;
        case Channel::alpha:
            return standalone::Channel::alpha;
        case Channel::rgba:
            break;
    }
    return standalone::Channel::rgba;
}

standalone::PictureFormat format_of(const api::PictureRequest& request) {
    if (request.format == "png") {
        return standalone::PictureFormat::png;
    }
    return request.format == "jpeg" ? standalone::PictureFormat::jpeg
                                    : standalone::PictureFormat::webp;
}

}  // namespace

Result<std::string> convert_picture(const api::PictureRequest& request) {
    return standalone::convert_picture(
        request.bytes, channel_of(request), format_of(request), request.quality
    );
}

Result<std::string> replace_alpha(const std::string& picture, const std::string& mask) {
    return standalone::replace_alpha(picture, mask);
}

}  // namespace comfyd::app
