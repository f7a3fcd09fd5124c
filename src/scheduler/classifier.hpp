// The priority of a request, 1 to 10, from what was asked for and what is known of who asked and
// of the work. Pure; each factor is kept for the explanation.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace comfyd::scheduler {

enum class Tier { basic, pro, enterprise };
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

Classification classify(const Circumstances& circumstances);

}  // namespace comfyd::scheduler
