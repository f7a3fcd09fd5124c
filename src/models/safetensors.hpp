// Reading the head of a safetensors file, which may be anybody's: what is in the file, and whether
// it is whole. 8 bytes with the length of a JSON text, the text, and behind it the tensors, which
// cover the rest of the file without holes: so a file that was cut off is found without any hash.
//
// The text is read in pieces and never held, so a head of 100 MB costs a few bytes for each tensor.
// Pure, but for read_safetensors().
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "models/family.hpp"

namespace comfyd::models {

inline constexpr std::uint64_t kSafetensorsHeadMax = 100'000'000;  // of the JSON, by the format

struct SafetensorsInfo {
    std::uint64_t bytes = 0;  // of the whole file
    std::uint64_t tensors = 0;
    std::string dtype{};  // that most bytes have, as in the file: "F16"
    Family family{};

    friend bool operator==(const SafetensorsInfo&, const SafetensorsInfo&) = default;
};

// Takes a file from its start on, in pieces of any size, until it has its head.
class SafetensorsReader {
public:
    // `file_bytes`: of the whole file, which the tensors must cover exactly.
    explicit SafetensorsReader(std::uint64_t file_bytes);
    ~SafetensorsReader();
    SafetensorsReader(SafetensorsReader&&) noexcept;
    SafetensorsReader& operator=(SafetensorsReader&&) noexcept;

    // Code::invalid_argument: it is no safetensors file, or not one of that size. Nothing more is
    // to be given to it then.
    Result<> put(std::string_view bytes);
    bool is_done() const;
    // Code::invalid_argument: the head is not whole.
    Result<SafetensorsInfo> info() const;

private:
    struct State;
    std::unique_ptr<State> state_;
};

// Code::not_found, Code::invalid_argument, Code::storage_unavailable. Blocks.
Result<SafetensorsInfo> read_safetensors(const std::filesystem::path& path);

}  // namespace comfyd::models
