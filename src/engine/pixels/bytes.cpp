#include "engine/pixels/bytes.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "engine/pixels.hpp"

namespace comfyd::engine {

Result<> expect_pillow(const Image& image) {
    const ImageShape& shape = image.shape();
    if (shape.batch > 0 && shape.channels >= 2 && shape.channels <= 4) {
        return {};
    }
    const std::string of_batch = shape.batch == 0 ? std::to_string(shape.width) + ", " : "";
    return node_error(
        "TypeError",
        "Cannot handle this data type: (1, 1, " + of_batch + std::to_string(shape.channels) +
            "), |u1"
    );
}

Result<Image> rounded_to_bytes(const Call& call, const Image& image) {
    return map_values(call, image, [](const float* from, std::size_t count, float* into) {
        std::array<std::uint8_t, 1024> bytes{};
        for (std::size_t done = 0; done < count; done += bytes.size()) {
            const std::size_t part = std::min(bytes.size(), count - done);
            to_bytes(from + done, part, bytes.data());
            std::transform(bytes.begin(), bytes.begin() + part, into + done, &from_byte);
        }
    });
}

}  // namespace comfyd::engine
