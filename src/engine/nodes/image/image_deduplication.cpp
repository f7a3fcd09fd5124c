#include <array>
#include <bit>
#include <memory>
#include <vector>

#include "engine/nodes/image/image.hpp"
#include "engine/pixels.hpp"
#include "engine/pixels/bytes.hpp"

namespace comfyd::engine::nodes {
namespace {

constexpr std::size_t kSide = 8;
constexpr std::size_t kBits = kSide * kSide;

// One bit for each pixel of a tiny gray version: whether it is brighter than the average.
Result<std::uint64_t> fingerprint(const Call& call, const Image& image) {
    const auto tiny = resize(call, image, kSide, kSide, ResizeMethod::lanczos, Crop::disabled);
    if (!tiny) {
        return fail(tiny.error());
    }
    const std::size_t channels = tiny->shape().channels;
    std::vector<std::uint8_t> bytes(kBits * channels);
    // Half a step up, so that what was n/255 is n again.
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        bytes[i] = static_cast<std::uint8_t>(tiny->data()[i] * 255.0F + 0.5F);
    }
    std::array<unsigned, kBits> gray{};
    unsigned total = 0;
    for (std::size_t i = 0; i < kBits; ++i) {
        const std::uint8_t* pixel = &bytes[i * channels];
        gray[i] = channels < 3
                      ? pixel[0]
                      : (pixel[0] * 19595U + pixel[1] * 38470U + pixel[2] * 7471U + 0x8000U) >> 16;
        total += gray[i];
    }
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < kBits; ++i) {
        bits |= std::uint64_t{gray[i] * kBits > total} << i;
    }
    return bits;
}

Result<NodeResult> compute(Call& call) {
    const double threshold = call.number("similarity_threshold");
    auto kept = std::make_shared<List>();
    std::vector<std::uint64_t> seen;
    for (const Image& image : single_pictures(call.list("images"))) {
        const auto bits = fingerprint(call, image);
        if (!bits) {
            return fail(bits.error());
        }
        bool repeated = false;
        for (const std::uint64_t other : seen) {
            repeated = repeated || 1.0 - std::popcount(*bits ^ other) / 64.0 >= threshold;
        }
        if (!repeated) {
            seen.push_back(*bits);
            kept->items.push_back(image);
        }
    }
    return NodeResult{.outputs = {std::shared_ptr<const List>(std::move(kept))}};
}

}  // namespace

NodeClass image_deduplication() {
    return {
        .name = "ImageDeduplication",
        .description = "Leaves out pictures that look like an earlier one of the list.",
        .execute = &compute,
    };
}

}  // namespace comfyd::engine::nodes
