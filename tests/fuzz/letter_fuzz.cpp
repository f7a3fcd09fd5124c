// What comes over the bus between nodes: whatever can be read is written so that it reads the same.
// An input is the digit of a letter's kind, its JSON text up to the end of the line, and bytes; any
// other is taken for a message as it is.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "cluster/letter.hpp"

namespace {

std::string message_of(std::string_view input) {
    const auto line_end = input.find('\n');
    if (input.empty() || input[0] < '1' || input[0] > '9' || line_end == std::string_view::npos) {
        return std::string(input);
    }
    const std::size_t size = line_end - 1;
    std::string message{'\x01', static_cast<char>(input[0] - '0')};
    for (int shift = 0; shift < 32; shift += 8) {
        message.push_back(static_cast<char>(size >> shift & 0xFF));
    }
    return message.append(input.substr(1, size)).append(input.substr(line_end + 1));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace comfyd::cluster;
    const auto letter = decode(message_of({reinterpret_cast<const char*>(data), size}));
    if (letter && *letter) {
        const std::string written = encode(**letter);
        const auto again = decode(written);
        if (!again || !*again || encode(**again) != written) {
            std::abort();
        }
    }
    return 0;
}
