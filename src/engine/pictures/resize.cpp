#include "engine/pictures/resize.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <utility>

#include "engine/pictures/resize_kernels.hpp"
#include "engine/pixels.hpp"

namespace comfyd::engine {
namespace {

// At most, of the tables that say which source pixels make an output pixel.
constexpr std::uint64_t kBytesPerTap = 160;
constexpr std::uint64_t kBytesPerSource = 32;

// The window of one picture that remains after the crop, relative to the picture's first pixel.
struct Cut {
    std::size_t x = 0;
    std::size_t y = 0;
    std::size_t width = 0;
    std::size_t height = 0;
};

// Python's round(): halves go to the even neighbour, which is the default rounding mode here too.
std::size_t margin(std::size_t side, double part) {
    const auto whole = static_cast<double>(side);
    return static_cast<std::size_t>(std::max(0.0, std::nearbyint((whole - whole * part) / 2.0)));
}

Cut cut_for(const ImageShape& shape, std::size_t width, std::size_t height, Crop crop) {
    Cut cut{0, 0, shape.width, shape.height};
    if (crop == Crop::disabled || shape.height == 0 || width == 0 || height == 0) {
        return cut;
    }
    const double old_aspect = static_cast<double>(shape.width) / static_cast<double>(shape.height);
    const double new_aspect = static_cast<double>(width) / static_cast<double>(height);
    if (old_aspect > new_aspect) {
        cut.x = margin(shape.width, new_aspect / old_aspect);
    } else if (old_aspect < new_aspect) {
        cut.y = margin(shape.height, old_aspect / new_aspect);
    }
    cut.width = shape.width - std::min(shape.width, cut.x * 2);
    cut.height = shape.height - std::min(shape.height, cut.y * 2);
    return cut;
}

// What every method works with: pictures of one batch, all cut alike.
struct Job {
    const Call& call;
    const Image& image;
    Cut cut;
    NewImage out;

    Window window(std::size_t picture) const {
        const ImageShape& shape = image.shape();
        return Window{
            .pixels = image.row(picture * shape.height + cut.y) + cut.x * shape.channels,
            .stride = shape.row_floats(),
            .width = cut.width,
            .height = cut.height,
            .channels = shape.channels
        };
    }

    // Calls body(window, y, out) for every output row of every picture.
    template <class Body>
    Result<> for_output_rows(std::size_t work_per_row, const Body& body) {
        const ImageShape shape = out.shape();
        return call.for_rows(shape.rows(), work_per_row, [&](std::size_t first, std::size_t last) {
            for (std::size_t row = first; row < last; ++row) {
                body(window(row / shape.height), row % shape.height, out.row(row));
            }
        });
    }
};

Result<> nearest_exact(Job& job) {
    const ImageShape shape = job.out.shape();
    const auto columns = nearest_exact_indices(job.cut.width, shape.width);
    const auto rows = nearest_exact_indices(job.cut.height, shape.height);
    return job.for_output_rows(
        shape.row_floats(),
        [&](const Window& window, std::size_t y, float* out) {
            const float* row = window.row(rows[y]);
            for (const std::size_t x : columns) {
                out = std::copy_n(row + x * window.channels, window.channels, out);
            }
        }
    );
}

Result<> area(Job& job) {
    const ImageShape shape = job.out.shape();
    const auto columns = area_spans(job.cut.width, shape.width);
    const auto rows = area_spans(job.cut.height, shape.height);
    const std::size_t rows_read = job.cut.height / shape.height + 1;
    const std::size_t work = (job.cut.width + shape.width) * shape.channels * rows_read;
    return job.for_output_rows(work, [&](const Window& window, std::size_t y, float* out) {
        area_row(window, rows[y], columns, out);
    });
}

Result<> bilinear(Job& job) {
    const ImageShape shape = job.out.shape();
    const auto columns = linear_taps(job.cut.width, shape.width);
    const auto rows = linear_taps(job.cut.height, shape.height);
    // PyTorch takes another path for few channels and more than this many coordinates.
    constexpr std::size_t kSmall = 128;
    const bool by_points = shape.channels >= 4 || shape.height + shape.width <= kSmall;
    return job.for_output_rows(
        shape.row_floats() * 4,
        [&](const Window& window, std::size_t y, float* out) {
            if (by_points) {
                bilinear_row_by_points(window, rows[y], columns, out);
            } else {
                bilinear_row_by_rows(window, rows[y], columns, out);
            }
        }
    );
}

// Source rows that are already scaled along x. Neighbouring output rows read almost the same ones.
class CubicRows {
public:
    explicit CubicRows(std::size_t row_floats) {
        for (auto& slot : slots_) {
            slot.resize(row_floats);
        }
    }

