#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/nodes/image/image.hpp"
#include "engine/pixels/pictures.hpp"

namespace comfyd::engine::nodes {
namespace {

struct Seam {
    bool beside = false;        // or one above the other
    bool second_first = false;  // the second picture is on the left, or above
    std::size_t width = 0;
    std::array<float, 3> color{};
    bool gray = true;
};

Seam seam(const Call& call) {
    const std::string_view direction = call.text("direction");
    const std::string_view color = call.text("spacing_color");
    const auto spacing =
        static_cast<std::size_t>(std::max<std::int64_t>(0, call.place("spacing_width")));
    Seam out;
    out.beside = direction == "left" || direction == "right";
    out.second_first = direction == "left" || direction == "up";
    out.width = spacing + spacing % 2;
    out.gray = color == "white" || color == "black";
    if (color == "white") {
        out.color = {1, 1, 1};
    } else if (color != "black") {
        out.color[color == "red" ? 0 : color == "green" ? 1 : 2] = 1;
    }
    return out;
}

// The shorter batch goes on with its last picture.
Result<Image> with_batch(const Call& call, const Image& image, std::size_t batch) {
    ImageShape shape = image.shape();
    if (shape.batch >= batch) {
        return image;
    }
    const std::size_t last_picture = std::exchange(shape.batch, batch) - 1;
    auto out = call.new_image(shape);
    if (!out) {
        return fail(std::move(out.error()));
    }
    auto done =
        call.for_rows(shape.rows(), shape.row_floats(), [&](std::size_t first, std::size_t last) {
            for (std::size_t row = first; row < last; ++row) {
                const std::size_t picture = std::min(row / shape.height, last_picture);
                const float* from = image.row(picture * shape.height + row % shape.height);
                std::copy_n(from, shape.row_floats(), out->row(row));
            }
        });
    if (!done) {
        return fail(std::move(done.error()));
    }
    return std::move(*out).finish();
}

Result<Image> matched(const Call& call, const Image& first, const Image& second, bool beside) {
    const ImageShape& to = first.shape();
    const ImageShape& from = second.shape();
    const double aspect = static_cast<double>(from.width) / static_cast<double>(from.height);
    const auto width = static_cast<std::int64_t>(to.width);
    const auto height = static_cast<std::int64_t>(to.height);
    return beside ? scale(
                        call,
                        second,
                        python_int(static_cast<double>(height) * aspect),
                        height,
                        ResizeMethod::lanczos
                    )
                  : scale(
                        call,
                        second,
                        width,
                        python_int(static_cast<double>(width) / aspect),
                        ResizeMethod::lanczos
                    );
}

// Along the seam both pictures get one length, with the smaller one in the middle.
Result<Image> aligned(const Call& call, const Image& image, const Image& other, const Seam& seam) {
    ImageShape shape = image.shape();
    std::size_t& side = seam.beside ? shape.height : shape.width;
    const std::size_t length = seam.beside ? other.shape().height : other.shape().width;
    if (side >= length) {
        return image;
    }
    const std::size_t before = (length - side) / 2;
    side = length;
    auto out = call.new_image(shape);
    if (!out) {
        return fail(std::move(out.error()));
    }
    const float around = seam.gray ? seam.color[0] : 0.0F;
    auto done = fill(call, *out, std::vector<float>(shape.channels, around));
    if (done) {
        done = lay(call, image, *out, seam.beside ? 0 : before, seam.beside ? before : 0);
    }
    if (!done) {
        return fail(std::move(done.error()));
    }
    return std::move(*out).finish();
}

// REQUIRES: aligned.
Result<Image> stitched(
    const Call& call, const Image& first, const Image& second, const Seam& seam
) {
    const ImageShape& a = first.shape();
    const ImageShape& b = second.shape();
    ImageShape shape = a;
    (seam.beside ? shape.width : shape.height) += seam.width + (seam.beside ? b.width : b.height);
    auto out = call.new_image(shape);
    if (!out) {
        return fail(std::move(out.error()));
    }
    Result<> done;
    std::size_t at = 0;
    const auto add = [&](const Image& image) {
        done = lay(call, image, *out, seam.beside ? at : 0, seam.beside ? 0 : at);
        at += seam.beside ? image.shape().width : image.shape().height;
    };
    add(seam.second_first ? second : first);
    if (done && seam.width > 0) {
        ImageShape gap = shape;
        (seam.beside ? gap.width : gap.height) = seam.width;
        auto space = call.new_image(gap);
        if (!space) {
            return fail(std::move(space.error()));
        }
        std::vector<float> pixel(shape.channels, 1.0F);  // a fourth channel is opaque
        std::copy_n(seam.color.begin(), std::min<std::size_t>(3, pixel.size()), pixel.begin());
        done = fill(call, *space, pixel);
        if (done) {
            add(std::move(*space).finish());
        }
    }
    if (done) {
        add(seam.second_first ? first : second);
    }
    if (!done) {
        return fail(std::move(done.error()));
    }
    return std::move(*out).finish();
}

Result<NodeResult> compute(Call& call) {
    Result<Image> first = call.image("image1");
    if (!call.has("image2")) {
        return NodeResult{.outputs = {*first}};
    }
    const Seam between = seam(call);
    Result<Image> second = call.image("image2");
    const std::size_t batch = std::max(first->shape().batch, second->shape().batch);
    const std::size_t channels = std::max(first->shape().channels, second->shape().channels);
    if (call.flag("match_image_size")) {
        second = matched(call, *first, *second, between.beside);
    }
    // What is laid around a picture without alpha is opaque like the picture itself.
    const Result<Image> before = first;
    if (second) {
        first = aligned(call, *first, *second, between);
        second = aligned(call, *second, *before, between);
    }
    if (second) {
        second = with_channels(call, *second, channels);
    }
    if (second) {
        second = with_batch(call, *second, batch);
    }
    if (!second) {
        return fail(std::move(second.error()));
    }
    if (first) {
        first = with_channels(call, *first, channels);
    }
    if (first) {
        first = with_batch(call, *first, batch);
    }
    if (first) {
        first = stitched(call, *first, *second, between);
    }
    if (!first) {
        return fail(std::move(first.error()));
    }
    return NodeResult{.outputs = {std::move(*first)}};
}

}  // namespace

NodeClass image_stitch() {
    return {
        .name = "ImageStitch",
        .description = "Puts a second picture beside, above or below the first one.",
        .execute = &compute,
    };
}

}  // namespace comfyd::engine::nodes
