#include "media/make.hpp"

#include <algorithm>
#include <cstdint>
#include <new>
#include <optional>
#include <utility>

#include "engine/pictures/reader.hpp"
#include "media/headers.hpp"
#include "media/metadata.hpp"
#include "media/moving.hpp"
#include "media/placeholder.hpp"
#include "media/scale.hpp"
#include "media/turn.hpp"
#include "media/writing.hpp"

namespace comfyd::media {
namespace {

namespace pictures = engine::pictures;
using jobs::OutputWishes;
using jobs::PictureFormat;
using pictures::Failure;

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
                {kind, size, late ? "it takes longer than a file may" : made.error().text}
            );
        } else if (*made) {
            (*made)->kind = kind;
            (*made)->size = size;
            bytes_ += (*made)->bytes.size();
            answer_.variants.push_back(std::move(**made));
        }
    }

    Step inspect() {
        auto facts = inspect_moving(file_, answer_.facts);
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

    // The pixels, decoded once. Those of a video are its poster's, of an animation its first
    // picture's.
    Outcome<const Bitmap*> decoded() {
        if (failure_) {
            return tl::unexpected(*failure_);
        }
        if (!picture_) {
            auto bitmap = decode();
            if (!bitmap) {
                failure_ = bitmap.error();
                return tl::unexpected(bitmap.error());
            }
            picture_ = std::move(*bitmap);
        }
        return &*picture_;
    }

    Outcome<Bitmap> decode() {
        const Facts& facts = answer_.facts;
        const bool is_avif = facts.format == "avif";
        if (is_avif && facts.has_alpha.value_or(false)) {
            return tl::unexpected(Failure{"it is an AVIF with alpha, which is not read here"});
        }
        if (facts.kind == Kind::video || is_avif) {
            return poster_of(file_, facts, kPixelsMax, stopped_);
        }
        auto picture = pictures::decode_rgba(file_, kPixelsMax, stopped_);
        if (picture && facts.format == "jpeg") {
            return turn(std::move(*picture), jpeg_orientation(file_));
        }
        return picture;
    }

    Step convert() {
        Writing how = writing_of(file_, answer_.facts, wishes_);
        if (answer_.facts.kind == Kind::animated_image) {
            how.is_hurried = true;
            static_cast<void>(decoded());  // the placeholder is that of the first picture
            return described(write_animation(file_, answer_.facts, wishes_, how, stopped_));
        }
        const auto picture = decoded();
        if (!picture) {
            return tl::unexpected(picture.error());
        }
        const Size size = fit(Size{(*picture)->width, (*picture)->height}, wishes_);
        return described(write_picture(scale(**picture, size, stopped_), how, stopped_));
    }

    Step show() {
        const auto picture = decoded();
        if (!picture) {
            return tl::unexpected(picture.error());
        }
        return described(write_picture(**picture, {}, stopped_));
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
                how.is_hurried = true;
                return described(write_picture(*larger, how, stopped_));
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

    static Step described(Outcome<std::string> bytes) {
        if (!bytes) {
            return tl::unexpected(bytes.error());
        }
        Variant variant;
        variant.facts = read_headers(*bytes, "", "");
        variant.bytes = std::move(*bytes);
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
    wishes.poster = wishes.poster && (is_video || facts.kind == Kind::animated_image);
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
