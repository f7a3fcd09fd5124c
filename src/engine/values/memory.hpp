// The memory that node results may take together, and what counts against it: buffers of floats,
// and charges for all that lies elsewhere, such as texts.
//
// One Memory belongs to an engine; every buffer and charge keeps it alive and gives its bytes back
// when the last owner lets go. Large blocks that were given back are kept for a while: a fresh one
// costs a page fault for every 4 KB, which for cheap nodes is more than the node itself. Any
// thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <utility>

#include "base/mutex.hpp"

namespace comfyd::engine {

class Memory {
public:
    explicit Memory(std::uint64_t bytes_max);
    ~Memory();
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;

    // nullptr when the limit, or the system, does not have that much.
    void* try_take(std::uint64_t bytes);
    void give_back(void* block, std::uint64_t bytes);
    // The same without a block. False when the limit does not have that much.
    bool try_reserve(std::uint64_t bytes);
    void release(std::uint64_t bytes) { used_.fetch_sub(bytes, std::memory_order_relaxed); }
    // Spare blocks go to the system. For those who count what it has.
    void drop_spares();
    std::uint64_t used() const { return used_.load(std::memory_order_relaxed); }
    std::uint64_t max() const { return bytes_max_; }
    // The largest block that was ever taken: what a node may want, as far as one can know.
    std::uint64_t largest() const { return largest_.load(std::memory_order_relaxed); }

private:
    struct Spare {
        void* block;
        std::uint64_t bytes;
    };

    void* find_spare(std::uint64_t bytes);

    const std::uint64_t bytes_max_;
    std::atomic<std::uint64_t> used_ = 0;
    std::atomic<std::uint64_t> largest_ = 0;
    Mutex mutex_;
    std::deque<Spare> spares_ COMFYD_GUARDED_BY(mutex_);  // oldest first
    std::uint64_t spare_bytes_ COMFYD_GUARDED_BY(mutex_) = 0;
};

// Bytes that lie elsewhere and count for as long as this lives.
class Charge {
public:
    Charge() = default;
    // nullopt when the limit does not have that much.
    static std::optional<Charge> try_make(
        const std::shared_ptr<Memory>& memory, std::uint64_t bytes
    );
    ~Charge();
    Charge(Charge&& other) noexcept;
    Charge& operator=(Charge&& other) noexcept;

    // Counts for both. REQUIRES: of the same memory, where there is one.
    void join(Charge other);
    std::uint64_t bytes() const { return bytes_; }

private:
    Charge(std::shared_ptr<Memory> memory, std::uint64_t bytes)
        : memory_(std::move(memory)), bytes_(bytes) {}

    std::shared_ptr<Memory> memory_;  // shared with the engine; none: nothing is counted
    std::uint64_t bytes_ = 0;
};

// Floats without initial values, aligned for vector instructions.
class FloatBuffer {
public:
    // nullptr when the limit, or the system, does not have that much.
    static std::shared_ptr<FloatBuffer> try_make(
        const std::shared_ptr<Memory>& memory, std::size_t count
    );
    ~FloatBuffer();
    FloatBuffer(const FloatBuffer&) = delete;
    FloatBuffer& operator=(const FloatBuffer&) = delete;

    float* data() { return data_; }
    const float* data() const { return data_; }
    std::size_t size() const { return count_; }
    std::uint64_t bytes() const { return std::uint64_t{count_} * sizeof(float); }

private:
    FloatBuffer(std::shared_ptr<Memory> memory, float* data, std::size_t count);

    std::shared_ptr<Memory> memory_;  // shared with the engine and all other buffers
    float* data_;
    std::size_t count_;
};

}  // namespace comfyd::engine
