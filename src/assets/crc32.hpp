// The checksum that zip files have for each of theirs.
#pragma once

#include <cstdint>
#include <string_view>

namespace comfyd::assets {

// Of all bytes so far (0: of none) and these behind them.
std::uint32_t update_crc32(std::uint32_t so_far, std::string_view bytes);

}  // namespace comfyd::assets
