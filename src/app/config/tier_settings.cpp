// What each tier may: one row for each limit of each tier.
#include "app/config/setting_kinds.hpp"
#include "limits/tiers.hpp"

namespace comfyd::app {
namespace {

constexpr double kAmountMax = 1e12;

Setting row(std::string_view tier, const limits::AllowanceMember& member) {
    const std::string key = "tiers." + std::string(tier) + "." + std::string(member.name);
    return {
        key,
        std::string(member.help) + "; 0: no limit.",
        [key, tier, place = member.place](Config& config, const std::string& text) -> Result<> {
            double value = 0;
            const char* end = text.data() + text.size();
            const auto read = std::from_chars(text.data(), end, value);
            if (read.ec != std::errc() || read.ptr != end || !(value >= 0 && value <= kAmountMax)) {
                return invalid("'" + key + "' must be a number, 0 or more, not '" + text + "'");
            }
            config.tiers.at(tier).*place = value;
            return {};
        },
        [tier, place = member.place](const Config& config) {
            return show_number(config.tiers.of(tier).*place);
        }
    };
}

}  // namespace

std::vector<Setting> tier_settings() {
    std::vector<Setting> rows;
    for (const std::string_view tier : auth::kTiers) {
        for (const limits::AllowanceMember& member : limits::kAllowanceMembers) {
            rows.push_back(row(tier, member));
        }
    }
    return rows;
}

}  // namespace comfyd::app
