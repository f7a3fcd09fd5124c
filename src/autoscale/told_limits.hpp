// Of which limits of budgets somebody was told: of each when little of it is left and when nothing
// is, once until it begins anew. A plain value, which its owner stores.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "autoscale/spending.hpp"
#include "base/json.hpp"

namespace comfyd::autoscale {

// What is to be told of a limit.
struct LimitNews {
    Tightest limit{};
    std::string sentence{};  // for people

    bool is_spent() const { return limit.part() >= 1; }
    std::string_view what() const { return is_spent() ? "budget_spent" : "budget_low"; }
    json::object details() const;
};

class ToldLimits {
public:
    static constexpr double kLow = 0.8;  // of a limit: then little is left

    // Those that nobody was told of yet, which count as told from now on. `whose`: how their
    // sentence begins, such as "the pool"; `remark`: how it ends.
    std::vector<LimitNews> take_news(
        const std::string& whose,
        const std::vector<Tightest>& limits,
        Time now,
        const std::string& remark = ""
    );

    json::object to_json() const;
    static ToldLimits from_json(const json::object& about);

private:
    std::map<std::string, Time> told_;  // each until its limit begins anew
};

}  // namespace comfyd::autoscale
