#include "assets/crc32.hpp"

#include <zlib.h>

namespace comfyd::assets {

std::uint32_t update_crc32(std::uint32_t so_far, std::string_view bytes) {
    return static_cast<std::uint32_t>(
        ::crc32_z(so_far, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size())
    );
}

}  // namespace comfyd::assets
