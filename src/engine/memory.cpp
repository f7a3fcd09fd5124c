#include "engine/memory.hpp"

#include <new>
#include <utility>

namespace comfyd::engine {
namespace {

constexpr std::align_val_t kAlignment{64};

}  // namespace

bool Memory::try_reserve(std::uint64_t bytes) {
    std::uint64_t used = used_.load(std::memory_order_relaxed);
    do {
        if (bytes > bytes_max_ || used > bytes_max_ - bytes) {
            return false;
        }
    } while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
    return true;
}

void Memory::release(std::uint64_t bytes) {
    used_.fetch_sub(bytes, std::memory_order_relaxed);
}

std::shared_ptr<FloatBuffer> FloatBuffer::try_make(
    const std::shared_ptr<Memory>& memory, std::size_t count
) {
    const std::uint64_t bytes = std::uint64_t{count} * sizeof(float);
    if (!memory->try_reserve(bytes)) {
        return nullptr;
    }
    auto* data = static_cast<float*>(::operator new(bytes, kAlignment, std::nothrow));
    if (data == nullptr) {
        memory->release(bytes);
        return nullptr;
    }
    return std::shared_ptr<FloatBuffer>(new FloatBuffer(memory, data, count));
}

FloatBuffer::FloatBuffer(std::shared_ptr<Memory> memory, float* data, std::size_t count)
    : memory_(std::move(memory)), data_(data), count_(count) {}

FloatBuffer::~FloatBuffer() {
    ::operator delete(data_, kAlignment);
    memory_->release(bytes());
}

}  // namespace comfyd::engine
