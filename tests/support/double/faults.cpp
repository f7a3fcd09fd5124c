#include "support/double/faults.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace comfyd::support {
namespace {

template <class Owner>
struct Flag {
    std::string_view name;
    bool Owner::* member;
};
template <class Owner>
struct Amount {
    std::string_view name;
    std::int64_t Owner::* member;
};

constexpr std::array kRunFlags{
    Flag<RunFaults>{"held", &RunFaults::held},
    Flag<RunFaults>{"hang", &RunFaults::hang},
    Flag<RunFaults>{"hang_interruptible", &RunFaults::hang_interruptible},
    Flag<RunFaults>{"crash_mid_job", &RunFaults::crash_mid_job},
    Flag<RunFaults>{"ws_silence", &RunFaults::ws_silence},
    Flag<RunFaults>{"oom", &RunFaults::oom},
    Flag<RunFaults>{"cuda_fault", &RunFaults::cuda_fault},
    Flag<RunFaults>{"node_error", &RunFaults::node_error},
    Flag<RunFaults>{"merge_error", &RunFaults::merge_error},
    Flag<RunFaults>{"bad_json", &RunFaults::bad_json},
    Flag<RunFaults>{"duplicate", &RunFaults::duplicate},
    Flag<RunFaults>{"out_of_order", &RunFaults::out_of_order},
    Flag<RunFaults>{"interrupted", &RunFaults::interrupted},
    Flag<RunFaults>{"lose_prompt", &RunFaults::lose_prompt},
    Flag<RunFaults>{"garbage", &RunFaults::garbage},
};
constexpr std::array kRunAmounts{
    Amount<RunFaults>{"slow", &RunFaults::slow},
    Amount<RunFaults>{"ws_disconnect", &RunFaults::ws_disconnect},
    Amount<RunFaults>{"big_preview", &RunFaults::big_preview},
};
constexpr std::array kFlags{
    Flag<Faults>{"ws_refuse", &Faults::ws_refuse},
    Flag<Faults>{"wants_rest", &Faults::wants_rest},
    Flag<Faults>{"dead_worker", &Faults::dead_worker},
};
constexpr std::array kAmounts{
    Amount<Faults>{"prompts", &Faults::run_prompts},
    Amount<Faults>{"http_500", &Faults::http_500},
    Amount<Faults>{"no_response", &Faults::no_response},
    Amount<Faults>{"slow_http", &Faults::slow_http},
    Amount<Faults>{"missing_output", &Faults::missing_output},
};

// True when `name` was one of them; a value of another type is an error.
template <class Owner, class Flags, class Amounts>
Result<bool> assign(
    Owner& owner,
    std::string_view name,
    const json::value& value,
    const Flags& flags,
    const Amounts& amounts
) {
    for (const auto& flag : flags) {
        if (flag.name == name) {
            if (!value.is_bool()) {
                return fail(Code::invalid_argument, std::string(name) + " must be a boolean");
            }
            owner.*flag.member = value.get_bool();
            return true;
        }
    }
    for (const auto& amount : amounts) {
        if (amount.name == name) {
            if (value.is_bool()) {
                owner.*amount.member = value.get_bool() ? 1 : 0;
            } else if (value.is_int64()) {
                owner.*amount.member = value.get_int64();
            } else {
                return fail(Code::invalid_argument, std::string(name) + " must be an integer");
            }
            return true;
        }
    }
    return false;
}

}  // namespace

RunFaults RunFaults::combined_with(const RunFaults& other) const {
    RunFaults both = *this;
    for (const auto& flag : kRunFlags) {
        both.*flag.member = both.*flag.member || other.*flag.member;
    }
    for (const auto& amount : kRunAmounts) {
        both.*amount.member = std::max(both.*amount.member, other.*amount.member);
    }
    return both;
}

Result<> RunFaults::set(std::string_view name, const json::value& value) {
    auto done = assign(*this, name, value, kRunFlags, kRunAmounts);
    if (!done) {
        return fail(std::move(done.error()));
    }
    if (!*done) {
        return fail(Code::invalid_argument, "unknown fault " + std::string(name));
    }
    return {};
}

Result<> RunFaults::set_from_marker(std::string_view marker) {
    while (!marker.empty()) {
        const auto comma = marker.find(',');
        auto entry = marker.substr(0, comma);
        marker = comma == std::string_view::npos ? std::string_view{} : marker.substr(comma + 1);
        json::value value = true;
        if (const auto equals = entry.find('='); equals != std::string_view::npos) {
            const auto digits = entry.substr(equals + 1);
            std::int64_t number = 0;
            const auto [end, error] =
                std::from_chars(digits.data(), digits.data() + digits.size(), number);
            if (error != std::errc{} || end != digits.data() + digits.size()) {
                return fail(Code::invalid_argument, "no number in fault " + std::string(entry));
            }
            value = number;
            entry = entry.substr(0, equals);
        }
        auto done = set(entry, value);
        if (!done) {
            return done;
        }
    }
    return {};
}

Result<> Faults::update(const json::object& from) {
    const auto* clear = json::find(from, "clear");
    Faults changed = clear && *clear == json::value(true) ? Faults{} : *this;
    for (const auto& [name, value] : from) {
        if (name == "clear") {
            continue;
        }
        if (name == "http_500_path") {
            if (!value.is_string()) {
                return fail(Code::invalid_argument, "http_500_path must be a string");
            }
            changed.http_500_path = std::string(value.get_string());
            continue;
        }
        auto done = assign(changed, name, value, kFlags, kAmounts);
        if (!done) {
            return fail(std::move(done.error()));
        }
        if (!*done) {
            auto run_done = changed.run.set(name, value);
            if (!run_done) {
                return run_done;
            }
        }
    }
    *this = std::move(changed);
    return {};
}

json::object Faults::to_json() const {
    json::object out;
    for (const auto& flag : kRunFlags) {
        out[flag.name] = run.*flag.member;
    }
    for (const auto& amount : kRunAmounts) {
        out[amount.name] = run.*amount.member;
    }
    for (const auto& flag : kFlags) {
        out[flag.name] = this->*flag.member;
    }
    for (const auto& amount : kAmounts) {
        out[amount.name] = this->*amount.member;
    }
    out["http_500_path"] = http_500_path;
    return out;
}

}  // namespace comfyd::support
