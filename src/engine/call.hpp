// What a node sees while it runs: its inputs, memory for its results, the pool, and the wish to
// stop.
//
// Lives for one execution of one node, on one thread; only the functions handed to for_rows() and
// for_each() run on others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "base/json.hpp"
#include "engine/engine.hpp"
#include "engine/memory.hpp"
#include "engine/pool.hpp"
#include "engine/value.hpp"

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
    std::function<void(const std::string& node_id, int value, int max)> progress;  // any thread
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

class Call {
public:
    Call(
        const Surroundings& surroundings,
        const std::string& node_id,
        std::map<std::string, Value, std::less<>> inputs
    );

    // REQUIRES: declared as a required input of that type, or has().
    const Image& image(std::string_view name) const;
    const Mask& mask(std::string_view name) const;
    std::int64_t integer(std::string_view name) const;
    double number(std::string_view name) const;
    bool flag(std::string_view name) const;
    const std::string& text(std::string_view name) const;
    bool has(std::string_view name) const;

    const Folders& folders() const { return surroundings_.folders; }
    const json::object& prompt() const { return surroundings_.prompt; }
    const json::object& extra_pnginfo() const { return surroundings_.extra_pnginfo; }

    // Code::out_of_memory when the engine's limit does not allow it.
    Result<NewImage> new_image(ImageShape shape) const;
    Result<NewMask> new_mask(std::size_t batch, std::size_t height, std::size_t width) const;
    Result<Scratch> new_scratch(std::size_t bytes) const;

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
    void progress(int value, int max) const;

private:
    const Value& get(std::string_view name) const;
    Result<std::shared_ptr<FloatBuffer>> allocate(const ImageShape& shape) const;

    const Surroundings& surroundings_;
    const std::string& node_id_;
    std::map<std::string, Value, std::less<>> inputs_;
};

}  // namespace comfyd::engine
