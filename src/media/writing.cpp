#include "media/writing.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "engine/pictures/animation.hpp"
#include "engine/pictures/apng.hpp"
#include "engine/pictures/encode.hpp"
#include "engine/pictures/exif.hpp"
#include "media/make.hpp"
#include "media/metadata.hpp"
#include "media/scale.hpp"

namespace comfyd::media {
namespace {

namespace pictures = engine::pictures;
using jobs::PictureFormat;

constexpr int kPngLevel = 4;
constexpr int kJpegQuality = 85;
constexpr int kWebpQuality = 80;
constexpr int kAvifQuality = 60;
constexpr int kWebpMethod = 4;
constexpr int kHurriedWebpMethod = 2;  // half the time for 3 % more bytes
// Without loss "quality" is only how long the encoder looks for a smaller file.
constexpr int kLosslessEffort = 50;
// Of all pictures of an animation: as many as a helper has time for.
constexpr std::uint64_t kAnimationPixelsMax = 500'000'000;
constexpr int kApngDurationMax = 0xFFFF;

tl::unexpected<pictures::Failure> refuse(std::string text) {
    return tl::unexpected(pictures::Failure{std::move(text)});
}

std::optional<PictureFormat> format_named(std::string_view name) {
    for (const auto format :
         {PictureFormat::png, PictureFormat::jpeg, PictureFormat::webp, PictureFormat::avif}) {
        if (jobs::to_string(format) == name) {
            return format;
        }
    }
    return std::nullopt;
}

// Where a file is to stay as it is, but nobody writes its format here.
PictureFormat nearest_format(const Facts& facts) {
    const bool is_animated = facts.kind == Kind::animated_image;
    return format_named(facts.format)
        .value_or(is_animated ? PictureFormat::webp : PictureFormat::png);
}

bool is_opaque(const Bitmap& picture) {
    if (!picture.has_alpha) {
        return true;
    }
    for (std::size_t i = 3; i < picture.rgba.size(); i += 4) {
        if (picture.rgba[i] != 255) {
            return false;
        }
    }
    return true;
}

void lay_on_white(std::vector<std::uint8_t>& rgba) {
    for (std::size_t i = 0; i + 3 < rgba.size(); i += 4) {
        const unsigned alpha = rgba[i + 3];
        for (std::size_t c = i; c < i + 3; ++c) {
            rgba[c] =
                static_cast<std::uint8_t>((rgba[c] * alpha + 255 * (255 - alpha) + 127) / 255);
        }
    }
}

// RGBA to RGB.
void drop_alpha(std::vector<std::uint8_t>& pixels) {
    std::size_t to = 0;
    for (std::size_t from = 0; from + 3 < pixels.size(); from += 4, to += 3) {
        std::copy_n(
            pixels.begin() + static_cast<std::ptrdiff_t>(from),
            3,
            pixels.begin() + static_cast<std::ptrdiff_t>(to)
        );
    }
    pixels.resize(to);
}

pictures::WebpOptions webp_options(const Writing& how) {
    return {
        .lossless = how.lossless,
        .quality = how.lossless ? kLosslessEffort : how.quality.value_or(kWebpQuality),
        .method = how.is_hurried ? kHurriedWebpMethod : kWebpMethod
    };
}

pictures::AvifOptions avif_options(const Writing& how) {
    return {.quality = how.quality.value_or(kAvifQuality), .lossless = how.lossless};
}

Outcome<std::string> write_png(
    const pictures::Pixels& pixels, const std::vector<engine::PngText>& texts
) {
    auto file = engine::encode_png(
        engine::PngBytes{pixels.data, pixels.width, pixels.height, pixels.channels},
        kPngLevel,
        texts
    );
    if (!file) {
        return refuse(std::move(file.error().text));
    }
    return std::move(*file);
}

// What the source has of a workflow, where the target has a place for it.
void keep_texts(std::string_view file, const Facts& facts, Writing& how) {
    if (facts.format == "png") {
        how.texts = engine::read_png_texts(file);
        for (auto& [keyword, text] : animated_png_texts(file)) {
            how.texts.push_back({std::move(keyword), std::move(text)});
        }
        std::vector<std::pair<std::string, std::string>> texts;
        for (const engine::PngText& text : how.texts) {
            const bool goes_first = text.keyword == "prompt";  // in EXIF
            texts.emplace(goes_first ? texts.begin() : texts.end(), text.keyword, text.text);
        }
        how.exif = texts.empty() ? std::string() : pictures::make_exif(texts);
    } else if (facts.format == "webp") {
        how.exif = webp_exif(file);
    }
}

tl::unexpected<pictures::Failure> too_many_pixels() {
    return refuse(
        "its pictures have more than the " + std::to_string(kAnimationPixelsMax) +
        " pixels together that are converted of an animation"
    );
}

// The pictures of an animation, in the size and with the channels in which they are written.
class Pictures {
public:
    Pictures(
        std::unique_ptr<pictures::Animation> animation,
        const jobs::OutputWishes& wishes,
        const std::function<bool()>& stopped
    )
        : animation_(std::move(animation)), wishes_(wishes), stopped_(stopped) {}

    void leave_out_alpha() { has_alpha_ = false; }
    int loops() const { return animation_->loops(); }

    Outcome<std::optional<pictures::TimedPixels>> next() {
        auto shown = next_shown();
        if (!shown || !*shown) {
            return shown ? Outcome<std::optional<pictures::TimedPixels>>()
                         : refuse(shown.error().text);
        }
        now_ = std::move(**shown);
        Bitmap& picture = now_.picture;
        const Size size = fit(Size{picture.width, picture.height}, wishes_);
        if (size != Size{picture.width, picture.height}) {
            picture = scale(picture, size, stopped_);
        }
        if (!has_alpha_) {
            drop_alpha(picture.rgba);
        }
        return pictures::TimedPixels{
            {picture.rgba.data(), size.width, size.height, has_alpha_ ? std::size_t{4} : 3},
            now_.duration_ms
        };
    }

