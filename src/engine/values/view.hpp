// Pictures and masks that show pixels of others in another arrangement: a part, a channel, a mirror
// image, several in one batch. Making one copies nothing, as in PyTorch. Inverting is a view too:
// whoever reads the pixels subtracts on the way, instead of once more through memory.
//
// A view is a value like Image and Mask. Only classes that say so (NodeClass::reads_views) are
// given one; for all others invoke() makes it whole, once for all that read it. Buffers count once
// for as long as any value needs them, so a view keeps the whole picture that it is taken from:
// invoke() copies what is small beside that, and everything where memory is short. Any thread.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/mutex.hpp"
#include "engine/values/image.hpp"

namespace comfyd::engine {

struct Box {
    std::size_t x = 0;
    std::size_t y = 0;
    std::size_t width = 0;
    std::size_t height = 0;
};

class View {
public:
    View(const Pixels& pixels);  // NOLINT: whatever is whole can be looked at

    const ImageShape& shape() const { return shape_; }

    // REQUIRES: channel, box and pictures exist.
    View channel(std::size_t index) const;
    View channels(std::size_t count) const;  // the first ones
    View cut(const Box& box) const;
    View pictures(std::size_t first, std::size_t count) const;
    View mirrored(bool rows, bool columns) const;
    View inverted() const;  // 1 minus each value
    // REQUIRES: one channel.
    View repeated(std::size_t channels) const;
    // One batch of all. REQUIRES: at least one, and all of one size.
    static View joined(std::span<const View> views);

    // Rows are counted through the whole batch.
    void copy_row(std::size_t row, float* into) const;
    // Where the row lies in one piece there, else copied to `scratch`.
    const float* row(std::size_t row, std::vector<float>& scratch) const;

    // nullopt unless all of it lies in one piece, or a copy was kept that does.
    std::optional<Pixels> whole() const;
    // Keeps a copy of the same pixels for every value that shows them as this one does.
    void keep(const Pixels& copy) const;

    std::size_t pieces() const { return layout_->blocks.size(); }
    // That the view itself takes.
    std::uint64_t bytes() const { return sizeof(Layout) + pieces() * sizeof(Block); }
    // Of the buffers that it keeps.
    std::uint64_t kept_bytes() const;

private:
    // Pictures at equal distances. Steps are in floats and may be 0 or negative.
    struct Block {
        std::shared_ptr<const FloatBuffer> buffer;  // shared by every value over it
        const float* first;
        std::ptrdiff_t picture_step;
        std::ptrdiff_t row_step;
        std::ptrdiff_t pixel_step;
        std::ptrdiff_t channel_step;
        std::size_t end;  // the number of pictures in this block and all before it
        // A count, because each inversion rounds: two are not always none.
        unsigned inversions = 0;
    };
    struct Layout {
        std::vector<Block> blocks;
        mutable Mutex mutex;
        mutable std::optional<Pixels> copy COMFYD_GUARDED_BY(mutex);
    };

    View(ImageShape shape, std::vector<Block> blocks);
    template <class Change>
    View changed(const ImageShape& shape, Change change) const;
    struct Place {
        const Block& block;
        const float* first;
    };
    Place place(std::size_t row) const;
    // Its rows lie in memory as they are shown.
    bool is_packed(const Block& block) const;

    ImageShape shape_;
    std::shared_ptr<const Layout> layout_;  // shared by every copy of the value
};

class ImageView : public View {
public:
    ImageView(const Image& image) : View(image) {}  // NOLINT: as above
    explicit ImageView(View view) : View(std::move(view)) {}
};

// `shape.channels` is 1.
class MaskView : public View {
public:
    MaskView(const Mask& mask) : View(mask) {}  // NOLINT: as above
    explicit MaskView(View view) : View(std::move(view)) {}
};

}  // namespace comfyd::engine