    // Valid until a row four further is asked for.
    const float* get(const Window& window, std::size_t y, const std::vector<CubicTap>& columns) {
        const std::size_t slot = y % 4;
        const float* key = window.row(y);
        if (keys_[slot] != key) {
            cubic_along_x(key, window.channels, columns, slots_[slot].data());
            keys_[slot] = key;
        }
        return slots_[slot].data();
    }

private:
    std::array<std::vector<float>, 4> slots_;
    std::array<const float*, 4> keys_{};
};

Result<> bicubic(Job& job) {
    const ImageShape shape = job.out.shape();
    const auto columns = cubic_taps(job.cut.width, shape.width);
    const auto rows = cubic_taps(job.cut.height, shape.height);
    const std::size_t floats = shape.row_floats();
    // Larger blocks than the work alone would ask for: each one begins with rows that no other
    // block shares.
    return job.call.for_rows(shape.rows(), floats, [&](std::size_t first, std::size_t last) {
        CubicRows scaled(floats);
        for (std::size_t row = first; row < last; ++row) {
            const Window window = job.window(row / shape.height);
            const CubicTap& tap = rows[row % shape.height];
            std::array<const float*, 4> sources{};
            for (std::size_t k = 0; k < 4; ++k) {
                sources[k] = scaled.get(window, tap.at[k], columns);
            }
            cubic_along_y(sources.data(), tap.weight, floats, job.out.row(row));
        }
    });
}

// Pillow scales colours weighted by alpha, in bytes.
void premultiply(std::uint8_t* pixels, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i, pixels += 4) {
        for (int c = 0; c < 3; ++c) {
            const unsigned product = pixels[c] * unsigned{pixels[3]} + 128;
            pixels[c] = static_cast<std::uint8_t>((product + (product >> 8)) >> 8);
        }
    }
}

void unpremultiply(std::uint8_t* pixels, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i, pixels += 4) {
        const unsigned alpha = pixels[3];
        if (alpha == 0 || alpha == 255) {
            continue;
        }
        for (int c = 0; c < 3; ++c) {
            pixels[c] = static_cast<std::uint8_t>(std::min(255U, 255U * pixels[c] / alpha));
        }
    }
}

// A picture in bytes, between two passes.
struct Bytes {
    std::uint8_t* data = nullptr;
    std::size_t width = 0;
    std::size_t height = 0;
    std::size_t channels = 0;

    std::size_t stride() const { return width * channels; }
};

Result<> scale_along_x(
    const Call& call, const Bytes& from, const std::vector<LanczosTap>& taps, Bytes& into
) {
    into = {into.data, taps.size(), from.height, from.channels};
    return call.for_rows(from.height, from.stride() * 4, [&](std::size_t first, std::size_t last) {
        for (std::size_t y = first; y < last; ++y) {
            lanczos_along_x(
                from.data + y * from.stride(), from.channels, taps, into.data + y * into.stride()
            );
        }
    });
}

