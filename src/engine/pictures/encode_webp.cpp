#include <webp/encode.h>
#include <webp/mux.h>

#include <memory>
#include <utility>

#include "engine/pictures/encode.hpp"
#include "engine/pictures/formats.hpp"

namespace comfyd::engine::pictures {
namespace {

struct Free {
    void operator()(WebPAnimEncoder* encoder) const { WebPAnimEncoderDelete(encoder); }
    void operator()(WebPMux* mux) const { WebPMuxDelete(mux); }
    void operator()(WebPPicture* picture) const {
        WebPPictureFree(picture);
        delete picture;
    }
};
using Picture = std::unique_ptr<WebPPicture, Free>;

// A WebPData that owns its bytes.
class Owned {
public:
    Owned() { WebPDataInit(&data_); }
    ~Owned() { WebPDataClear(&data_); }
    Owned(const Owned&) = delete;
    Owned& operator=(const Owned&) = delete;

    WebPData* get() { return &data_; }
    std::string take() const {
        return std::string(reinterpret_cast<const char*>(data_.bytes), data_.size);
    }

private:
    WebPData data_{};
};

// libwebp tells how far it is, and ends when it is answered 0.
int go_on(int /*percent*/, const WebPPicture* picture) {
    return (*static_cast<const std::function<bool()>*>(picture->user_data))() ? 0 : 1;
}

// `stopped` outlives the picture.
Outcome<Picture> import_pixels(const Pixels& pixels, const std::function<bool()>& stopped) {
    if (pixels.width == 0 || pixels.height == 0 || pixels.width > WEBP_MAX_DIMENSION ||
        pixels.height > WEBP_MAX_DIMENSION) {
        return refuse(
            "WebP pictures measure at most " + std::to_string(WEBP_MAX_DIMENSION) + " x " +
            std::to_string(WEBP_MAX_DIMENSION)
        );
    }
    Picture picture(new WebPPicture{});
    if (WebPPictureInit(picture.get()) == 0) {
        return refuse("this libwebp has another interface than the one it was built for");
    }
    picture->use_argb = 1;
    picture->progress_hook = &go_on;
    picture->user_data = const_cast<std::function<bool()>*>(&stopped);  // only called
    picture->width = static_cast<int>(pixels.width);
    picture->height = static_cast<int>(pixels.height);
    const int stride = static_cast<int>(pixels.width * pixels.channels);
    const int imported = pixels.channels == 4
                             ? WebPPictureImportRGBA(picture.get(), pixels.data, stride)
                             : WebPPictureImportRGB(picture.get(), pixels.data, stride);
    if (imported == 0) {
        return refuse("there is no memory for a WebP picture");
    }
    return picture;
}

Outcome<WebPConfig> configure(const WebpOptions& options) {
    WebPConfig config{};
    if (WebPConfigInit(&config) == 0) {
        return refuse("this libwebp has another interface than the one it was built for");
    }
    config.lossless = options.lossless ? 1 : 0;
    config.quality = static_cast<float>(options.quality);
    config.method = options.method;
    config.thread_level = 1;
    if (WebPValidateConfig(&config) == 0) {
        return refuse("WebP knows no such quality or method");
    }
    return config;
}

WebPData data_of(std::string_view bytes) {
    return {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()};
}

Outcome<std::string> with_exif(std::string file, std::string_view exif) {
    if (exif.empty()) {
        return file;
    }
    const WebPData data = data_of(file);
    const WebPData chunk = data_of(exif);
    const std::unique_ptr<WebPMux, Free> mux(WebPMuxCreate(&data, 0));
    Owned assembled;
    if (!mux || WebPMuxSetChunk(mux.get(), "EXIF", &chunk, 0) != WEBP_MUX_OK ||
        WebPMuxAssemble(mux.get(), assembled.get()) != WEBP_MUX_OK) {
        return refuse("the texts do not fit into a WebP file");
    }
    return assembled.take();
}

// Puts `first` and all that come behind it into the encoder.
Outcome<> add_frames(
    WebPAnimEncoder* encoder,
    TimedPixels first,
    const FrameStream& next,
    const WebpOptions& options,
    const std::function<bool()>& stopped
) {
    const auto config = configure(options);
    if (!config) {
        return tl::unexpected(config.error());
    }
    std::int64_t time_ms = 0;
    for (std::optional<TimedPixels> frame = first; frame;) {
        if (stopped()) {
            return refuse("it was stopped");
        }
        auto picture = import_pixels(frame->pixels, stopped);
        if (!picture) {
            return tl::unexpected(picture.error());
        }
        if (WebPAnimEncoderAdd(encoder, picture->get(), static_cast<int>(time_ms), &*config) == 0) {
            return refuse(WebPAnimEncoderGetError(encoder));
        }
        time_ms += frame->duration_ms;
        if (time_ms > 0x7FFFFFFF) {
            return refuse("the animation takes longer than WebP can say");
        }
        auto following = next();
        if (!following) {
            return tl::unexpected(following.error());
        }
        frame = *following;
    }
    if (WebPAnimEncoderAdd(encoder, nullptr, static_cast<int>(time_ms), nullptr) == 0) {
        return refuse(WebPAnimEncoderGetError(encoder));
    }
    return {};
}

}  // namespace

Outcome<std::string> encode_webp(
    const Pixels& pixels,
    const WebpOptions& options,
    const std::function<bool()>& stopped,
    std::string_view exif
) {
    auto picture = import_pixels(pixels, stopped);
    const auto config = configure(options);
    if (!picture || !config) {
        return tl::unexpected(picture ? config.error() : picture.error());
    }
    std::string file;
    (*picture)->custom_ptr = &file;
    (*picture)->writer = [](const std::uint8_t* data, std::size_t size, const WebPPicture* to) {
        static_cast<std::string*>(to->custom_ptr)
            ->append(reinterpret_cast<const char*>(data), size);
        return 1;
    };
    if (WebPEncode(&*config, picture->get()) == 0) {
        return refuse("WebP cannot hold it (error " + std::to_string((*picture)->error_code) + ")");
    }
    return with_exif(std::move(file), exif);
}

Outcome<std::string> encode_webp_animation(
    const FrameStream& next,
    int loops,
    const WebpOptions& options,
    std::string_view exif,
    const std::function<bool()>& stopped
) {
    WebPAnimEncoderOptions how{};
    const auto first = next();
    if (!first) {
        return tl::unexpected(first.error());
    }
    if (!*first || WebPAnimEncoderOptionsInit(&how) == 0) {
        return refuse("there is nothing to write");
    }
    how.kmin = options.lossless ? 9 : 3;
    how.kmax = options.lossless ? 17 : 5;
    how.anim_params.bgcolor = 0;
    how.anim_params.loop_count = loops;
    const Pixels& shape = (*first)->pixels;
    const std::unique_ptr<WebPAnimEncoder, Free> encoder(
        WebPAnimEncoderNew(static_cast<int>(shape.width), static_cast<int>(shape.height), &how)
    );
    if (!encoder) {
        return refuse("there is no memory for the encoder");
    }
    const auto added = add_frames(encoder.get(), **first, next, options, stopped);
    if (!added) {
        return tl::unexpected(added.error());
    }
    Owned assembled;
    if (WebPAnimEncoderAssemble(encoder.get(), assembled.get()) == 0) {
        return refuse(WebPAnimEncoderGetError(encoder.get()));
    }
    return with_exif(assembled.take(), exif);
}

}  // namespace comfyd::engine::pictures
