#include "app/fleet_desk.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <boost/asio/post.hpp>

#include "base/hop.hpp"

namespace comfyd::app {
namespace {

constexpr int kShown = 20;     // of what is past
constexpr int kTriesMore = 4;  // where others write the same

bool is_conflict(const Result<>& saved) {
    return !saved && saved.error().code == Code::conflict;
}

json::object encode(const fleet::Instance& instance) {
    json::object since;
    for (const auto& [state, at] : instance.since) {
        since[to_string(state)] = to_rfc3339(at);
    }
    const auto& price = instance.offer.usd_per_hour;
    return {
        {"id", instance.id},
        {"worker", instance.worker()},
        {"pool", instance.pool},
        {"state", to_string(instance.state)},
        {"provider", instance.provider},
        {"machine", instance.machine},
        {"url", instance.url},
        {"gpu_type", instance.offer.gpu},
        {"region", instance.offer.region},
        {"market", to_string(instance.offer.market)},
        {"usd_per_hour", price ? json::value(*price) : json::value(nullptr)},
        {"reason", instance.reason},
        {"since", std::move(since)},
    };
}

json::object encode(const fleet::FleetEvent& event) {
    return {
        {"number", event.number},
        {"at", to_rfc3339(event.at)},
        {"what", event.what},
        {"why", event.why},
        {"pool", event.pool},
        {"instance", event.instance},
        {"provider", event.provider},
        {"tenant", event.tenant},
    };
}

json::object encode(const std::string& pool, const autoscale::Decision& decision, bool is_dry_run) {
    json::object encoded{
        {"pool", pool},
        {"machines", decision.machines},
        {"were", decision.were},
        {"because", to_string(decision.why)},
        {"sentence", decision.sentence},
        {"numbers", decision.numbers.to_json()},
    };
    if (is_dry_run) {
        encoded["dry_run"] = true;
    }
    return encoded;
}

// As it was told when it was made.
json::object encode_decision(const fleet::FleetEvent& event) {
    json::object encoded = event.details;
    encoded["number"] = event.number;
    encoded["at"] = to_rfc3339(event.at);
    encoded["pool"] = event.pool;
    encoded["sentence"] = event.why;
    return encoded;
}

json::object encode(const autoscale::History::Forecast& forecast, int slots) {
    const auto rounded = [](double value) { return std::round(value * 1'000) / 1'000; };
    return {
        {"hour", to_rfc3339(forecast.hour)},
        {"machines", rounded(forecast.machines / slots)},
        {"days", forecast.days},
        {"error", forecast.error ? json::value(rounded(*forecast.error)) : json::value(nullptr)},
        {"trusted", forecast.is_trusted()},
    };
}

json::array encode(const std::vector<fleet::FleetEvent>& events) {
    json::array listed;
    for (const fleet::FleetEvent& event : events) {
        listed.emplace_back(encode(event));
    }
    return listed;
}

json::object encode(
    const fleet::PoolSettings& pool,
    const std::vector<fleet::PoolRecord>& records,
    const std::vector<fleet::Instance>& instances
) {
    fleet::PoolRecord record;
    if (const auto found = std::ranges::find(records, pool.name, &fleet::PoolRecord::name);
        found != records.end()) {
        record = *found;
    }
    json::array listed;
    int ready = 0;
    int wanted = 0;
    for (const fleet::Instance& instance : instances) {
        if (instance.pool == pool.name) {
            listed.emplace_back(encode(instance));
            ready += instance.state == fleet::InstanceState::ready ? 1 : 0;
            wanted += is_wanted(instance.state) ? 1 : 0;
        }
    }
    const std::optional<int> set = fleet::set_size(pool, record);
    const bool is_paused = !record.paused.empty() && record.paused == pool.mark();
    return {
        {"name", pool.name},
        {"size", set.value_or(wanted)},
        {"size_configured", pool.size},
        {"scaled", !set},
        {"ready", ready},
        {"failed_starts", record.failed_starts},
        {"paused", is_paused},
        {"paused_why", is_paused ? record.paused_why : std::string()},
        {"instances", std::move(listed)},
    };
}

}  // namespace

api::FleetServices FleetDesk::services() {
    api::FleetServices services;
    services.show = [this] { return show(); };
    services.events = [this](api::FleetServices::Events query) { return events(std::move(query)); };
    services.decisions = [this](api::FleetServices::Events query) {
        return decisions(std::move(query));
    };
    services.forecast = [this](std::string pool) { return forecast(std::move(pool)); };
    services.resize = [this](std::string pool, std::optional<int> size) {
        return resize(std::move(pool), size);
    };
    services.resume = [this](std::string pool) { return resume(std::move(pool)); };
    services.let_go = [this](std::string instance) { return let_go(std::move(instance)); };
    services.logs = [this](std::string instance, int lines) {
        return logs(std::move(instance), lines);
    };
    services.size_max = kPoolSizeMax;
    return services;
}

const fleet::PoolSettings* FleetDesk::settings_of(const std::string& pool) const {
    const auto& pools = p_.config.fleet.pools;
    const auto found = std::ranges::find(pools, pool, &fleet::PoolSettings::name);
    return found == pools.end() ? nullptr : &*found;
}

fleet::FleetEvent FleetDesk::event(std::string what, std::string why, std::string pool) const {
    fleet::FleetEvent made;
    made.at = p_.clock.now();
    made.fleet = p_.config.fleet_name;
    made.what = std::move(what);
    made.why = std::move(why);
    made.pool = std::move(pool);
    return made;
}

// As they are stored; why one is not ready yet changes too often for that and is known to who keeps
// it.
Task<Result<std::vector<fleet::Instance>>> FleetDesk::open_instances() {
    auto stored = co_await p_.store.open_instances(p_.config.fleet_name);
    const Readings here = co_await readings();
    for (const fleet::Instance& kept : here.instances) {
        if (!stored) {
            break;
        }
        const auto same = std::ranges::find(*stored, kept.id, &fleet::Instance::id);
        if (same != stored->end() && same->revision == kept.revision) {
            same->reason = kept.reason;
        }
    }
    co_return stored;
}

Task<Result<json::object>> FleetDesk::show() {
    const std::string& name = p_.config.fleet_name;
    auto instances = co_await open_instances();
    if (!instances) {
        co_return fail(std::move(instances.error()));
    }
    auto records = co_await p_.store.pool_records(name);
    if (!records) {
        co_return fail(std::move(records.error()));
    }
    auto ended = co_await p_.store.ended_instances(name, kShown);
    if (!ended) {
        co_return fail(std::move(ended.error()));
    }
    auto told = co_await p_.store.fleet_events({.fleet = name, .limit = kShown});
    if (!told) {
        co_return fail(std::move(told.error()));
    }
    json::array pools;
    for (const fleet::PoolSettings& pool : p_.config.fleet.pools) {
        pools.emplace_back(encode(pool, *records, *instances));
    }
    const fleet::FetchedBytes fetched = p_.model_news.fetched();
    json::array past;
    for (const fleet::Instance& instance : *ended) {
        past.emplace_back(encode(instance));
    }
    co_return json::object{
        {"fleet", name},
        {"pools", std::move(pools)},
        {"ended", std::move(past)},
        {"events", encode(*told)},
        {"model_bytes_fetched", {{"outside", fetched.outside}, {"peers", fetched.peers}}},
    };
}

Task<Result<json::object>> FleetDesk::events(api::FleetServices::Events query) {
    fleet::FleetEventQuery asked;
    asked.fleet = p_.config.fleet_name;
    asked.pool = std::move(query.pool);
    asked.instance = std::move(query.instance);
    asked.before = query.before.value_or(UINT64_MAX);
    asked.limit = query.limit;
    auto found = co_await p_.store.fleet_events(std::move(asked));
    if (!found) {
        co_return fail(std::move(found.error()));
    }
    co_return json::object{{"events", encode(*found)}};
}

// They are among the events, which are read until there are enough.
Task<Result<json::object>> FleetDesk::decisions(api::FleetServices::Events query) {
    constexpr int kPage = 1'000;
    fleet::FleetEventQuery asked;
    asked.fleet = p_.config.fleet_name;
    asked.pool = query.pool;
    asked.before = query.before.value_or(UINT64_MAX);
    asked.limit = kPage;
    json::array before;
    for (bool has_more = true; has_more && std::ssize(before) < query.limit;) {
        auto page = co_await p_.store.fleet_events(asked);
        if (!page) {
            co_return fail(std::move(page.error()));
        }
        for (const fleet::FleetEvent& event : *page) {
            asked.before = event.number;
            if (event.what == "scaled" && std::ssize(before) < query.limit) {
                before.emplace_back(encode_decision(event));
            }
        }
        has_more = std::ssize(*page) == kPage;
    }
    const Readings here = co_await readings();
    json::array now;
    for (const auto& [pool, decision] : here.decisions) {
        if (!query.pool || pool == *query.pool) {
            const fleet::PoolSettings* settings = settings_of(pool);
            json::object told = encode(pool, decision, settings != nullptr && settings->is_dry_run);
            told["start_phases"] = here.start_phases.at(pool);
            now.emplace_back(std::move(told));
        }
    }
    co_return json::object{{"now", std::move(now)}, {"decisions", std::move(before)}};
}

Task<Result<json::object>> FleetDesk::forecast(std::string pool) {
    constexpr int kHours = 24;
    const fleet::PoolSettings* settings = settings_of(pool);
    if (settings == nullptr) {
        co_return fail(
            Code::not_found, "there is no pool '" + pool.substr(0, 64) + "' that comfyd keeps"
        );
    }
    auto records = co_await p_.store.pool_records(p_.config.fleet_name);
    if (!records) {
        co_return fail(std::move(records.error()));
    }
    const auto record = std::ranges::find(*records, pool, &fleet::PoolRecord::name);
    json::array hours;
    if (record != records->end()) {
        const autoscale::History history = fleet::scaling_memory(*record).history;
        const Time now = p_.clock.now();
        for (int ahead = 0; ahead <= kHours; ++ahead) {
            if (const auto made = history.forecast(now + std::chrono::hours(ahead))) {
                hours.emplace_back(encode(*made, std::max(settings->slots, 1)));
            }
        }
    }
    co_return json::object{{"pool", std::move(pool)}, {"hours", std::move(hours)}};
}

Task<Result<json::object>> FleetDesk::show_pool(std::string pool) {
    auto instances = co_await open_instances();
    if (!instances) {
        co_return fail(std::move(instances.error()));
    }
    auto records = co_await p_.store.pool_records(p_.config.fleet_name);
    if (!records) {
        co_return fail(std::move(records.error()));
    }
    co_return encode(*settings_of(pool), *records, *instances);
}

// Code::conflict: somebody else changed it meanwhile.
Task<Result<>> FleetDesk::save_change(std::string pool, Change change) {
    auto records = co_await p_.store.pool_records(p_.config.fleet_name);
    if (!records) {
        co_return fail(std::move(records.error()));
    }
    fleet::PoolRecord record;
    if (const auto found = std::ranges::find(*records, pool, &fleet::PoolRecord::name);
        found != records->end()) {
        record = *found;
    }
    record.fleet = p_.config.fleet_name;
    record.name = pool;
    auto told = change(record);
    record.revision += 1;
    auto saved = co_await p_.store.save_pool(std::move(record), std::move(told));
    co_return saved;
}

// Who keeps the pool writes the same record: what an operator wants is done to it as it then is.
Task<Result<json::object>> FleetDesk::change_pool(std::string pool, Change change) {
    if (settings_of(pool) == nullptr) {
        co_return fail(
            Code::not_found, "there is no pool '" + pool.substr(0, 64) + "' that comfyd keeps"
        );
    }
    auto saved = co_await save_change(pool, change);
    for (int again = 0; again < kTriesMore && is_conflict(saved); ++again) {
        saved = co_await save_change(pool, change);
    }
    if (!saved) {
        co_return fail(std::move(saved.error()));
    }
    wake_keepers();
    auto shown = co_await show_pool(std::move(pool));
    co_return shown;
}

Task<Result<json::object>> FleetDesk::resize(std::string pool, std::optional<int> size) {
    const fleet::PoolSettings* settings = settings_of(pool);
    const int configured = settings == nullptr ? 0 : settings->size;
    const Change change = [this, size, configured](fleet::PoolRecord& record) {
        record.size = size;
        record.size_configured = configured;
        const std::string why = size ? "an operator set the size to " + std::to_string(*size)
                                     : "an operator went back to the size that is configured";
        return event("resized", why, record.name);
    };
    return change_pool(std::move(pool), change);
}

Task<Result<json::object>> FleetDesk::resume(std::string pool) {
    const Change change = [this](fleet::PoolRecord& record) {
        record.paused.clear();
        record.paused_why.clear();
        record.failed_starts = 0;
        return event("resumed", "an operator wants it", record.name);
    };
    return change_pool(std::move(pool), change);
}

Task<Result<fleet::Instance>> FleetDesk::find(std::string instance) {
    auto open = co_await p_.store.open_instances(p_.config.fleet_name);
    if (!open) {
        co_return fail(std::move(open.error()));
    }
    const auto found = std::ranges::find(*open, instance, &fleet::Instance::id);
    if (found == open->end()) {
        co_return fail(
            Code::not_found, "there is no instance '" + instance.substr(0, 64) + "' any more"
        );
    }
    co_return std::move(*found);
}

// One of a pool that is not configured any more leaves by itself.
Task<Result<json::object>> FleetDesk::let_go(std::string instance) {
    auto found = co_await find(std::move(instance));
    if (!found) {
        co_return fail(std::move(found.error()));
    }
    if (settings_of(found->pool) != nullptr) {
        const Change change = [this, id = found->id](fleet::PoolRecord& record) {
            record.leaving.insert(id);
            auto made = event("let_go", "an operator wants it gone", record.name);
            made.instance = id;
            return made;
        };
        auto changed = co_await change_pool(found->pool, change);
        if (!changed) {
            co_return fail(std::move(changed.error()));
        }
    }
    co_return encode(*found);
}

Task<Result<std::string>> FleetDesk::logs(std::string instance, int lines) {
    auto found = co_await find(std::move(instance));
    if (!found) {
        co_return fail(std::move(found.error()));
    }
    auto text = co_await await_on(p_.core, logs_here(found->id, lines));
    co_return text;
}

Task<Result<std::string>> FleetDesk::logs_here(std::string instance, int lines) {
    for (const auto& office : p_.offices()) {
        fleet::Keeper* keeper = office->keeper();
        if (keeper == nullptr || !keeper->keeps(instance)) {
            continue;
        }
        auto text = co_await keeper->logs(instance, lines);
        co_return text;
    }
    co_return fail(Code::conflict, "another node leads this instance; ask that one");
}

void FleetDesk::wake_keepers() {
    boost::asio::post(p_.core, [this] {
        for (const auto& office : p_.offices()) {
            if (fleet::Keeper* keeper = office->keeper()) {
                keeper->look();
            }
        }
    });
}

Task<FleetDesk::Readings> FleetDesk::readings() {
    return call_on(p_.core, [this] {
        Readings readings;
        for (const auto& office : p_.offices()) {
            if (fleet::Keeper* keeper = office->keeper()) {
                std::ranges::move(keeper->instances(), std::back_inserter(readings.instances));
                readings.counts.add(keeper->counts());
                for (const auto& [pool, settings] : keeper->pools()) {
                    if (const autoscale::Decision* made = keeper->scaling().decision(pool)) {
                        readings.decisions[pool] = *made;
                    }
                }
                readings.money.merge(keeper->scaling().money());
                readings.start_phases.merge(keeper->scaling().start_phases());
            }
        }
        return readings;
    });
}

void collect(const FleetDesk::Readings& readings, observe::Metrics::Gauges& gauges) {
    for (const fleet::InstanceState state : fleet::kInstanceStates) {
        if (is_open(state)) {
            const auto count =
                std::ranges::count(readings.instances, state, &fleet::Instance::state);
            gauges.set(
                "comfyd_instances",
                "Machines that this node keeps, by state.",
                {{"state", std::string(to_string(state))}},
                static_cast<double>(count)
            );
        }
    }
    for (const auto& [phase, times] : readings.counts.phases) {
        gauges.set_histogram(
            "comfyd_instance_start_seconds",
            "What starts took since this node began to lead, by phase.",
            {{"phase", std::string(to_string(phase))}},
            {{times.kBounds.begin(), times.kBounds.end()},
             {times.counts.begin(), times.counts.end()},
             times.sum_s}
        );
    }
    for (const auto& [pool, money] : readings.money) {
        const auto of_pool = [&gauges, &pool](const char* name, const char* help, double value) {
            gauges.set(name, help, {{"pool", pool}}, value);
        };
        of_pool(
            "comfyd_pool_spent_usd",
            "Paid for the pool's machines since this node began to lead.",
            money.spent_usd
        );
        of_pool(
            "comfyd_pool_idle_usd",
            "Of that, for machines that were ready and did nothing.",
            money.idle_usd
        );
        if (money.budget) {
            of_pool(
                "comfyd_pool_budget_left_usd",
                "Left of the tightest budget, of the pool or the fleet.",
                money.budget->left_usd()
            );
        }
    }
    for (const auto& [pool, decision] : readings.decisions) {
        gauges.set(
            "comfyd_pool_machines_wanted",
            "Machines that a scaled pool shall have.",
            {{"pool", pool}},
            decision.machines
        );
    }
    const auto set = [&gauges](const char* name, const char* help, std::uint64_t value) {
        gauges.set(name, help, {}, static_cast<double>(value));
    };
    set("comfyd_instance_starts", "Machines that came to serve.", readings.counts.starts);
    set("comfyd_instance_failed_starts", "Machines that never did.", readings.counts.failed_starts);
    set("comfyd_instance_strays_removed",
        "Machines of this fleet that no instance knew, and that were removed.",
        readings.counts.strays_removed);
}

}  // namespace comfyd::app
