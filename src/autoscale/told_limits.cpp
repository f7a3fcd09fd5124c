#include "autoscale/told_limits.hpp"

#include <cmath>
#include <utility>

namespace comfyd::autoscale {

json::object LimitNews::details() const {
    return {
        {"limit_usd", limit.limit_usd},
        {"spent_usd", limit.spent_usd},
        {"until", to_rfc3339(limit.until)},
    };
}

std::vector<LimitNews> ToldLimits::take_news(
    const std::string& whose,
    const std::vector<Tightest>& limits,
    Time now,
    const std::string& remark
) {
    std::erase_if(told_, [now](const auto& one) { return one.second <= now; });
    std::vector<LimitNews> all;
    for (const Tightest& limit : limits) {
        LimitNews news{limit};
        const std::string which = whose + remark + "/" + std::string(to_string(limit.span)) +
                                  (news.is_spent() ? "/spent" : "/low");
        const bool is_new = limit.part() >= kLow && told_.emplace(which, limit.until).second;
        if (is_new) {
            const std::string percent = std::to_string(std::lround(limit.part() * 100));
            news.sentence = whose + " has spent " + percent + " % of what it may in " +
                            std::string(in_words(limit.span)) + remark;
            all.push_back(std::move(news));
        }
    }
    return all;
}

json::object ToldLimits::to_json() const {
    json::object about;
    for (const auto& [which, until] : told_) {
        about[which] = to_unix_ms(until);
    }
    return about;
}

ToldLimits ToldLimits::from_json(const json::object& about) {
    ToldLimits told;
    for (const auto& one : about) {
        if (one.value().is_int64()) {
            told.told_[one.key()] = from_unix_ms(one.value().get_int64());
        }
    }
    return told;
}

}  // namespace comfyd::autoscale