    // Looks at all of them, or until one is seen that is.
    Outcome<bool> is_any_transparent() {
        while (true) {
            auto shown = next_shown();
            if (!shown) {
                return tl::unexpected(shown.error());
            }
            if (!*shown || !(*shown)->picture.has_alpha) {
                return false;
            }
            if (!is_opaque((*shown)->picture)) {
                return true;
            }
        }
    }

private:
    Outcome<std::optional<pictures::Shown>> next_shown() {
        if (stopped_()) {
            return refuse("it was stopped");
        }
        auto shown = animation_->next();
        if (shown && *shown) {
            pixels_ += std::uint64_t{(*shown)->picture.width} * (*shown)->picture.height;
        }
        if (pixels_ > kAnimationPixelsMax) {
            return too_many_pixels();
        }
        return shown;
    }

    std::unique_ptr<pictures::Animation> animation_;
    const jobs::OutputWishes& wishes_;
    const std::function<bool()>& stopped_;
    bool has_alpha_ = true;
    pictures::Shown now_;
    std::uint64_t pixels_ = 0;  // so far
};

Outcome<Pictures> open_pictures(
    std::string_view file, const jobs::OutputWishes& wishes, const std::function<bool()>& stopped
) {
    auto animation = pictures::open_animation(file, kPixelsMax);
    if (!animation) {
        return tl::unexpected(animation.error());
    }
    return Pictures(std::move(*animation), wishes, stopped);
}

Outcome<std::string> write_apng(Pictures& from, const Writing& how) {
    std::vector<pictures::PngChunk> chunks;
    for (const engine::PngText& text : how.texts) {
        chunks.emplace_back("comf", text.keyword + '\0' + text.text);
    }
    const auto next = [&from]() -> Outcome<std::optional<pictures::ApngFrame>> {
        const auto frame = from.next();
        if (!frame || !*frame) {
            return frame ? Outcome<std::optional<pictures::ApngFrame>>()
                         : refuse(frame.error().text);
        }
        auto png = write_png((*frame)->pixels, {});
        if (!png) {
            return tl::unexpected(png.error());
        }
        return pictures::ApngFrame{
            std::move(*png), std::min((*frame)->duration_ms, kApngDurationMax)
        };
    };
    return pictures::assemble_apng(next, from.loops(), chunks);
}

}  // namespace

Writing writing_of(std::string_view file, const Facts& facts, const jobs::OutputWishes& wishes) {
    Writing how;
    how.format = wishes.format.value_or(nearest_format(facts));
    how.quality = wishes.quality;
    how.lossless = wishes.lossless && how.format != PictureFormat::jpeg;
    if (!wishes.strip_metadata) {
        keep_texts(file, facts, how);
    }
    return how;
}

Outcome<std::string> write_picture(
    Bitmap picture, const Writing& how, const std::function<bool()>& stopped
) {
    const bool has_alpha = !is_opaque(picture);
    const std::size_t width = picture.width;
    const std::size_t height = picture.height;
    if (how.format == PictureFormat::webp) {
        return pictures::encode_webp(
            {picture.rgba.data(), width, height, 4}, webp_options(how), stopped, how.exif
        );
    }
    if (how.format == PictureFormat::jpeg) {
        if (has_alpha) {
            lay_on_white(picture.rgba);
        }
        return pictures::encode_jpeg(
            {picture.rgba.data(), width, height, 4}, how.quality.value_or(kJpegQuality)
        );
    }
    if (!has_alpha) {
        drop_alpha(picture.rgba);
    }
    const std::size_t channels = has_alpha ? 4 : 3;
    if (how.format == PictureFormat::avif) {
        return pictures::encode_avif(
            {picture.rgba.data(), width, height, channels}, avif_options(how)
        );
    }
    return write_png({picture.rgba.data(), width, height, channels}, how.texts);
}

Outcome<std::string> write_animation(
    std::string_view file,
    const Facts& facts,
    const jobs::OutputWishes& wishes,
    const Writing& how,
    const std::function<bool()>& stopped
) {
    if (how.format == PictureFormat::jpeg) {
        return refuse("it is an animation, which JPEG cannot hold: ask for webp, avif or png");
    }
    const auto said = static_cast<double>(facts.frames.value_or(1)) * facts.width.value_or(1) *
                      facts.height.value_or(1);
    if (said > static_cast<double>(kAnimationPixelsMax)) {
        return too_many_pixels();
    }
    auto from = open_pictures(file, wishes, stopped);
    if (!from) {
        return tl::unexpected(from.error());
    }
    const auto next = [&from] { return from->next(); };
    if (how.format == PictureFormat::webp) {
        return pictures::encode_webp_animation(
            next, from->loops(), webp_options(how), how.exif, stopped
        );
    }
    // The others are to know first whether any picture has alpha.
    auto look = open_pictures(file, wishes, stopped);
    const auto is_transparent = look ? look->is_any_transparent() : refuse(look.error().text);
    if (!is_transparent) {
        return tl::unexpected(is_transparent.error());
    }
    if (!*is_transparent) {
        from->leave_out_alpha();
    }
    if (how.format == PictureFormat::avif) {
        return pictures::encode_avif_animation(next, avif_options(how), stopped);
    }
    return write_apng(*from, how);
}

}  // namespace comfyd::media
