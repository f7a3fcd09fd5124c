#include "engine/values/view.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "engine/nodes/kernel.hpp"

namespace comfyd::engine {
namespace {

std::ptrdiff_t signed_of(std::size_t value) {
    return static_cast<std::ptrdiff_t>(value);
}

struct Steps {
    std::ptrdiff_t pixel;
    std::ptrdiff_t channel;
};

// One channel out of so many; the distance is a constant, so that vectors can be shuffled.
template <std::ptrdiff_t kStep>
void gather(const float* from, std::size_t count, float* into) {
    for (std::size_t i = 0; i < count; ++i) {
        into[i] = from[signed_of(i) * kStep];
    }
}
COMFYD_KERNEL void gather_of_three(const float* from, std::size_t count, float* into) {
    gather<3>(from, count, into);
}
COMFYD_KERNEL void gather_of_four(const float* from, std::size_t count, float* into) {
    gather<4>(from, count, into);
}

template <std::size_t kChannels>
void copy_pixels(const float* from, Steps steps, std::size_t count, float* into) {
    for (std::size_t i = 0; i < count; ++i, from += steps.pixel) {
        for (std::size_t c = 0; c < kChannels; ++c) {
            *into++ = from[signed_of(c) * steps.channel];
        }
    }
}

void copy_any(
    const float* from, Steps steps, std::size_t count, std::size_t channels, float* into
) {
    if (steps.channel == 1 && steps.pixel == signed_of(channels)) {
        std::copy_n(from, count * channels, into);
    } else if (channels == 1 && steps.pixel == 3) {
        gather_of_three(from, count, into);
    } else if (channels == 1 && steps.pixel == 4) {
        gather_of_four(from, count, into);
    } else if (channels == 1) {
        copy_pixels<1>(from, steps, count, into);
    } else if (channels == 3) {
        copy_pixels<3>(from, steps, count, into);
    } else if (channels == 4) {
        copy_pixels<4>(from, steps, count, into);
    } else {
        for (std::size_t i = 0; i < count; ++i, from += steps.pixel) {
            for (std::size_t c = 0; c < channels; ++c) {
                *into++ = from[signed_of(c) * steps.channel];
            }
        }
    }
}

COMFYD_KERNEL void invert(float* values, std::size_t count) {
    COMFYD_NO_CONTRACTION
    for (std::size_t i = 0; i < count; ++i) {
        values[i] = 1.0F - values[i];
    }
}

}  // namespace

View::View(ImageShape shape, std::vector<Block> blocks) : shape_(shape) {
    const auto layout = std::make_shared<Layout>();
    layout->blocks = std::move(blocks);
    layout_ = layout;
}

View::View(const Pixels& pixels)
    : View(
          pixels.shape(),
          {{.buffer = pixels.buffer(),
            .first = pixels.data(),
            .picture_step = signed_of(pixels.shape().height * pixels.shape().row_floats()),
            .row_step = signed_of(pixels.shape().row_floats()),
            .pixel_step = signed_of(pixels.shape().channels),
            .channel_step = 1,
            .end = pixels.shape().batch}}
      ) {}

template <class Change>
View View::changed(const ImageShape& shape, Change change) const {
    std::vector<Block> blocks = layout_->blocks;
    for (Block& block : blocks) {
        change(block);
    }
    return {shape, std::move(blocks)};
}

View View::channel(std::size_t index) const {
    COMFYD_ASSERT(index < shape_.channels);
    return changed({shape_.batch, shape_.height, shape_.width, 1}, [&](Block& block) {
        block.first += signed_of(index) * block.channel_step;
    });
}

View View::channels(std::size_t count) const {
    COMFYD_ASSERT(count <= shape_.channels);
    return changed({shape_.batch, shape_.height, shape_.width, count}, [](Block&) {});
}

View View::cut(const Box& box) const {
    COMFYD_ASSERT(box.x + box.width <= shape_.width && box.y + box.height <= shape_.height);
    const ImageShape shape{shape_.batch, box.height, box.width, shape_.channels};
    return changed(shape, [&](Block& block) {
        if (shape.floats() > 0) {
            block.first += signed_of(box.y) * block.row_step + signed_of(box.x) * block.pixel_step;
        }
    });
}

View View::pictures(std::size_t first, std::size_t count) const {
    COMFYD_ASSERT(first + count <= shape_.batch);
    std::vector<Block> blocks;
    std::size_t begin = 0;  // of the block
    for (const Block& block : layout_->blocks) {
        const std::size_t from = std::max(first, begin);
        const std::size_t to = std::min(first + count, block.end);
        if (from < to) {
            Block& part = blocks.emplace_back(block);
            part.first += signed_of(from - begin) * block.picture_step;
            part.end = to - first;
        }
        begin = block.end;
    }
    return {{count, shape_.height, shape_.width, shape_.channels}, std::move(blocks)};
}

View View::mirrored(bool rows, bool columns) const {
    return changed(shape_, [&](Block& block) {
        if (rows && shape_.height > 0) {
            block.first += signed_of(shape_.height - 1) * block.row_step;
            block.row_step = -block.row_step;
        }
        if (columns && shape_.width > 0) {
            block.first += signed_of(shape_.width - 1) * block.pixel_step;
            block.pixel_step = -block.pixel_step;
        }
    });
}

View View::inverted() const {
    return changed(shape_, [](Block& block) { ++block.inversions; });
}

View View::repeated(std::size_t channels) const {
    COMFYD_ASSERT(shape_.channels == 1);
    return changed({shape_.batch, shape_.height, shape_.width, channels}, [](Block& block) {
        block.channel_step = 0;
    });
}

View View::joined(std::span<const View> views) {
    COMFYD_ASSERT(!views.empty());
    ImageShape shape = views.front().shape();
    shape.batch = 0;
    std::vector<Block> blocks;
    for (const View& view : views) {
        for (Block block : view.layout_->blocks) {
            block.end += shape.batch;
            blocks.push_back(std::move(block));
        }
        shape.batch += view.shape().batch;
    }
    return {shape, std::move(blocks)};
}

View::Place View::place(std::size_t row) const {
    const std::vector<Block>& blocks = layout_->blocks;
    const std::size_t picture = row / shape_.height;
    const auto block = std::ranges::upper_bound(blocks, picture, {}, &Block::end);
    const std::size_t begin = block == blocks.begin() ? 0 : std::prev(block)->end;
    return {
        *block,
        block->first + signed_of(picture - begin) * block->picture_step +
            signed_of(row % shape_.height) * block->row_step
    };
}

bool View::is_packed(const Block& block) const {
    return block.channel_step == 1 && block.pixel_step == signed_of(shape_.channels) &&
           block.inversions == 0;
}

void View::copy_row(std::size_t row, float* into) const {
    const Place from = place(row);
    const Steps steps{from.block.pixel_step, from.block.channel_step};
    copy_any(from.first, steps, shape_.width, shape_.channels, into);
    for (unsigned n = 0; n < from.block.inversions; ++n) {
        invert(into, shape_.row_floats());
    }
}

const float* View::row(std::size_t row, std::vector<float>& scratch) const {
    const Place from = place(row);
    if (is_packed(from.block)) {
        return from.first;
    }
    scratch.resize(shape_.row_floats());
    copy_row(row, scratch.data());
    return scratch.data();
}

std::optional<Pixels> View::whole() const {
    const Block* block = layout_->blocks.size() == 1 ? &layout_->blocks.front() : nullptr;
    const std::ptrdiff_t row = signed_of(shape_.row_floats());
    const bool rows =
        block != nullptr && is_packed(*block) && (block->row_step == row || shape_.height == 1);
    if (rows && (block->picture_step == signed_of(shape_.height) * row || shape_.batch == 1)) {
        return Pixels(shape_, block->buffer, block->first);
    }
    const Lock lock(layout_->mutex);
    return layout_->copy;
}

void View::keep(const Pixels& copy) const {
    COMFYD_ASSERT(copy.shape() == shape_);
    const Lock lock(layout_->mutex);
    layout_->copy = copy;
}

std::uint64_t View::kept_bytes() const {
    std::vector<const FloatBuffer*> buffers;
    for (const Block& block : layout_->blocks) {
        buffers.push_back(block.buffer.get());
    }
    std::ranges::sort(buffers);
    const auto repeated = std::ranges::unique(buffers);
    buffers.erase(repeated.begin(), repeated.end());
    std::uint64_t bytes = 0;
    for (const FloatBuffer* buffer : buffers) {
        bytes += buffer->bytes();
    }
    return bytes;
}

}  // namespace comfyd::engine
