#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "engine/nodes/image/color_transfer.hpp"
#include "engine/pixels/values.hpp"

namespace comfyd::engine::nodes {
namespace {

constexpr std::size_t kBins = 256;
using Table = std::array<float, kBins>;

// As PyTorch's conversion to integers: what is no number, or too large for one, is the lowest.
std::size_t bin(float value) {
    const float scaled = value * 255.0F;
    if (!(scaled > 0.0F) || scaled >= 0x1p63F) {
        return 0;
    }
    return static_cast<std::size_t>(std::min(scaled, 255.0F));
}

// For each channel, which part of the values lies in this bin or below.
std::vector<Table> cumulative(const Image& image, std::size_t first, std::size_t count) {
    const ImageShape& shape = image.shape();
    std::vector<std::array<std::uint64_t, kBins>> counts(shape.channels);
    const float* value = image.picture(first);
    for (std::size_t i = 0; i < count * shape.height * shape.width; ++i) {
        for (std::size_t c = 0; c < shape.channels; ++c) {
            ++counts[c][bin(*value++)];
        }
    }
    std::vector<Table> out(shape.channels);
    for (std::size_t c = 0; c < shape.channels; ++c) {
        std::uint64_t sum = 0;
        for (std::size_t i = 0; i < kBins; ++i) {
            sum += counts[c][i];
            out[c][i] = static_cast<float>(sum);
        }
        for (float& part : out[c]) {
            part /= static_cast<float>(sum);
        }
    }
    return out;
}

// For each bin of the source the value that as many of the reference lie below. A channel that the
// reference does not have becomes 1.
std::vector<Table> tables(const std::vector<Table>& source, const std::vector<Table>& reference) {
    std::vector<Table> out(source.size());
    for (std::size_t c = 0; c < source.size(); ++c) {
        for (std::size_t i = 0; i < kBins; ++i) {
            const auto found =
                c < reference.size()
                    ? std::ranges::lower_bound(reference[c], source[c][i]) - reference[c].begin()
                    : std::ptrdiff_t{kBins};
            out[c][i] = static_cast<float>(std::min<std::ptrdiff_t>(found, kBins - 1)) / 255.0F;
        }
    }
    return out;
}

Result<> expect_channels(const Transfer& transfer) {
    const std::size_t target = transfer.target.shape().channels;
    const std::size_t reference = transfer.reference.shape().channels;
    if (target == reference || (target > reference && transfer.baseline == Baseline::per_frame)) {
        return {};
    }
    return node_error(
        "RuntimeError",
        "The picture has " + std::to_string(target) + " channels, the reference " +
            std::to_string(reference)
    );
}

}  // namespace

Result<Image> transfer_by_histogram(const Call& call, const Transfer& transfer) {
    const Image& target = transfer.target;
    const Image& reference = transfer.reference;
    const ImageShape shape = target.shape();
    if (auto fits = expect_channels(transfer); !fits) {
        return fail(std::move(fits.error()));
    }
    auto out = call.new_image(shape);
    if (!out) {
        return fail(std::move(out.error()));
    }
    std::vector<Table> table;
    if (transfer.baseline != Baseline::per_frame) {
        const bool one = transfer.baseline == Baseline::target_frame;
        table = tables(
            cumulative(target, one ? transfer.frame : 0, one ? 1 : shape.batch),
            cumulative(reference, 0, reference.shape().batch)
        );
    }
    const auto strength = static_cast<float>(transfer.strength);
    for (std::size_t i = 0; i < shape.batch; ++i) {
        if (transfer.baseline == Baseline::per_frame) {
            const std::size_t other = std::min(i, reference.shape().batch - 1);
            table = tables(cumulative(target, i, 1), cumulative(reference, other, 1));
        }
        const std::size_t top = i * shape.height;
        auto done = call.for_rows(
            shape.height,
            shape.row_floats(),
            [&](std::size_t first, std::size_t last) {
                const float* from = target.row(top + first);
                float* into = out->row(top + first);
                for (std::size_t k = 0; k < (last - first) * shape.row_floats(); ++k) {
                    const float matched = table[k % shape.channels][bin(from[k])];
                    into[k] =
                        clamp_unit(strength == 1.0F ? matched : lerp(from[k], matched, strength));
                }
            }
        );
        if (!done) {
            return fail(std::move(done.error()));
        }
        call.progress(static_cast<int>(i) + 1, static_cast<int>(shape.batch));
    }
    return std::move(*out).finish();
}

}  // namespace comfyd::engine::nodes
