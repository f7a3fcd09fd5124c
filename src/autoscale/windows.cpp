#include "autoscale/windows.hpp"

#include <algorithm>

namespace comfyd::autoscale {

void Arrivals::note(Time now, double total_s) {
    if (!samples_.empty() && (total_s < samples_.back().total_s || now < samples_.back().at)) {
        samples_.clear();
    }
    // The latest stands for what has come until now; those before it are a second apart.
    if (samples_.size() > 1 &&
        samples_.back().at - samples_[samples_.size() - 2].at < std::chrono::seconds(1)) {
        samples_.back() = {now, total_s};
    } else {
        samples_.push_back({now, total_s});
    }
    // One that is older than the window is kept, for what came in its first second.
    while (samples_.size() > 2 && now - samples_[1].at >= kKept) {
        samples_.pop_front();
    }
}

// What came before the first look is not counted.
double Arrivals::total_until(Time at) const {
    const auto after = std::ranges::upper_bound(samples_, at, {}, &Sample::at);
    return after == samples_.begin() ? samples_.front().total_s : std::prev(after)->total_s;
}

double Arrivals::rate(Time now, Millis window) const {
    if (samples_.empty()) {
        return 0;
    }
    const double seconds = std::chrono::duration<double>(window).count();
    return (samples_.back().total_s - total_until(now - window)) / seconds;
}

double Arrivals::lasting_rate(Time now, Millis window, int parts) const {
    if (samples_.empty()) {
        return 0;
    }
    const Millis part = window / parts;
    double all = 0;
    double most = 0;
    double before = total_until(now - part * parts);
    for (int at = parts - 1; at >= 0; --at) {
        const double until = total_until(now - part * at);
        all += until - before;
        most = std::max(most, until - before);
        before = until;
    }
    return (all - most) / std::chrono::duration<double>(part * (parts - 1)).count();
}

void RecentMost::note(Time now, int value, Millis window) {
    while (!values_.empty() && values_.back().value <= value) {
        values_.pop_back();
    }
    values_.push_back({now, value});
    while (now - values_.front().at > window) {
        values_.pop_front();
    }
}

}  // namespace comfyd::autoscale
