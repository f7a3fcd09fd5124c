#include "autoscale/starts.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace comfyd::autoscale {
namespace {

double at_part(std::vector<double> sorted, double part) {
    if (sorted.empty()) {
        return Starts::kUsual;
    }
    std::ranges::sort(sorted);
    const double last = static_cast<double>(sorted.size() - 1);
    return sorted[static_cast<std::size_t>(std::lround(std::clamp(part, 0.0, 1.0) * last))];
}

}  // namespace

void Starts::note(const std::string& place, double seconds) {
    if (!std::isfinite(seconds) || seconds < 0 ||
        (!places_.contains(place) && places_.size() >= kPlacesMax)) {
        return;
    }
    std::deque<double>& known = places_[place];
    known.push_back(seconds);
    if (known.size() > kKept) {
        known.pop_front();
    }
}

double Starts::seconds(const std::string& place, double part) const {
    const auto found = places_.find(place);
    return found == places_.end() ? seconds(part)
                                  : at_part({found->second.begin(), found->second.end()}, part);
}

double Starts::seconds(double part) const {
    std::vector<double> all;
    for (const auto& [place, known] : places_) {
        all.insert(all.end(), known.begin(), known.end());
    }
    return at_part(std::move(all), part);
}

std::size_t Starts::known() const {
    std::size_t all = 0;
    for (const auto& [place, known] : places_) {
        all += known.size();
    }
    return all;
}

json::object Starts::shown() const {
    const auto rounded = [](double value) { return std::round(value * 100) / 100; };
    json::object about;
    for (const auto& [place, known] : places_) {
        about[place] = json::object{
            {"p50", rounded(seconds(place, 0.5))}, {"p90", rounded(seconds(place, 0.9))}
        };
    }
    return about;
}

json::object Starts::to_json() const {
    json::object about;
    for (const auto& [place, known] : places_) {
        about[place] = json::array(known.begin(), known.end());
    }
    return about;
}

Starts Starts::from_json(const json::object& about) {
    Starts starts;
    for (const auto& place : about) {
        if (!place.value().is_array()) {
            continue;
        }
        for (const json::value& seconds : place.value().get_array()) {
            if (seconds.is_number()) {
                starts.note(place.key(), seconds.to_number<double>());
            }
        }
    }
    return starts;
}

}  // namespace comfyd::autoscale
