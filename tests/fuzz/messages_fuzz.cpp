// Frames of a worker's WebSocket: the first byte says whether the rest is text or binary.
#include <cstdint>
#include <string_view>

#include "comfy/messages.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) {
        return 0;
    }
    const std::string_view frame(reinterpret_cast<const char*>(data + 1), size - 1);
    const auto message =
        data[0] % 2 == 0 ? comfyd::comfy::decode_text(frame) : comfyd::comfy::decode_binary(frame);
    (void)comfyd::comfy::prompt_id_of(message);
    return 0;
}