Result<> scale_along_y(
    const Call& call, const Bytes& from, const std::vector<LanczosTap>& taps, Bytes& into
) {
    into = {into.data, from.width, taps.size(), from.channels};
    return call.for_rows(taps.size(), from.stride() * 8, [&](std::size_t first, std::size_t last) {
        for (std::size_t y = first; y < last; ++y) {
            const std::uint8_t* rows = from.data + taps[y].begin * from.stride();
            lanczos_along_y(
                rows, from.stride(), taps[y], from.stride(), into.data + y * into.stride()
            );
        }
    });
}

struct LanczosPlan {
    std::vector<LanczosTap> columns;
    std::vector<LanczosTap> rows;
    bool along_x = false;
    bool along_y = false;
    bool y_first = false;
};

LanczosPlan plan_lanczos(const Cut& cut, const ImageShape& out) {
    const auto loss = [](std::size_t in, std::size_t left) {
        return static_cast<std::int64_t>(in) - static_cast<std::int64_t>(left);
    };
    const std::int64_t rows_lost = loss(cut.height, out.height);
    return {
        .columns = lanczos_taps(cut.width, out.width),
        .rows = lanczos_taps(cut.height, out.height),
        .along_x = cut.width != out.width,
        .along_y = cut.height != out.height,
        // Pillow 13 begins with the axis that loses far more; this rule fits all recordings of it.
        .y_first = rows_lost > 0 && rows_lost > 2 * loss(cut.width, out.width),
    };
}

Result<> lanczos_picture(
    Job& job, std::size_t picture, const LanczosPlan& plan, std::array<Bytes, 2> bytes
) {
    const Window window = job.window(picture);
    const ImageShape shape = job.out.shape();
    const bool with_alpha = window.channels == 4 && (plan.along_x || plan.along_y);
    bytes[0] = {bytes[0].data, window.width, window.height, window.channels};
    auto result = job.call.for_rows(
        window.height,
        bytes[0].stride(),
        [&](std::size_t first, std::size_t last) {
            for (std::size_t y = first; y < last; ++y) {
                std::uint8_t* row = bytes[0].data + y * bytes[0].stride();
                to_bytes(window.row(y), bytes[0].stride(), row);
                if (with_alpha) {
                    premultiply(row, window.width);
                }
            }
        }
    );
    for (int pass = 0; pass < 2 && result; ++pass) {
        const bool vertical = (pass == 0) == plan.y_first;
        if (vertical ? plan.along_y : plan.along_x) {
            result = vertical ? scale_along_y(job.call, bytes[0], plan.rows, bytes[1])
                              : scale_along_x(job.call, bytes[0], plan.columns, bytes[1]);
            std::swap(bytes[0], bytes[1]);
        }
    }
    if (!result) {
        return result;
    }
    return job.call
        .for_rows(shape.height, shape.row_floats(), [&](std::size_t first, std::size_t last) {
            for (std::size_t y = first; y < last; ++y) {
                std::uint8_t* row = bytes[0].data + y * bytes[0].stride();
                if (with_alpha) {
                    unpremultiply(row, shape.width);
                }
                std::transform(
                    row,
                    row + bytes[0].stride(),
                    job.out.row(picture * shape.height + y),
                    [](std::uint8_t byte) { return static_cast<float>(byte) / 255.0F; }
                );
            }
        });
}

Result<> lanczos(Job& job) {
    const ImageShape shape = job.out.shape();
    const LanczosPlan plan = plan_lanczos(job.cut, shape);
    const std::size_t largest = std::max(job.cut.width, shape.width) *
                                std::max(job.cut.height, shape.height) * shape.channels;
    auto first = job.call.new_scratch(largest);
    auto second = job.call.new_scratch(largest);
    if (!first || !second) {
        return fail(std::move(first ? second.error() : first.error()));
    }
    for (std::size_t picture = 0; picture < shape.batch; ++picture) {
        auto result =
            lanczos_picture(job, picture, plan, {Bytes{first->data()}, Bytes{second->data()}});
        if (!result) {
            return result;
        }
    }
    return {};
}

