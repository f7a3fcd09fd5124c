#include "assets/blake3.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "base/crypto.hpp"

#define COMFYD_INLINE [[gnu::always_inline]] inline

namespace comfyd::assets {
namespace {

static_assert(std::endian::native == std::endian::little, "BLAKE3 words are read as they lie");

using Word = std::uint32_t;
using Words = std::array<Word, 8>;
using Block = std::array<Word, 16>;

constexpr std::size_t kBlockBytes = 64;
constexpr std::size_t kBlocksPerChunk = 16;
constexpr Words kIv = {
    0x6A09E667,
    0xBB67AE85,
    0x3C6EF372,
    0xA54FF53A,
    0x510E527F,
    0x9B05688C,
    0x1F83D9AB,
    0x5BE0CD19,
};
constexpr Word kChunkStart = 1;
constexpr Word kChunkEnd = 2;
constexpr Word kParent = 4;
constexpr Word kRoot = 8;
constexpr std::string_view kPrefix = "blake3:";

// Which message word each step of each round takes: the identity, then permuted once more per
// round.
constexpr auto kSchedule = [] {
    constexpr std::array<std::size_t, 16> kPermutation = {
        2,
        6,
        3,
        10,
        7,
        0,
        4,
        13,
        1,
        11,
        12,
        5,
        9,
        14,
        15,
        8,
    };
    std::array<std::array<std::size_t, 16>, 7> schedule{};
    for (std::size_t i = 0; i < 16; ++i) {
        schedule[0][i] = i;
    }
    for (std::size_t round = 1; round < schedule.size(); ++round) {
        for (std::size_t i = 0; i < 16; ++i) {
            schedule[round][i] = schedule[round - 1][kPermutation[i]];
        }
    }
    return schedule;
}();

// The functions below work on one word or on a vector of words, one lane per chunk.
template <int bits, class W>
COMFYD_INLINE void rotate_right(W& word) {
    word = (word >> bits) | (word << (32 - bits));
}

template <class W>
COMFYD_INLINE void mix(W& a, W& b, W& c, W& d, const W& x, const W& y) {
    a += b + x;
    d ^= a;
    rotate_right<16>(d);
    c += d;
    b ^= c;
    rotate_right<12>(b);
    a += b + y;
    d ^= a;
    rotate_right<8>(d);
    c += d;
    b ^= c;
    rotate_right<7>(b);
}

template <std::size_t number, class W>
COMFYD_INLINE void round(W (&v)[16], const W (&m)[16]) {
    constexpr auto& s = kSchedule[number];
    mix(v[0], v[4], v[8], v[12], m[s[0]], m[s[1]]);
    mix(v[1], v[5], v[9], v[13], m[s[2]], m[s[3]]);
    mix(v[2], v[6], v[10], v[14], m[s[4]], m[s[5]]);
    mix(v[3], v[7], v[11], v[15], m[s[6]], m[s[7]]);
    mix(v[0], v[5], v[10], v[15], m[s[8]], m[s[9]]);
    mix(v[1], v[6], v[11], v[12], m[s[10]], m[s[11]]);
    mix(v[2], v[7], v[8], v[13], m[s[12]], m[s[13]]);
    mix(v[3], v[4], v[9], v[14], m[s[14]], m[s[15]]);
}

template <class W>
COMFYD_INLINE void all_rounds(W (&v)[16], const W (&m)[16]) {
    round<0>(v, m);
    round<1>(v, m);
    round<2>(v, m);
    round<3>(v, m);
    round<4>(v, m);
    round<5>(v, m);
    round<6>(v, m);
}

// What is known of a node of the tree before it is decided whether it is the root.
struct Node {
    Words input;
    Block block{};
    std::uint64_t counter = 0;
    Word length = kBlockBytes;
    Word flags = 0;

