// The priority of a request, 1 to 10, from what was asked for and what is known of who asked and
// of the work. Pure; any thread. What decided it is kept with a waiting job in 16 bits, from which
// each factor and its reason are told when somebody asks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace comfyd::scheduler {

// The ordinary one first: 0 changes nothing.
enum class Tier { basic, free, premium, pro, enterprise };
std::string_view to_string(Tier tier);
std::optional<Tier> parse_tier(std::string_view text);

// What is not known is left at its default and changes nothing.
struct Circumstances {
    int base_priority = 5;
    Tier tier = Tier::basic;
    std::optional<double> expected_seconds{};
    // Memory that it needs as a part of what the largest GPU has.
    std::optional<double> memory_part{};
    // Part of its models' bytes that some worker has loaded.
    std::optional<double> cached_part{};
    // Part of the quota that is left to who asked.
    std::optional<double> quota_left{};
};

// The step on which each circumstance stands; the cached part in tenths. All 0: nothing is known.
struct Grounds {
    std::uint16_t bits = 0;

    bool operator==(const Grounds&) const = default;
};
Grounds grounds_of(const Circumstances& circumstances);
int priority_of(int base_priority, Grounds grounds);

struct Factor {
    std::string name;
    double weight = 0;      // -1 .. 1; 0: changes nothing
    double multiplier = 1;  // 1 + 0.2 x weight; of the tier: its own
    std::string reason;
};

struct Classification {
    int priority = 5;
    double score = 5;  // before it was cut to a whole number of 1 to 10
    std::vector<Factor> factors;
};

Classification classify(int base_priority, Grounds grounds);
Classification classify(const Circumstances& circumstances);

}  // namespace comfyd::scheduler
