#include "media/make.hpp"

#include <algorithm>
#include <cstdint>
#include <new>
#include <optional>
#include <utility>

#include "engine/pictures/encode.hpp"
#include "engine/pictures/exif.hpp"
#include "engine/pictures/png.hpp"
#include "engine/pictures/reader.hpp"
#include "media/headers.hpp"
#include "media/metadata.hpp"
#include "media/moving.hpp"
#include "media/placeholder.hpp"
#include "media/scale.hpp"

namespace comfyd::media {
namespace {

namespace pictures = engine::pictures;
using jobs::OutputWishes;
using jobs::PictureFormat;

constexpr int kPngLevel = 4;
constexpr int kJpegQuality = 85;
constexpr int kWebpQuality = 80;
constexpr int kAvifQuality = 60;
constexpr int kThumbnailMethod = 2;  // of WebP: twice as fast as the usual 4, for 3 % more bytes
constexpr int kConvertedMethod = 4;
// Without loss "quality" is only how long the encoder looks for a smaller file.
constexpr int kLosslessEffort = 50;

struct Failure {
    std::string reason;
};
template <class T>
using Outcome = tl::expected<T, Failure>;

template <class T, class Source>
Outcome<T> from(tl::expected<T, Source> outcome) {
    if (!outcome) {
        return tl::unexpected(Failure{std::move(outcome.error().text)});
    }
    return std::move(*outcome);
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

std::vector<std::uint8_t> without_alpha(const std::vector<std::uint8_t>& rgba) {
    std::vector<std::uint8_t> rgb(rgba.size() / 4 * 3);
    for (std::size_t i = 0, to = 0; i + 3 < rgba.size(); i += 4, to += 3) {
        std::copy_n(
            rgba.begin() + static_cast<std::ptrdiff_t>(i),
            3,
            rgb.begin() + static_cast<std::ptrdiff_t>(to)
        );
    }
    return rgb;
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

// How a picture is written.
struct Writing {
    PictureFormat format = PictureFormat::webp;
    std::optional<int> quality{};
    bool lossless = false;
    int webp_method = kConvertedMethod;
    std::vector<engine::PngText> texts{};  // into a PNG
    std::string exif{};                    // into a WebP
};

Outcome<std::string> encode(
    Bitmap picture, const Writing& how, const std::function<bool()>& stopped
) {
    const bool has_alpha = !is_opaque(picture);
    const Size size{picture.width, picture.height};
    if (how.format == PictureFormat::webp) {
        pictures::WebpOptions options;
        options.lossless = how.lossless;
        options.quality = how.lossless ? kLosslessEffort : how.quality.value_or(kWebpQuality);
        options.method = how.webp_method;
        const pictures::Pixels pixels{picture.rgba.data(), size.width, size.height, 4};
        return from(pictures::encode_webp_animation(
            1, [&pixels](std::size_t) { return pixels; }, 0, options, how.exif, stopped
        ));
    }
    if (how.format == PictureFormat::jpeg) {
        if (has_alpha) {
            lay_on_white(picture.rgba);
        }
        return from(pictures::encode_jpeg(
            {picture.rgba.data(), size.width, size.height, 4}, how.quality.value_or(kJpegQuality)
        ));
    }
    if (!has_alpha) {
        picture.rgba = without_alpha(picture.rgba);
    }
    const std::size_t channels = has_alpha ? 4 : 3;
    if (how.format == PictureFormat::avif) {
        return from(pictures::encode_avif(
            {picture.rgba.data(), size.width, size.height, channels},
            {how.quality.value_or(kAvifQuality), how.lossless}
        ));
    }
    return from(engine::encode_png(
        engine::PngBytes{picture.rgba.data(), size.width, size.height, channels},
        kPngLevel,
        how.texts
    ));
}

// What the source has of a workflow, where the target has a place for it.
void keep_texts(std::string_view file, const Facts& facts, Writing& how) {
    if (facts.format == "png") {
        how.texts = engine::read_png_texts(file);
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

// Makes the variants of one file one after the other; each ends well or is noted as failed.
class Workshop {
public:
    Workshop(const Order& order, std::string_view file, const std::function<bool()>& stopped)
        : order_(order), file_(file), stopped_(stopped) {}

    Answer run() {
        answer_.facts = read_headers(file_, order_.name, order_.content_type);
        if (answer_.facts.is_moving()) {
            attempt("inspection", 0, [this] { return inspect(); });
        }
        wishes_ = wishes_for(answer_.facts, order_.wishes);
        if (wishes_.strip_metadata && !wishes_.format && !wishes_.resizes()) {
            attempt("stripped", 0, [this] { return strip(); });
        }
        const bool is_converted = wishes_.format || wishes_.resizes();
        if (is_converted) {
            attempt("converted", 0, [this] { return convert(); });
        }
        if (wishes_.poster) {
            attempt("poster", 0, [this] { return show(); });
        }
        make_thumbnails();
        if (picture_) {
            attempt("placeholder", 0, [this] { return note_placeholder(); });
        }
        return std::move(answer_);
    }

private:
    using Step = Outcome<std::optional<Variant>>;

    // A step that makes nothing has only looked.
    template <class Work>
    void attempt(const char* kind, int size, const Work& work) {
        Step made = tl::unexpected(Failure{"it takes longer than a file may"});
        if (!stopped_()) {
            try {
                made = work();
            } catch (const std::bad_alloc&) {
                made = tl::unexpected(Failure{"it needs more memory than a file may"});
            }
        }
        if (made && *made && (*made)->bytes.size() > kVariantsBytesMax - bytes_) {
            made = tl::unexpected(Failure{"it becomes larger than a variant may be"});
        }
        if (!made) {
            const bool late = stopped_();
            answer_.failed.push_back(
                {kind, size, late ? "it takes longer than a file may" : made.error().reason}
            );
        } else if (*made) {
            (*made)->kind = kind;
            (*made)->size = size;
            bytes_ += (*made)->bytes.size();
            answer_.variants.push_back(std::move(**made));
        }
    }

    Step inspect() {
        auto facts = from(inspect_moving(file_, answer_.facts));
        if (!facts) {
            return tl::unexpected(facts.error());
        }
        answer_.facts = std::move(*facts);
        return std::nullopt;
    }

    Step strip() {
        auto stripped = strip_metadata(file_);
        if (!stripped) {
            return tl::unexpected(Failure{"its data is damaged"});
        }
        return described(std::move(*stripped));
    }

    // The pixels, decoded once. Those of a video are its poster's.
    Outcome<const Bitmap*> decoded() {
        if (failure_) {
            return tl::unexpected(*failure_);
        }
        if (!picture_) {
            auto bitmap = from(
                answer_.facts.kind == Kind::video
                    ? poster_of(file_, answer_.facts, kPixelsMax, stopped_)
                    : pictures::decode_rgba(file_, kPixelsMax, stopped_)
            );
            if (!bitmap) {
                failure_ = bitmap.error();
                return tl::unexpected(bitmap.error());
            }
            picture_ = std::move(*bitmap);
        }
        return &*picture_;
    }

    Step convert() {
        if (answer_.facts.kind == Kind::animated_image) {
            return tl::unexpected(Failure{"it is an animation, and these are not converted"});
        }
        const auto picture = decoded();
        if (!picture) {
            return tl::unexpected(picture.error());
        }
        Writing how;
        how.format =
            wishes_.format.value_or(format_named(answer_.facts.format).value_or(PictureFormat::png)
            );
        how.quality = wishes_.quality;
        how.lossless = wishes_.lossless && how.format != PictureFormat::jpeg;
        if (!wishes_.strip_metadata) {
            keep_texts(file_, answer_.facts, how);
        }
        const Size size = fit(Size{(*picture)->width, (*picture)->height}, wishes_);
        return written(scale(**picture, size, stopped_), how);
    }

    Step show() {
        const auto picture = decoded();
        if (!picture) {
            return tl::unexpected(picture.error());
        }
        return written(**picture, {});
    }

    // Each from the next larger one, which is faster and looks the same.
    void make_thumbnails() {
        std::optional<Bitmap> larger;
        for (const int side : wishes_.thumbnails) {
            attempt("thumbnail", side, [&]() -> Step {
                const auto picture = decoded();
                if (!picture) {
                    return tl::unexpected(picture.error());
                }
                const Bitmap& source = larger ? *larger : **picture;
                const Size size =
                    fit(Size{source.width, source.height}, static_cast<std::size_t>(side));
                larger = scale(source, size, stopped_);
                Writing how;
                how.webp_method = kThumbnailMethod;
                return written(*larger, how);
            });
        }
    }

    Step note_placeholder() {
        const Size size = fit(Size{picture_->width, picture_->height}, kPlaceholderSide);
        const Bitmap small = scale(*picture_, size, stopped_);
        answer_.facts.blurhash = blurhash_of(small);
        answer_.facts.dominant_color = dominant_color_of(small);
        return std::nullopt;
    }

    Step written(Bitmap picture, const Writing& how) {
        auto bytes = encode(std::move(picture), how, stopped_);
        if (!bytes) {
            return tl::unexpected(bytes.error());
        }
        return described(std::move(*bytes));
    }

    static Step described(std::string bytes) {
        Variant variant;
        variant.facts = read_headers(bytes, "", "");
        variant.bytes = std::move(bytes);
        return variant;
    }

    const Order& order_;
    const std::string_view file_;
    const std::function<bool()>& stopped_;
    OutputWishes wishes_;
    Answer answer_;
    std::size_t bytes_ = 0;  // of the variants so far
    std::optional<Bitmap> picture_;
    std::optional<Failure> failure_;  // of decoding it
};

}  // namespace

json::object Order::to_json() const {
    return {{"name", name}, {"content_type", content_type}, {"wishes", wishes.to_json()}};
}

Result<Order> Order::from_json(const json::object& from) {
    Order order;
    auto name = json::find_string(from, "name");
    auto type = json::find_string(from, "content_type");
    const auto wishes = json::find_object(from, "wishes");
    if (!name || !type || !wishes) {
        return fail(Code::protocol_error, "an order that cannot be read");
    }
    order.name = name->value_or("");
    order.content_type = type->value_or("");
    if (*wishes != nullptr) {
        auto read = OutputWishes::from_json(**wishes);
        if (!read) {
            return fail(std::move(read.error()));
        }
        order.wishes = std::move(*read);
    }
    return order;
}

OutputWishes wishes_for(const Facts& facts, OutputWishes wishes) {
    const bool is_video = facts.kind == Kind::video;
    wishes.poster = wishes.poster && is_video;
    if (!facts.is_picture() && !is_video) {
        wishes.thumbnails.clear();
    }
    if (!facts.is_picture()) {
        wishes.format.reset();
        wishes.side_max = wishes.width_max = wishes.height_max = std::nullopt;
        wishes.strip_metadata = false;
        return wishes;
    }
    const bool has_size = facts.width && facts.height;
    const Size size{facts.width.value_or(0), facts.height.value_or(0)};
    if (has_size && fit(size, wishes) == size) {
        wishes.side_max = wishes.width_max = wishes.height_max = std::nullopt;
    }
    // It has the form that was asked for already.
    const bool is_same = wishes.format && jobs::to_string(*wishes.format) == facts.format;
    const bool keeps_quality = wishes.format == PictureFormat::png || !wishes.quality;
    if (is_same && keeps_quality && !wishes.resizes()) {
        wishes.format.reset();
    }
    // Into others nobody writes a workflow.
    const bool may_have_texts =
        facts.format == "png" || facts.format == "jpeg" || facts.format == "webp";
    if (!may_have_texts && !wishes.format && !wishes.resizes()) {
        wishes.strip_metadata = false;
    }
    return wishes;
}

Answer make(const Order& order, std::string_view file, const std::function<bool()>& stopped) {
    return Workshop(order, file, stopped).run();
}

std::string content_type_of(std::string_view format) {
    return "image/" + std::string(format);
}

}  // namespace comfyd::media
