// The memory that node results may take together, and the buffers that count against it.
//
// One Memory belongs to an engine; every buffer keeps it alive and gives its bytes back when the
// last owner lets go. Large blocks that were given back are kept for a while: a fresh one costs a
// page fault for every 4 KB, which for cheap nodes is more than the node itself. Any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>

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

    bool try_reserve(std::uint64_t bytes);
    void* find_spare(std::uint64_t bytes);

    const std::uint64_t bytes_max_;
    std::atomic<std::uint64_t> used_ = 0;
    std::atomic<std::uint64_t> largest_ = 0;
    std::mutex mutex_;          // guards what follows
    std::deque<Spare> spares_;  // oldest first
    std::uint64_t spare_bytes_ = 0;
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
