// BLAKE3, the hash by which Comfy API v2 names content. Written here because Debian has no C
// library of it.
//
// A plain value: feed it pieces of any size with update(), ask for the digest at any time. Long
// input is hashed several chunks at once in vector registers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace comfyd::assets {

class Blake3 {
public:
    Blake3();
    void update(std::string_view data);
    std::array<std::uint8_t, 32> digest() const;
    std::string hex() const;

private:
    static constexpr std::size_t kChunkBytes = 1024;
    using Words = std::array<std::uint32_t, 8>;
    void push_chunk(Words chaining_value);

    std::array<Words, 54> stack_{};  // chaining values of finished subtrees
    std::size_t stack_size_ = 0;
    std::uint64_t chunks_ = 0;  // finished before the current one
    std::array<std::uint8_t, kChunkBytes> chunk_{};
    std::size_t chunk_size_ = 0;
};

// "blake3:<hex>"
std::string blake3_name(std::string_view data);
bool is_blake3_name(std::string_view text);

}  // namespace comfyd::assets
