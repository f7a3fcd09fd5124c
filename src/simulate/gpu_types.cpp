#include "simulate/gpu_types.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "base/text.hpp"

namespace comfyd::simulate {
namespace {

constexpr double kGigabyte = 1e9;
// Of the memory, for models of earlier runs; the rest is for the run itself.
constexpr double kModelShare = 0.5;

GpuType make(
    const char* name, double speed, double vram_gb, double load_mb_per_s, double usd_per_hour
) {
    return {
        name,
        speed,
        static_cast<std::uint64_t>(vram_gb * kGigabyte),
        static_cast<std::uint64_t>(vram_gb * kModelShare * kGigabyte),
        load_mb_per_s * 1e6,
        usd_per_hour
    };
}

Result<> read_number(
    const json::object& from, const std::string& type, const char* key, double scale, double& into
) {
    const auto number = json::find_number(from, key);
    if (!number) {
        return fail(number.error());
    }
    if (!*number) {
        return {};
    }
    if (!std::isfinite(**number) || **number < 0 || **number > 1e9) {
        return fail(
            Code::invalid_argument,
            "'" + std::string(key) + "' of the GPU type '" + type + "' must be a number from 0 on"
        );
    }
    into = **number * scale;
    return {};
}

Result<> read_type(const json::object& from, GpuType& type) {
    auto vram = static_cast<double>(type.vram_bytes);
    auto memory = static_cast<double>(type.model_memory_bytes);
    const struct {
        const char* key;
        double scale;
        double& into;
    } fields[] = {
        {"speed", 1, type.speed},
        {"vram_gb", kGigabyte, vram},
        {"model_memory_gb", kGigabyte, memory},
        {"load_mb_per_s", 1e6, type.load_bytes_per_second},
        {"usd_per_hour", 1, type.usd_per_hour},
    };
    for (const auto& field : fields) {
        if (auto done = read_number(from, type.name, field.key, field.scale, field.into); !done) {
            return done;
        }
    }
    type.vram_bytes = static_cast<std::uint64_t>(vram);
    type.model_memory_bytes = static_cast<std::uint64_t>(memory);
    if (type.speed <= 0 || type.load_bytes_per_second <= 0) {
        return fail(
            Code::invalid_argument,
            "the GPU type '" + type.name + "' needs 'speed' and 'load_mb_per_s' above 0"
        );
    }
    return {};
}

}  // namespace

GpuTable::GpuTable()
    : types_{
          make("T4", 0.16, 16, 1'000, 0.35),
          make("L4", 0.33, 24, 1'500, 0.70),
          make("A10", 0.40, 24, 1'500, 0.75),
          make("RTX3090", 0.45, 24, 1'500, 0.25),
          make("RTX4090", 0.95, 24, 2'000, 0.50),
          make("RTX5090", 1.30, 32, 2'500, 0.80),
          make("A6000", 0.50, 48, 1'500, 0.60),
          make("L40S", 1.00, 48, 2'000, 1.00),
          make("A100", 0.95, 80, 2'000, 1.60),
          make("H100", 1.90, 80, 3'000, 2.80),
          make("H200", 2.00, 141, 3'000, 3.60),
          make("B200", 3.50, 192, 3'500, 6.00),
      } {}

const GpuType* GpuTable::find(std::string_view name) const {
    const std::string wanted = lower(name);
    const auto found = std::ranges::find_if(types_, [&](const GpuType& type) {
        return lower(type.name) == wanted;
    });
    return found == types_.end() ? nullptr : &*found;
}

Result<> GpuTable::read(const json::object& from) {
    for (const auto& entry : from) {
        const json::object* fields = entry.value().if_object();
        const std::string name(entry.key().data(), entry.key().size());
        if (fields == nullptr || name.empty()) {
            return fail(Code::invalid_argument, "the GPU type '" + name + "' must be an object");
        }
        const GpuType* known = find(name);
        GpuType type = known != nullptr ? *known : GpuType();
        type.name = known != nullptr ? known->name : name;
        if (auto done = read_type(*fields, type); !done) {
            return done;
        }
        std::erase_if(types_, [&](const GpuType& one) { return one.name == type.name; });
        types_.push_back(std::move(type));
    }
    return {};
}

Result<Fleet> parse_fleet(std::string_view text, const GpuTable& table) {
    Fleet fleet;
    while (!text.empty()) {
        const auto comma = std::min(text.find(','), text.size());
        const std::string_view part = text.substr(0, comma);
        text.remove_prefix(std::min(comma + 1, text.size()));
        std::size_t count = 1;
        std::string_view name = part;
        if (const auto x = part.find('x'); x != part.npos && x > 0) {
            const auto read = std::from_chars(part.data(), part.data() + x, count);
            if (read.ec == std::errc() && read.ptr == part.data() + x) {
                name = part.substr(x + 1);
            } else {
                count = 1;
            }
        }
        const GpuType* type = table.find(name);
        if (type == nullptr) {
            std::string names;
            for (const GpuType& known : table.all()) {
                names += names.empty() ? known.name : ", " + known.name;
            }
            return fail(
                Code::invalid_argument,
                "'" + std::string(part) + "' is no part of a fleet such as 8xL40S; there are " +
                    names + " (more by --gpus FILE)"
            );
        }
        if (count > kFleetMax - std::min(fleet.size(), kFleetMax)) {
            return fail(
                Code::invalid_argument,
                "a fleet has at most " + std::to_string(kFleetMax) + " workers"
            );
        }
        fleet.insert(fleet.end(), count, *type);
    }
    if (fleet.empty()) {
        return fail(Code::invalid_argument, "the fleet has no workers; name some, as in 8xL40S");
    }
    return fleet;
}

std::string describe_fleet(const Fleet& fleet) {
    std::map<std::string, std::size_t> counts;
    for (const GpuType& type : fleet) {
        ++counts[type.name];
    }
    std::string text;
    for (const auto& [name, count] : counts) {
        text += (text.empty() ? "" : ",") + std::to_string(count) + "x" + name;
    }
    return text;
}

}  // namespace comfyd::simulate
