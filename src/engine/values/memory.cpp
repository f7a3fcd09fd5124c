#include "engine/values/memory.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "engine/nodes/kernel.hpp"

namespace comfyd::engine {
namespace {

constexpr std::align_val_t kAlignment{64};
constexpr std::uint64_t kBlockBytes = 256;             // that go with a block of any size
constexpr std::uint64_t kSpareBytesMin = 1024 * 1024;  // of a block that is worth keeping
#if defined(COMFYD_SANITIZED)
constexpr std::uint64_t kSparesBytesMax = 0;  // so that a use after the end is seen
#else
constexpr std::uint64_t kSparesBytesMax = 256 * 1024 * 1024;  // of all of them
#endif
constexpr std::uint64_t kSparesShare = 8;  // at most one part in so many of the limit

}  // namespace

Memory::Memory(std::uint64_t bytes_max) : bytes_max_(bytes_max) {}

Memory::~Memory() {
    drop_spares();
}

bool Memory::try_reserve(std::uint64_t bytes) {
    std::uint64_t used = used_.load(std::memory_order_relaxed);
    do {
        if (bytes > bytes_max_ || used > bytes_max_ - bytes) {
            return false;
        }
    } while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
    return true;
}

void* Memory::try_take(std::uint64_t bytes) {
    if (!try_reserve(bytes + kBlockBytes)) {
        return nullptr;
    }
    std::uint64_t largest = largest_.load(std::memory_order_relaxed);
    while (largest < bytes &&
           !largest_.compare_exchange_weak(largest, bytes, std::memory_order_relaxed)) {
    }
    void* block = bytes >= kSpareBytesMin ? find_spare(bytes) : nullptr;
    if (block == nullptr) {
        block = ::operator new(bytes, kAlignment, std::nothrow);
    }
    if (block == nullptr) {
        drop_spares();
        block = ::operator new(bytes, kAlignment, std::nothrow);
    }
    if (block == nullptr) {
        release(bytes + kBlockBytes);
    }
    return block;
}

// Of exactly this size: pictures of a workflow have few sizes.
void* Memory::find_spare(std::uint64_t bytes) {
    const Lock lock(mutex_);
    const auto found = std::ranges::find(spares_, bytes, &Spare::bytes);
    if (found == spares_.end()) {
        return nullptr;
    }
    void* block = found->block;
    spare_bytes_ -= bytes;
    spares_.erase(found);
    return block;
}

void Memory::give_back(void* block, std::uint64_t bytes) {
    release(bytes + kBlockBytes);
    const std::uint64_t limit = std::min(kSparesBytesMax, bytes_max_ / kSparesShare);
    if (bytes < kSpareBytesMin || bytes > limit) {
        ::operator delete(block, kAlignment);
        return;
    }
    const Lock lock(mutex_);
    spares_.push_back({block, bytes});
    spare_bytes_ += bytes;
    while (spare_bytes_ > limit) {
        ::operator delete(spares_.front().block, kAlignment);
        spare_bytes_ -= spares_.front().bytes;
        spares_.pop_front();
    }
}

void Memory::drop_spares() {
    const Lock lock(mutex_);
    for (const Spare& spare : spares_) {
        ::operator delete(spare.block, kAlignment);
    }
    spares_.clear();
    spare_bytes_ = 0;
}

std::optional<Charge> Charge::try_make(const std::shared_ptr<Memory>& memory, std::uint64_t bytes) {
    if (!memory->try_reserve(bytes)) {
        return std::nullopt;
    }
    return Charge(memory, bytes);
}

Charge::~Charge() {
    if (memory_) {
        memory_->release(bytes_);
    }
}

Charge::Charge(Charge&& other) noexcept
    : memory_(std::exchange(other.memory_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

Charge& Charge::operator=(Charge&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(bytes_, other.bytes_);
    return *this;
}

void Charge::join(Charge other) {
    if (!memory_) {
        std::swap(memory_, other.memory_);
    }
    bytes_ += std::exchange(other.bytes_, 0);
}

std::shared_ptr<FloatBuffer> FloatBuffer::try_make(
    const std::shared_ptr<Memory>& memory, std::size_t count
) {
    void* block = memory->try_take(std::uint64_t{count} * sizeof(float));
    if (block == nullptr) {
        return nullptr;
    }
    return std::shared_ptr<FloatBuffer>(new FloatBuffer(memory, static_cast<float*>(block), count));
}

FloatBuffer::FloatBuffer(std::shared_ptr<Memory> memory, float* data, std::size_t count)
    : memory_(std::move(memory)), data_(data), count_(count) {}

FloatBuffer::~FloatBuffer() {
    memory_->give_back(data_, bytes());
}

}  // namespace comfyd::engine
