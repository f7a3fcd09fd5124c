// The types of GPU that a simulated fleet is made of. The figures of the built-in table are
// assumptions, rounded from public data sheets and price lists: good enough to compare fleets, no
// promise about any one card. A file may replace or add to them. Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/json.hpp"

namespace comfyd::simulate {

struct GpuType {
    std::string name;
    double speed = 1;  // of diffusion sampling; L40S is 1
    std::uint64_t vram_bytes = 0;
    std::uint64_t model_memory_bytes = 0;  // for models that stay loaded beside the latest ones
    double load_bytes_per_second = 0;      // of a model file into its memory
    double usd_per_hour = 0;
};

class GpuTable {
public:
    GpuTable();  // the built-in one

    // nullptr when there is no such type. Case does not count.
    const GpuType* find(std::string_view name) const;
    const std::vector<GpuType>& all() const { return types_; }
    // {"L40S": {"speed": 1, "vram_gb": 48, "model_memory_gb": 24, "load_mb_per_s": 2000,
    // "usd_per_hour": 1.8}, …}; what is left out stays as it is. Code::invalid_argument.
    Result<> read(const json::object& from);

private:
    std::vector<GpuType> types_;
};

// One worker of each.
using Fleet = std::vector<GpuType>;

inline constexpr std::size_t kFleetMax = 100'000;

// "8xL40S,2xH200". Code::invalid_argument with the names there are.
Result<Fleet> parse_fleet(std::string_view text, const GpuTable& table);
// The other way round.
std::string describe_fleet(const Fleet& fleet);

}  // namespace comfyd::simulate
