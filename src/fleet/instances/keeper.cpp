#include "fleet/instances/keeper.hpp"

#include <algorithm>
#include <utility>

#include "base/foreign_text.hpp"
#include "base/log.hpp"
#include "base/on_executor.hpp"
#include "base/secret_names.hpp"

namespace comfyd::fleet {

using enum InstanceState;

std::optional<int> set_size(const PoolSettings& pool, const PoolRecord& record) {
    const bool is_set = record.size && record.size_configured == pool.size;
    const bool is_scaled = pool.scaling && !pool.is_dry_run;
    return is_set ? record.size : is_scaled ? std::nullopt : std::optional(pool.size);
}

void KeeperCounts::add(const KeeperCounts& other) {
    strays_removed += other.strays_removed;
    starts += other.starts;
    failed_starts += other.failed_starts;
    for (const auto& [phase, times] : other.phases) {
        phases[phase].add(times);
    }
}

Keeper::Keeper(Parts parts)
    : p_(std::move(parts)),
      offers_({std::chrono::seconds(30), std::chrono::minutes(10)}),
      providers_({std::chrono::seconds(5), std::chrono::minutes(2)}),
      pools_rest_({std::chrono::seconds(10), std::chrono::minutes(2)}),
      lists_({std::chrono::seconds(5), std::chrono::minutes(1)}),
      removals_({std::chrono::seconds(5), std::chrono::minutes(2)}),
      switches_({std::chrono::seconds(5), std::chrono::minutes(2)}),
      scaling_(p_.budget),
      changed_(p_.core),
      tasks_(p_.core) {
    for (PoolSettings& pool : p_.pools) {
        pools_[pool.name] = pool;
    }
    for (const auto& [name, provider] : p_.providers) {
        list_now_[name] = std::make_unique<Signal>(p_.core);
    }
}

Keeper::~Keeper() = default;

Task<> Keeper::recall() {
    COMFYD_ON(p_.core);
    co_await read_pools();
    co_await read_rows();
    for (const auto& [id, row] : rows_) {
        if (row.state == ready || row.state == draining) {
            Step step;
            step.instance = id;
            employ(step);
        }
        if (row.state == draining) {
            p_.crew.drain(row.worker());
        }
    }
}

void Keeper::start() {
    COMFYD_ON(p_.core);
    for (const auto& [name, provider] : p_.providers) {
        provider->on_change([now = list_now_.at(name).get()] { now->notify(); });
        tasks_.spawn("listing machines", watch(name));
    }
    tasks_.spawn("keeping pools", run());
}

Task<> Keeper::stop() {
    COMFYD_ON(p_.core);
    is_over_ = true;
    for (const auto& [name, provider] : p_.providers) {
        provider->on_change({});
    }
    tasks_.cancel();
    while (tasks_.size() > 0) {
        co_await tasks_.join();
    }
    for (const auto& [id, token] : std::exchange(let_in_, {})) {
        p_.callers->dismiss(id);  // whoever leads next lets it in
    }
}

std::vector<Instance> Keeper::instances() const {
    std::vector<Instance> all;
    for (const auto& [id, row] : rows_) {
        all.push_back(row);
    }
    return all;
}

MachineTraits Keeper::traits_of(const std::string& name) const {
    const MachineProvider* of = provider(name);
    return of == nullptr ? MachineTraits() : of->traits();
}

Task<Result<std::string>> Keeper::logs(std::string instance, int lines) {
    const Instance* row = find(instance);
    if (row == nullptr || row->machine.empty()) {
        co_return fail(Code::not_found, "there is no machine of an instance '" + instance + "'");
    }
    MachineProvider* from = provider(row->provider);
    if (from == nullptr) {
        co_return fail(Code::not_found, "the provider '" + row->provider + "' is not configured");
    }
    const std::vector<std::string> secrets = secrets_of(*row);
    auto text = co_await from->logs(row->machine, lines);
    co_return text ? Result<std::string>(without_secrets(std::move(*text), secrets))
                   : fail(std::move(text.error()));
}

std::string Keeper::presentable(const std::string& instance, std::string said) const {
    const auto row = rows_.find(instance);
    return row == rows_.end() ? said : without_secrets(std::move(said), secrets_of(row->second));
}

// What its programs were told and may print: who may read a log need not know it.
std::vector<std::string> Keeper::secrets_of(const Instance& instance) const {
    std::vector<std::string> secrets{instance.token};
    if (const PoolSettings* pool = pool_of(instance)) {
        secrets.push_back(pool->made_from.registry_password);
        for (const auto& [name, value] : pool->made_from.environment) {
            if (names_secret(name)) {
                secrets.push_back(value);
            }
        }
    }
    return secrets;
}

Task<> Keeper::run() {
    while (!is_over_) {
        co_await read_pools();
        co_await forget_old_sizes();
        if (must_read_) {
            co_await read_rows();
        }
        if (may_act() && !must_read_ && store_rests_ <= p_.clock.now()) {
            look_at_needs();
            act();
            co_await store_scaling();
        }
        p_.crew.show(instances());
        co_await changed_.wait_for(is_settled() ? p_.times.idle_tick : p_.times.tick);
        const bool stop = co_await is_cancelled();
        if (stop) {
            co_return;
        }
    }
}

Task<> Keeper::read_pools() {
    auto records = co_await p_.store.pool_records(p_.fleet);
    if (!records) {
        log::warning("what pools shall be is not known", {{"error", records.error().message}});
        co_return;
    }
    records_.clear();
    for (PoolRecord& record : *records) {
        records_[record.name] = std::move(record);
    }
}

// Another size was configured since: what an operator set before it counts no more, also when the
// configuration goes back.
Task<> Keeper::forget_old_sizes() {
    for (const auto& [name, settings] : pools_) {
        const auto found = records_.find(name);
        if (!may_act() || found == records_.end() || !found->second.size ||
            found->second.size_configured == settings.size) {
            continue;
        }
        const int configured = settings.size;
        const ChangePool forget = [configured](PoolRecord& record) {
            if (record.size_configured != configured) {
                record.size.reset();
            }
            return std::optional<FleetEvent>();
        };
        co_await change_pool(name, forget);
    }
}

// Those that something is being done for are left to it: what it writes is refused where it is
// stale, and then they are read again.
Task<> Keeper::read_rows() {
    auto rows = co_await p_.store.open_instances(p_.fleet);
    if (!rows) {
        log::warning("the machines of the fleet are not known", {{"error", rows.error().message}});
        co_return;
    }
    must_read_ = false;
    std::map<std::string, Instance> read;
    for (Instance& row : *rows) {
        if (row.domain == p_.domain) {
            read[row.id] = std::move(row);
        }
    }
    for (const auto& [id, row] : rows_) {
        if (aside_[id].is_busy) {
            read[id] = row;
            must_read_ = true;
        }
    }
    rows_ = std::move(read);
    let_all_in();
}

void Keeper::let_in(const std::string& id) {
    const Instance* row = find(id);
    const MachineProvider* of = row == nullptr ? nullptr : provider(row->provider);
    const std::string token = of != nullptr && of->traits().dials_in ? row->token : std::string();
    const auto before = let_in_.find(id);
    const std::string old = before == let_in_.end() ? std::string() : before->second;
    if (p_.callers == nullptr || token == old) {
        return;
    }
    if (!old.empty()) {
        let_in_.erase(before);
        p_.callers->dismiss(id);
    }
    if (!token.empty()) {
        let_in_[id] = token;
        p_.callers->admit(id, row->worker(), token);
    }
}

void Keeper::let_all_in() {
    std::set<std::string> ids;
    for (const auto& [id, token] : let_in_) {
        ids.insert(id);
    }
    for (const auto& [id, row] : rows_) {
        ids.insert(id);
    }
    for (const std::string& id : ids) {
        let_in(id);
    }
}

void Keeper::look_at_needs() {
    const jobs::Load load = load_now();
    scaling_.look({p_.clock.now(), load, pools_, records_, rows_, requesting_});
    p_.crew.hinder(scaling_.hindrances());
}

// What was spent, and why machines are started and stopped. What is not stored is told with the
// next of it.
Task<> Keeper::store_scaling() {
    for (Scaling::Due& due : scaling_.take_due(p_.clock.now())) {
        for (FleetEvent& told : due.events) {
            told.fleet = p_.fleet;
            log::info("scaling", {{"pool", told.pool}, {"what", told.what}, {"why", told.why}});
            co_await tell(std::move(told));
        }
        const ChangePool note = [stored = scaling_.to_store(due.pool)](PoolRecord& record) {
            record.scaling = stored;
            return std::optional<FleetEvent>();
        };
        co_await change_pool(due.pool, note);
    }
}

bool Keeper::is_settled() const {
    const bool is_scaled = std::ranges::any_of(pools_, [](const auto& pool) {
        return pool.second.scaling.has_value();
    });
    return !must_read_ && !is_scaled && std::ranges::all_of(rows_, [this](const auto& entry) {
        return is_at_rest(entry.second);
    });
}

bool Keeper::is_at_rest(const Instance& row) const {
    const auto aside = aside_.find(row.id);
    if (aside != aside_.end() && aside->second.silent_since) {
        return false;
    }
    const auto listing = listings_.find(row.provider);
    if (row.state != parked || listing == listings_.end()) {
        return row.state == ready;
    }
    const Machine* machine = find_machine(row, listing->second);
    return machine != nullptr && machine->state == Machine::State::stopped;
}

// What no worker is is wanted, of a pool that may have it. Jobs that name no pool are wanted
// everywhere.
PoolGoal Keeper::goal_of(const PoolSettings& pool, const jobs::Load& load) const {
    constexpr std::size_t kWantsMax = 32;
    PoolGoal goal;
    for (const jobs::Load::Waiting& waiting : load.waiting) {
        const MachineWish& want = waiting.machine;
        const bool is_ours = want.pool.empty() || want.pool == pool.name;
        const bool is_one_more = goal.wants.size() < kWantsMax;
        if (!waiting.is_served && is_ours && is_one_more &&
            Requirement().on(want).is_particular()) {
            goal.wants.push_back(want);
        }
    }
    goal.name = pool.name;
    goal.size = pool.size;
    goal.parked = scaling_.parking_pays(pool.name) ? pool.parked : 0;
    goal.software = pool.software;
    goal.offers = pool.offers;
    if (const auto pending = requesting_.find(pool.name); pending != requesting_.end()) {
        goal.pending = pending->second;
    }
    goal.start_max = pool.start_max;
    goal.rests_until = pools_rest_.until(pool.name);
    static const PoolRecord kNone;
    const auto found = records_.find(pool.name);
    const PoolRecord& record = found == records_.end() ? kNone : found->second;
    goal.is_paused = !record.paused.empty() && record.paused == pool.mark();
    const std::optional<int> set = set_size(pool, record);
    const autoscale::Decision* decision = scaling_.decision(pool.name);
    goal.size = set.value_or(decision == nullptr ? 0 : decision->machines);
    if (!set && decision != nullptr) {
        goal.is_scaled = true;
        goal.why = decision->sentence;
        goal.drains = decision->drains;
        goal.order = decision->offers;
        goal.spot_wait = pool.scaling->spot_wait;
    }
    return goal;
}

jobs::Load Keeper::load_now() const {
    return p_.load ? p_.load().value_or(jobs::Load()) : jobs::Load();
}

View Keeper::view() const {
    View view;
    view.now = p_.clock.now();
    view.fleet = p_.fleet;
    const jobs::Load load = load_now();
    for (const auto& [name, pool] : pools_) {
        const PoolGoal& goal = view.pools.emplace_back(goal_of(pool, load));
        for (std::size_t i = 0; i < pool.offers.size(); ++i) {
            view.offers_rest[{name, i}] = offers_.until(offer_key(name, i));
            for (const MachineWish& want : goal.wants) {
                const std::string key = offer_key(name, i, want);
                view.wants_rest[key] = offers_.until(key);
            }
        }
    }
    for (const auto& [id, row] : rows_) {
        view.instances.push_back(row);
    }
    view.aside = aside_;
    for (auto& [id, aside] : view.aside) {
        if (const auto row = rows_.find(id); row != rows_.end() && aside.is_employed) {
            aside.jobs = p_.crew.jobs(row->second.worker());
            const auto use =
                std::ranges::find(load.workers, row->second.worker(), &jobs::Load::Use::worker);
            if (use != load.workers.end()) {
                aside.wanted = use->wanted;
                aside.jobs = std::max(aside.jobs, use->jobs);
                aside.best_effort = use->best_effort;
            }
        }
    }
    view.listings = listings_;
    for (const auto& [name, record] : records_) {
        view.leaving.insert(record.leaving.begin(), record.leaving.end());
    }
    for (const auto& [name, provider] : p_.providers) {
        view.providers_rest[name] = providers_.until(name);
        if (provider->traits().dials_in) {
            view.dial_in.insert(name);
        }
        if (provider->traits().is_local) {
            view.local.insert(name);
        }
        if (provider->traits().can_park) {
            view.parking.insert(name);
        }
    }
    return view;
}

void Keeper::look_at_workers() {
    for (auto& [id, row] : rows_) {
        Aside& aside = aside_[id];
        if (!aside.is_employed || p_.crew.answers(row.worker())) {
            if (std::exchange(aside.silent_since, std::nullopt) && row.state == ready) {
                row.reason.clear();  // why it was silent
            }
        } else if (!aside.silent_since) {
            aside.silent_since = p_.clock.now();
        }
    }
}

void Keeper::act() {
    look_at_workers();
    for (Step& step : p_.plan(view())) {
        if (step.kind == Step::Kind::remove_stray) {
            if (!strays_.insert(step.provider + "/" + step.machine->id).second) {
                continue;
            }
        } else if (step.kind == Step::Kind::request) {
            step.instance = p_.new_id();
            ++requesting_[step.pool];
            aside_[step.instance].is_busy = true;
            aside_[step.instance].wanted_since = p_.clock.now();
        } else {
            aside_[step.instance].is_busy = true;
            aside_[step.instance].want = step.want;
            aside_[step.instance].is_waking = step.kind == Step::Kind::wake;
        }
        tasks_.spawn("keeping a machine", perform(std::move(step)));
    }
}

Instance* Keeper::find(const std::string& id) {
    const auto found = rows_.find(id);
    return found == rows_.end() ? nullptr : &found->second;
}

const PoolSettings* Keeper::pool_of(const Instance& instance) const {
    const auto found = pools_.find(instance.pool);
    return found == pools_.end() ? nullptr : &found->second;
}

MachineProvider* Keeper::provider(const std::string& name) const {
    const auto found = p_.providers.find(name);
    return found == p_.providers.end() ? nullptr : found->second.get();
}

WorkerConfig Keeper::worker_of(const Instance& instance) const {
    constexpr double kSecondsPerHour = 3600;
    WorkerConfig worker;
    worker.id = instance.worker();
    worker.url = instance.url.empty() ? "worker://" + instance.id : instance.url;  // it calls
    worker.token = instance.token;
    worker.pool = instance.pool;
    worker.gpu = instance.gpu;
    worker.machine = instance.name();
    worker.gpu_kind = instance.offer.gpu;
    worker.region = instance.offer.region;
    worker.software = instance.software;
    if (const PoolSettings* pool = pool_of(instance)) {
        worker.slots = pool->slots;
        worker.gpu_second_usd = pool->gpu_second_usd;
    }
    if (instance.offer.usd_per_hour) {
        worker.gpu_second_usd = *instance.offer.usd_per_hour / kSecondsPerHour;
    }
    return worker;
}

}  // namespace comfyd::fleet