Result<> scale(Job& job, ResizeMethod method) {
    switch (method) {
        case ResizeMethod::nearest_exact:
            return nearest_exact(job);
        case ResizeMethod::bilinear:
            return bilinear(job);
        case ResizeMethod::area:
            return area(job);
        case ResizeMethod::bicubic:
            return bicubic(job);
        case ResizeMethod::lanczos:
            return lanczos(job);
    }
    return {};
}

}  // namespace

const std::vector<std::string>& resize_method_names() {
    static const std::vector<std::string> kNames = {
        "nearest-exact", "bilinear", "area", "bicubic", "lanczos"
    };
    return kNames;
}

ResizeMethod resize_method(std::string_view name) {
    const auto& names = resize_method_names();
    const auto found = std::ranges::find(names, name);
    if (found == names.end()) {
        throw NodeFailure(
            "NotImplementedError",
            "Input Error: Only 3D, 4D and 5D input Tensors supported (got 4D) for the modes: "
            "nearest | linear | bilinear | bicubic | trilinear | area | nearest-exact (got " +
                std::string(name) + ")"
        );
    }
    return static_cast<ResizeMethod>(found - names.begin());
}

tl::unexpected<Error> sizes_refused(
    ResizeMethod method, const ImageShape& shape, std::int64_t width, std::int64_t height
) {
    if (method == ResizeMethod::lanczos) {
        return node_error("ValueError", "height and width must be > 0");
    }
    if (method != ResizeMethod::area) {
        return node_error(
            "RuntimeError",
            "Input and output sizes should be greater than 0, but got input (H: " +
                std::to_string(shape.height) + ", W: " + std::to_string(shape.width) +
                ") output (H: " + std::to_string(height) + ", W: " + std::to_string(width) + ")"
        );
    }
    if (width < 0 || height < 0) {
        return node_error(
            "RuntimeError",
            "adaptive_avg_pool2d: elements of output_size must be greater than or equal to 0 but "
            "received {" +
                std::to_string(height) + ", " + std::to_string(width) + "}"
        );
    }
    return node_error(
        "RuntimeError",
        "adaptive_avg_pool2d(): Expected input to have non-zero size for non-batch dimensions, but "
        "input has sizes [" +
            std::to_string(shape.batch) + ", " + std::to_string(shape.channels) + ", " +
            std::to_string(shape.height) + ", " + std::to_string(shape.width) +
            "] with dimension " + (shape.height == 0 ? "2" : "3") + " being empty"
    );
}

Result<Image> resize(
    const Call& call,
    const Image& image,
    std::size_t width,
    std::size_t height,
    ResizeMethod method,
    Crop crop
) {
    const ImageShape& shape = image.shape();
    const Cut cut = cut_for(shape, width, height, crop);
    const bool is_empty = width == 0 || height == 0;
    const bool is_cut_to_nothing = cut.width == 0 || cut.height == 0;
    if ((is_cut_to_nothing && method != ResizeMethod::lanczos) ||
        (is_empty && method != ResizeMethod::area)) {
        return sizes_refused(
            method,
            {shape.batch, cut.height, cut.width, shape.channels},
            static_cast<std::int64_t>(width),
            static_cast<std::int64_t>(height)
        );
    }
    const auto taps = call.charge(
        (width + height) * kBytesPerTap + (shape.width + shape.height) * kBytesPerSource
    );
    if (!taps) {
        return fail(taps.error());
    }
    auto out = call.new_image({shape.batch, height, width, shape.channels});
    if (!out) {
        return fail(std::move(out.error()));
    }
    if (is_empty) {
        return std::move(*out).finish();
    }
    if (is_cut_to_nothing) {  // of which Pillow makes black
        for (std::size_t row = 0; row < shape.batch * height; ++row) {
            std::fill_n(out->row(row), width * shape.channels, 0.0F);
        }
        return std::move(*out).finish();
    }
    Job job{call, image, cut, std::move(*out)};
    auto result = scale(job, method);
    if (!result) {
        return fail(std::move(result.error()));
    }
    return std::move(job.out).finish();
}

}  // namespace comfyd::engine
