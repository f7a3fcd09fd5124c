// What the keeper hears of machines: the listings of their providers, compared with its rows.
#include <algorithm>
#include <utility>

#include "base/foreign_text.hpp"
#include "base/log.hpp"
#include "fleet/instances/keeper.hpp"

namespace comfyd::fleet {

using enum InstanceState;

Task<> Keeper::watch(std::string provider) {
    for (;;) {
        const bool worked = co_await list(provider);
        changed_.notify();
        co_await list_now_.at(provider)->wait_for(until_next_list(provider, worked));
        const bool stop = co_await is_cancelled();
        if (stop || is_over_) {
            co_return;
        }
    }
}

Millis Keeper::until_next_list(const std::string& provider, bool worked) {
    const Time now = p_.clock.now();
    if (!worked) {
        return std::max(lists_.until(provider) - now, Millis(1'000));
    }
    bool is_busy = false;
    bool is_coming = false;
    for (const auto& [id, row] : rows_) {
        if (row.provider == provider && row.state != requested) {
            // A machine that may be taken back at any time is looked at more often.
            is_busy = is_busy || !is_at_rest(row) || row.offer.market == Market::spot;
            is_coming = is_coming || row.state < ready;
        }
    }
    // To ask this computer costs nothing, and jobs may wait for what comes.
    const bool is_local = p_.providers.at(provider)->traits().is_local;
    return is_coming && is_local ? p_.times.tick
           : is_busy             ? p_.times.list_busy
                                 : p_.times.list_idle;
}

// The ledger is read after the listing: whoever made a machine had written down why before.
Task<bool> Keeper::list(const std::string& provider) {
    Listing next;
    next.begun = ++moment_;
    next.at = p_.clock.now();
    auto machines = co_await p_.providers.at(provider)->list(p_.fleet);
    if (!machines) {
        if (machines.error().code != Code::cancelled) {
            log::warning(
                "a provider does not list its machines",
                {{"provider", provider}, {"error", log::foreign(machines.error().message)}}
            );
            lists_.fail(provider, p_.clock.now(), p_.chance());
        }
        co_return false;
    }
    auto open = co_await p_.store.open_instances(p_.fleet);
    if (!open) {
        co_return false;
    }
    for (const Instance& instance : *open) {
        next.known.insert(instance.id);
    }
    next.machines = std::move(*machines);
    for (Machine& machine : next.machines) {
        const std::string instance = instance_of(machine.name, p_.fleet).value_or("");
        machine.reason = presentable(instance, std::move(machine.reason));
    }
    const Listing& before = listings_[provider];
    for (const Machine& machine : next.machines) {
        const auto seen = before.first_seen.find(machine.id);
        next.first_seen[machine.id] =
            seen == before.first_seen.end() ? p_.clock.now() : seen->second;
    }
    for (const auto& [id, row] : rows_) {
        if (row.provider == provider) {
            compare(row, next);
        }
    }
    tell_progress(provider, next);
    listings_[provider] = std::move(next);
    lists_.succeed(provider);
    co_return true;
}

// What a machine says while it comes up is for whoever looks, and not worth a write.
void Keeper::tell_progress(const std::string& provider, const Listing& seen) {
    for (auto& [id, row] : rows_) {
        const bool is_coming =
            row.state == creating || row.state == pulling || row.state == starting;
        const Machine* machine = nullptr;
        if (is_coming && row.provider == provider) {
            machine = find_machine(row, seen);
        }
        if (machine == nullptr || machine->state == Machine::State::running) {
            continue;  // then its agent tells more
        }
        const std::string percent =
            machine->percent ? std::to_string(*machine->percent) + " %" : "";
        if (!machine->reason.empty() || !percent.empty()) {
            row.reason = machine->reason.empty() || percent.empty()
                             ? machine->reason + percent
                             : machine->reason + ", " + percent;
        }
    }
}

void Keeper::compare(const Instance& row, const Listing& listing) {
    Aside& aside = aside_[row.id];
    const Machine* machine = find_machine(row, listing);
    aside.was_listed = aside.was_listed || machine != nullptr;
    aside.missed = machine != nullptr || listing.begun <= aside.acted ? 0 : aside.missed + 1;
}

}  // namespace comfyd::fleet