    Words compress(Word more_flags = 0) const {
        Word v[16] = {
            input[0],
            input[1],
            input[2],
            input[3],
            input[4],
            input[5],
            input[6],
            input[7],
            kIv[0],
            kIv[1],
            kIv[2],
            kIv[3],
            static_cast<Word>(counter),
            static_cast<Word>(counter >> 32),
            length,
            flags | more_flags,
        };
        Word m[16];
        std::memcpy(m, block.data(), sizeof m);
        all_rounds(v, m);
        Words out;
        for (std::size_t i = 0; i < out.size(); ++i) {
            out[i] = v[i] ^ v[i + 8];
        }
        return out;
    }
};

Node parent_of(const Words& left, const Words& right) {
    Node node{.input = kIv, .flags = kParent};
    std::copy(left.begin(), left.end(), node.block.begin());
    std::copy(right.begin(), right.end(), node.block.begin() + 8);
    return node;
}

// The last block of a chunk; the ones before it are compressed here.
Node last_node(const std::uint8_t* chunk, std::size_t size, std::uint64_t counter) {
    Node node{.input = kIv, .counter = counter, .flags = kChunkStart};
    while (size > kBlockBytes) {
        std::memcpy(node.block.data(), chunk, kBlockBytes);
        node.input = node.compress();
        node.flags = 0;
        chunk += kBlockBytes;
        size -= kBlockBytes;
    }
    node.block = {};
    if (size > 0) {
        std::memcpy(node.block.data(), chunk, size);
    }
    node.length = static_cast<Word>(size);
    node.flags |= kChunkEnd;
    return node;
}

// Compresses `lanes` whole chunks that lie one after the other.
template <class W>
COMFYD_INLINE void hash_chunks(const std::uint8_t* data, std::uint64_t counter, Words* out) {
    constexpr std::size_t lanes = sizeof(W) / sizeof(Word);
    W counter_low{};
    W counter_high{};
    for (std::size_t lane = 0; lane < lanes; ++lane) {
        counter_low[lane] = static_cast<Word>(counter + lane);
        counter_high[lane] = static_cast<Word>((counter + lane) >> 32);
    }
    W chaining[8];
    for (std::size_t i = 0; i < 8; ++i) {
        chaining[i] = W{} + kIv[i];
    }
    for (std::size_t block = 0; block < kBlocksPerChunk; ++block) {
        Word words[16][lanes];
        for (std::size_t lane = 0; lane < lanes; ++lane) {
            Word from[16];
            std::memcpy(from, data + lane * 1024 + block * kBlockBytes, kBlockBytes);
            for (std::size_t i = 0; i < 16; ++i) {
                words[i][lane] = from[i];
            }
        }
        W m[16];
        std::memcpy(m, words, sizeof m);
        const Word flags =
            (block == 0 ? kChunkStart : 0) | (block == kBlocksPerChunk - 1 ? kChunkEnd : 0);
        W v[16];
        for (std::size_t i = 0; i < 8; ++i) {
            v[i] = chaining[i];
        }
        for (std::size_t i = 0; i < 4; ++i) {
            v[i + 8] = W{} + kIv[i];
        }
        v[12] = counter_low;
        v[13] = counter_high;
        v[14] = W{} + static_cast<Word>(kBlockBytes);
        v[15] = W{} + flags;
        all_rounds(v, m);
        for (std::size_t i = 0; i < 8; ++i) {
            chaining[i] = v[i] ^ v[i + 8];
        }
    }
    for (std::size_t lane = 0; lane < lanes; ++lane) {
        for (std::size_t i = 0; i < 8; ++i) {
            out[lane][i] = chaining[i][lane];
        }
    }
}

using FourWords = Word __attribute__((vector_size(16)));
using EightWords = Word __attribute__((vector_size(32)));
constexpr std::size_t kLanes = 8;

void hash_eight_with_four(const std::uint8_t* data, std::uint64_t counter, Words* out) {
    hash_chunks<FourWords>(data, counter, out);
    hash_chunks<FourWords>(data + 4096, counter + 4, out + 4);
}

#if defined(__x86_64__)
[[gnu::target("avx2")]] void hash_eight_with_avx2(
    const std::uint8_t* data, std::uint64_t counter, Words* out
) {
    hash_chunks<EightWords>(data, counter, out);
}
#endif

void hash_eight(const std::uint8_t* data, std::uint64_t counter, Words* out) {
#if defined(__x86_64__)
    static const bool has_avx2 = __builtin_cpu_supports("avx2") != 0;
    if (has_avx2) {
        hash_eight_with_avx2(data, counter, out);
        return;
    }
#endif
    hash_eight_with_four(data, counter, out);
}

}  // namespace

Blake3::Blake3() = default;

// REQUIRES: more input follows, so that no node made here is the root.
void Blake3::push_chunk(Words chaining_value) {
    ++chunks_;
    for (std::uint64_t total = chunks_; (total & 1) == 0; total >>= 1) {
        chaining_value = parent_of(stack_[--stack_size_], chaining_value).compress();
    }
    stack_[stack_size_++] = chaining_value;
}

void Blake3::update(std::string_view data) {
    const auto* from = reinterpret_cast<const std::uint8_t*>(data.data());
    std::size_t left = data.size();
    while (left > 0) {
        if (chunk_size_ == kChunkBytes) {
            push_chunk(last_node(chunk_.data(), kChunkBytes, chunks_).compress());
            chunk_size_ = 0;
        }
        if (chunk_size_ == 0 && left > kLanes * kChunkBytes) {
            Words done[kLanes];
            hash_eight(from, chunks_, done);
            for (const Words& chaining_value : done) {
                push_chunk(chaining_value);
            }
            from += kLanes * kChunkBytes;
            left -= kLanes * kChunkBytes;
            continue;
        }
        const std::size_t taken = std::min(left, kChunkBytes - chunk_size_);
        std::memcpy(chunk_.data() + chunk_size_, from, taken);
        chunk_size_ += taken;
        from += taken;
        left -= taken;
    }
}

std::array<std::uint8_t, 32> Blake3::digest() const {
    Node node = last_node(chunk_.data(), chunk_size_, chunks_);
    for (std::size_t i = stack_size_; i > 0; --i) {
        node = parent_of(stack_[i - 1], node.compress());
    }
    const Words root = node.compress(kRoot);
    std::array<std::uint8_t, 32> bytes;
    std::memcpy(bytes.data(), root.data(), bytes.size());
    return bytes;
}

std::string Blake3::hex() const {
    const auto bytes = digest();
    return to_hex(bytes.data(), bytes.size());
}

std::string blake3_name(std::string_view data) {
    Blake3 hash;
    hash.update(data);
    return std::string(kPrefix) + hash.hex();
}

bool is_blake3_name(std::string_view text) {
    return text.size() == kPrefix.size() + 64 && text.starts_with(kPrefix) &&
           std::all_of(text.begin() + kPrefix.size(), text.end(), [](char c) {
               return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
           });
}

}  // namespace comfyd::assets
