#include "audit/refusals.hpp"

#include "audit/cut_address.hpp"

namespace comfyd::audit {
namespace {

constexpr std::size_t kKindsMax = 1'024;
constexpr std::chrono::seconds kTogether{60};
constexpr const char* kOfMany = "(many)";

// Whoever has one address of a network has all of them.
std::string kind_of(const Event& event) {
    return cut_address(event.from) + '\n' + event.tenant + '\n' + event.key + '\n' + event.action +
           '\n' + std::to_string(event.status);
}

}  // namespace

bool Refusals::is_first(const Event& event, Steady::time_point now) {
    std::string kind = kind_of(event);
    auto found = kinds_.find(kind);
    const bool is_full = kinds_.size() >= kKindsMax;
    if (found == kinds_.end() && is_full) {
        kind = kOfMany;
        found = kinds_.find(kind);
    }
    if (found != kinds_.end()) {
        ++found->second.more;
        return false;
    }
    Event alike = event;
    alike.request.clear();
    alike.trace.clear();
    alike.object.clear();
    if (is_full) {
        alike.from = kOfMany;
        alike.tenant.clear();
        alike.key.clear();
    }
    kinds_.emplace(std::move(kind), Kind{std::move(alike), 0, now});
    return true;
}

std::vector<Event> Refusals::take(Steady::time_point now, bool all) {
    std::vector<Event> counted;
    for (auto kind = kinds_.begin(); kind != kinds_.end();) {
        if (!all && now - kind->second.since < kTogether) {
            ++kind;
            continue;
        }
        if (kind->second.more > 0) {
            counted.push_back(std::move(kind->second.event));
            counted.back().count = kind->second.more;
        }
        kind = kinds_.erase(kind);
    }
    return counted;
}

}  // namespace comfyd::audit
