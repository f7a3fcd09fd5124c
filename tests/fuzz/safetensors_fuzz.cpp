// The head of a model that came from a stranger's server.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "models/safetensors.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace comfyd;
    const std::string_view file(reinterpret_cast<const char*>(data), size);
    // It means the same in one piece and in many.
    const auto read = [&](std::size_t step) -> Result<models::SafetensorsInfo> {
        models::SafetensorsReader reader(file.size());
        for (std::size_t at = 0; at < file.size() && !reader.is_done(); at += step) {
            if (auto put = reader.put(file.substr(at, step)); !put) {
                return fail(std::move(put.error()));
            }
        }
        return reader.info();
    };
    const auto whole = read(std::max<std::size_t>(file.size(), 1));
    const auto pieces = read(3);
    if (whole.has_value() != pieces.has_value() || (whole && *whole != *pieces)) {
        std::abort();
    }
    return 0;
}
