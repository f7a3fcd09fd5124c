// What a node sees while it runs: its inputs, memory for its results, the pool, and the wish to
// stop.
//
// Lives for one execution of one node, on one thread; only the functions handed to for_rows() and
// for_each() run on others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/json.hpp"
#include "engine/engine.hpp"
#include "engine/nodes/node.hpp"
#include "engine/pool.hpp"
#include "engine/values/memory.hpp"
#include "engine/values/value.hpp"

namespace comfyd::engine {

// The largest side of a picture, as in ComfyUI.
inline constexpr std::size_t kSideMax = 16384;

// What all calls of one run share; owned by the run.
struct Surroundings {
    const Folders& folders;
    Pool& pool;
    const std::shared_ptr<Memory>& memory;
    std::function<void(std::uint64_t bytes)> make_room;  // drops results that nobody needs now
    std::function<bool()> stopped;                       // any thread
    Listener& listener;                 // any thread; the run makes it one at a time
    const json::object& prompt;         // as it is written into pictures
    const json::object& extra_pnginfo;  // likewise
};

// Working space of a node, counted like its results.
class Scratch {
public:
    explicit Scratch(std::shared_ptr<FloatBuffer> buffer) : buffer_(std::move(buffer)) {}
    std::uint8_t* data() { return reinterpret_cast<std::uint8_t*>(buffer_->data()); }

private:
    std::shared_ptr<FloatBuffer> buffer_;
};

// An input of another kind than the class can use. Thrown by Call's functions; the run makes a
// TypeError of it.
class WrongKind : public std::invalid_argument {
public:
    WrongKind(std::string_view input, std::string_view wanted, const Value& value);
};

// By flat names, in declaration order.
using NamedValues = std::vector<std::pair<std::string, Value>>;

class Call {
public:
    Call(const Surroundings& surroundings, const std::string& node_id, NamedValues inputs);

    // Inputs by their flat names as in prompts ("resize_type.width"). In a class with is_input_list
    // every input is a list, and all but list() and grown() look at its first item.
    // REQUIRES: declared as a required input of that type, or has().
    const Value& value(std::string_view name) const;
    const Image& image(std::string_view name) const;
    const Mask& mask(std::string_view name) const;
    // In classes with reads_views instead of the two above, which fail where the value is a view.
    ImageView image_view(std::string_view name) const;
    MaskView mask_view(std::string_view name) const;
    std::int64_t integer(std::string_view name) const;
    // An INT as a size: NodeFailure where it is negative or beyond 2^31 - 1. The limits of an input
    // are checked only where it is a literal, so that a link can bring any number.
    std::size_t size(std::string_view name) const;
    // An INT as a place or distance: beyond 2^40 either way there is nothing any more.
    std::int64_t place(std::string_view name) const;
    std::uint64_t seed(std::string_view name) const;  // INT from 0 to 2^64-1
    double number(std::string_view name) const;
    bool flag(std::string_view name) const;
    const std::string& text(std::string_view name) const;
    const json::value& data(std::string_view name) const;
    template <class T>
    const T& object(std::string_view name) const {
        return dynamic_cast<const T&>(*std::get<std::shared_ptr<const Object>>(value(name)));
    }
    // False also for None.
    bool has(std::string_view name) const;
    // REQUIRES: a class with is_input_list. Empty where the input is missing.
    const std::vector<Value>& list(std::string_view name) const;
    // What is connected to a growing input, in its order: for "images" what the prompt calls
    // "images.image0", "images.image1", …; `name` is the last part ("image0"). In a class with
    // is_input_list each value is a List.
    struct Grown {
        std::string_view name;
        const Value& value;
    };
    std::vector<Grown> grown(std::string_view name) const;

    const std::string& node_id() const { return node_id_; }
    const Folders& folders() const { return surroundings_.folders; }
    const json::object& prompt() const { return surroundings_.prompt; }
    const json::object& extra_pnginfo() const { return surroundings_.extra_pnginfo; }

    // Code::out_of_memory when the engine's limit does not allow it. So that their sides can be
    // walked along, also a picture without pixels may not have longer ones than would fit with one.
    Result<NewImage> new_image(ImageShape shape) const;
    Result<NewMask> new_mask(std::size_t batch, std::size_t height, std::size_t width) const;
    Result<Scratch> new_scratch(std::size_t bytes) const;
    // For memory that a node takes by itself: asked for before it is taken.
    Result<Charge> charge(std::uint64_t bytes) const;
    // The same pixels in one piece: copied, unless they lie so.
    Result<Image> whole(const ImageView& view) const;
    Result<Mask> whole(const MaskView& view) const;
    // The same pixels in memory of their own.
    Result<Pixels> copy(const View& view) const;

    // Runs body(first, last) over [0, rows) in blocks on the pool, sized by what one row costs.
    // Code::cancelled when the run was stopped meanwhile; some rows are then not done.
    Result<> for_rows(
        std::size_t rows,
        std::size_t work_per_row,
        const std::function<void(std::size_t first, std::size_t last)>& body
    ) const;
    // Runs body(i) for each i on the pool and returns the failure with the lowest i. Others may be
    // skipped then.
    Result<> for_each(std::size_t count, const std::function<Result<>(std::size_t)>& body) const;

    // Long loops ask now and then. Any thread.
    bool stopped() const { return surroundings_.stopped(); }
    Result<> check_stopped() const;
    void progress(double value, double max) const;
    // A whole picture file for the client's eyes, as SaveImageWebsocket sends it.
    void preview(ImageFormat format, std::string_view bytes) const;
    // A line of text shown at the node.
    void show_text(std::string_view text) const;

private:
    const Value* find(std::string_view name) const;
    Result<std::shared_ptr<FloatBuffer>> allocate(const ImageShape& shape) const;
    tl::unexpected<Error> no_room(const std::string& needs) const;

    const Surroundings& surroundings_;
    const std::string& node_id_;
    NamedValues inputs_;
};

// The entry of a table of pairs that a combo names; a link can bring a name that is not there.
template <class Table>
const auto& chosen(const Table& table, std::string_view name) {
    for (const auto& [known, entry] : table) {
        if (known == name) {
            return entry;
        }
    }
    throw NodeFailure("KeyError", "'" + std::string(name) + "'");
}

}  // namespace comfyd::engine
