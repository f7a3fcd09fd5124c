// What each step of the keeper does.
#include <algorithm>
#include <array>
#include <utility>

#include "agent/packs.hpp"
#include "base/crypto.hpp"
#include "base/foreign_text.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "fleet/instances/keeper.hpp"
#include "fleet/instances/wants.hpp"

namespace comfyd::fleet {
namespace {

using enum InstanceState;

constexpr int kFailedStartsMax = 3;
constexpr Millis kClosedFor = std::chrono::minutes(30);  // a provider that wants money or a key
constexpr int kPoolTries = 5;
constexpr std::uint64_t kGigabyte = 1'000'000'000;

std::string new_token() {
    std::array<std::uint8_t, 24> bytes{};
    random_bytes(bytes.data(), bytes.size());
    return to_hex(bytes.data(), bytes.size());
}

// Nothing was made, whatever else is wrong.
bool is_clear_no(Code code) {
    return code == Code::out_of_stock || code == Code::balance_empty ||
           code == Code::unauthorized || code == Code::forbidden || code == Code::rate_limited ||
           code == Code::invalid_argument || code == Code::not_found;
}

std::string describe(const Offer& offer, const std::string& provider) {
    std::string text = provider;
    for (const std::string& part : {offer.gpu, offer.region}) {
        text += part.empty() ? "" : ", " + part;
    }
    return text;
}

}  // namespace

// From now on a listing from before says nothing.
void Keeper::note_deed(const Step& step) {
    Aside& aside = aside_[step.instance];
    if (step.kind == Step::Kind::create) {
        aside.ordered_at = p_.clock.now();
        aside.was_listed = false;
    } else if (step.kind != Step::Kind::remove && step.kind != Step::Kind::park &&
               step.kind != Step::Kind::wake) {
        return;
    }
    aside.acted = ++moment_;
    aside.missed = 0;
}

Task<> Keeper::perform(Step step) {
    const std::string id = step.instance;
    const std::string requested_in = step.kind == Step::Kind::request ? step.pool : "";
    const std::string stray =
        step.kind == Step::Kind::remove_stray ? step.provider + "/" + step.machine->id : "";
    co_await take(step);
    if (!requested_in.empty()) {
        --requesting_[requested_in];
    }
    if (!stray.empty()) {
        strays_.erase(stray);
    } else if (rows_.contains(id)) {
        aside_[id].is_busy = aside_[id].is_waking = false;
        note_deed(step);
    } else {
        aside_.erase(id);
        removals_.succeed(id);
        switches_.succeed(id);
    }
    changed_.notify();
}

Task<> Keeper::take(Step step) {
    if (step.kind != Step::Kind::request && step.kind != Step::Kind::remove_stray &&
        find(step.instance) == nullptr) {
        co_return;
    }
    switch (step.kind) {
        case Step::Kind::request:
            co_await request(std::move(step));
            break;
        case Step::Kind::create:
            co_await create(std::move(step));
            break;
        case Step::Kind::follow:
            co_await follow(std::move(step));
            break;
        case Step::Kind::examine:
            co_await examine(std::move(step));
            break;
        case Step::Kind::warm_up:
            co_await warm_up(std::move(step));
            break;
        case Step::Kind::inquire:
            co_await inquire(std::move(step));
            break;
        case Step::Kind::employ:
            employ(step);
            break;
        case Step::Kind::drain:
            co_await drain(std::move(step));
            break;
        case Step::Kind::leave:
            co_await leave(std::move(step));
            break;
        case Step::Kind::park:
            co_await park(std::move(step));
            break;
        case Step::Kind::wake:
            co_await wake(std::move(step));
            break;
        case Step::Kind::remove:
            co_await remove(std::move(step));
            break;
        case Step::Kind::end:
            co_await end(std::move(step));
            break;
        case Step::Kind::remove_stray:
            co_await remove_stray(std::move(step));
            break;
    }
}

Task<> Keeper::request(Step step) {
    Instance instance;
    instance.id = step.instance;
    instance.fleet = p_.fleet;
    instance.domain = p_.domain;
    instance.pool = step.pool;
    instance.reason = step.why;
    instance.revision = 1;
    instance.since[requested] = p_.clock.now();
    auto told = event("requested", step.why, instance);
    co_await save(std::move(instance), std::move(told));
}

Task<> Keeper::create(Step step) {
    const Instance instance = *find(step.instance);
    const PoolSettings pool = *pool_of(instance);
    OfferWish wish = pool.offers.at(step.offer);
    wish.gpus_each = pool.made_from.gpus;
    wish.per_gpu = pool.made_from.per_gpu;
    const auto offer = co_await choose(step, wish);
    if (!offer) {
        co_return;
    }
    auto next = moved(
        instance, creating, p_.clock.now(), "ordered from " + describe(*offer, step.provider)
    );
    next->provider = step.provider;
    next->offer = *offer;
    next->token = new_token();
    next->software = pool.software;
    next->machine.clear();
    next->url.clear();
    auto told = event("creating", next->reason, *next);
    const bool saved = co_await save(*next, std::move(told));
    if (saved && may_act()) {
        co_await order(*next, pool, step);
    }
}

// nullopt: none that would do, and it is written down who rests.
Task<std::optional<Offer>> Keeper::choose(const Step& step, OfferWish wish) {
    MachineProvider* from = provider(step.provider);
    const std::string region = wish.region;
    wish = step.want ? narrowed(wish, *step.want).value_or(wish) : wish;
    auto offers = co_await from->offers(wish);
    if (!offers) {
        co_await refuse(step, std::move(offers.error()), false);
        co_return std::nullopt;
    }
    std::vector<const Offer*> good;
    for (Offer& offer : *offers) {
        const bool is_cheap = !wish.usd_per_hour_max || !offer.usd_per_hour ||
                              *offer.usd_per_hour <= *wish.usd_per_hour_max;
        // What tells no region is where the operator says, and nowhere that somebody asks for.
        offer.region = offer.region.empty() ? region : offer.region;
        const bool is_there = wish.region.empty() || lower(offer.region) == lower(wish.region);
        if (is_cheap && is_there && offer.available != 0) {
            good.push_back(&offer);
        }
    }
    const Offer* best = step.want      ? tightest(good, *step.want)
                        : good.empty() ? nullptr
                                       : good.front();
    if (best == nullptr) {
        const Error none(
            Code::out_of_stock,
            offers->empty() ? "it has nothing of the kind" : "all it has is taken or too dear"
        );
        co_await refuse(step, none, false);
        co_return std::nullopt;
    }
    co_return *best;
}

// The row says `creating` by now: whatever happens from here on, a listing tells what came of it.
Task<> Keeper::order(Instance instance, const PoolSettings& pool, const Step& step) {
    MachineOrder order;
    order.name = instance.name();
    order.fleet = p_.fleet;
    order.instance = instance.id;
    order.pool = instance.pool;
    order.made_from = pool.made_from;
    order.offer = instance.offer;
    if (provider(step.provider)->traits().dials_in) {
        order.secrets["COMFYD_GATEWAY"] = p_.gateway;
    }
    order.secrets["COMFYD_WORKER_TOKEN"] = instance.token;
    order.secrets["COMFYD_INSTANCE"] = instance.id;
    if (!pool.made_from.packs.empty()) {
        order.secrets["COMFYD_PACKS"] = agent::join_packs(pool.made_from.packs);
    }
    auto machine = co_await provider(step.provider)->create(std::move(order));
    if (machine) {
        offers_.succeed(offer_key(step.pool, step.offer, step.want));
        providers_.succeed(step.provider);
        instance.machine = std::move(*machine);
        instance.revision += 1;
        co_await save(std::move(instance));
        list_now_.at(step.provider)->notify();  // what nobody was looking for is there now
    } else if (is_clear_no(machine.error().code)) {
        co_await refuse(step, std::move(machine.error()), true);
    } else if (machine.error().code != Code::cancelled) {
        providers_.fail(step.provider, p_.clock.now(), p_.chance());
        auto told = event("unclear", machine.error().message, instance);
        co_await tell(std::move(told));
        list_now_.at(step.provider)->notify();
    }
}

// It is not asked for a while; the name of the event that tells of it.
std::string Keeper::rest_provider(const std::string& provider, const Error& error) {
    const Time now = p_.clock.now();
    if (error.code == Code::rate_limited) {
        const auto told = json::find_number(error.details, "retry_after");
        constexpr double kOtherwise = 30;
        constexpr double kMost = 3600;
        const double seconds = told && *told ? std::clamp(**told, 1.0, kMost) : kOtherwise;
        const double spread = 1 + p_.chance();
        providers_.rest(
            provider, now + Millis(static_cast<Millis::rep>((seconds + spread) * 1000))
        );
        return "refused";
    }
    if (error.code == Code::balance_empty || error.code == Code::unauthorized ||
        error.code == Code::forbidden) {
        providers_.rest(provider, now + kClosedFor);
        return "provider_closed";
    }
    providers_.fail(provider, now, p_.chance());
    return "refused";
}

// Somebody is not asked for a while; the instance waits for another offer.
Task<> Keeper::refuse(const Step& step, Error error, bool is_ordered) {
    const Time now = p_.clock.now();
    std::string what;
    if (error.code == Code::cancelled) {
        co_return;
    }
    if (error.code == Code::out_of_stock || error.code == Code::not_found ||
        error.code == Code::invalid_argument) {
        offers_.fail(offer_key(step.pool, step.offer, step.want), now, p_.chance());
        what = "out_of_stock";
    } else {
        what = rest_provider(step.provider, error);
    }
    Instance instance = *find(step.instance);
    instance.provider = step.provider;
    auto told = event(what, error.message, instance);
    log::warning(
        "a provider gives no machine",
        {{"provider", step.provider},
         {"pool", step.pool},
         {"code", to_string(error.code)},
         {"error", log::foreign(error.message)}}
    );
    const bool cannot_be = error.code == Code::invalid_argument;
    if (is_ordered && cannot_be) {
        instance.reason = error.message;
        const bool ended = co_await move(instance, failed, error.message, "failed", true);
        if (ended) {
            co_await count_failed_start(std::move(instance));
        }
    } else if (is_ordered) {
        instance.refusals += 1;
        auto next = moved(instance, requested, now, error.message);
        next->provider.clear();
        next->token.clear();
        co_await save(std::move(*next), std::move(told));
    } else {
        find(step.instance)->reason = error.message;
        co_await tell(std::move(told));
    }
}

Task<> Keeper::follow(Step step) {
    Instance instance = *find(step.instance);
    const Machine& machine = *step.machine;
    std::optional<FleetEvent> told;
    if (instance.machine.empty()) {
        told = event("adopted", "its machine was found by its name", instance);
    }
    instance.machine = machine.id;
    instance.url = machine.url.value_or(instance.url);
    if (machine.usd_per_hour) {
        instance.offer.usd_per_hour = machine.usd_per_hour;
    }
    if (step.to == instance.state) {
        instance.revision += 1;
        co_await save(std::move(instance), std::move(told));
        co_return;
    }
    auto next = moved(std::move(instance), step.to, p_.clock.now(), step.why);
    if (!next) {
        log::error("an instance cannot follow its machine", {{"error", next.error().message}});
        co_return;
    }
    if (!told) {
        told = event(std::string(to_string(step.to)), step.why, *next);
    }
    co_await save(std::move(*next), std::move(told));
}

Task<> Keeper::examine(Step step) {
    const Instance before = *find(step.instance);
    const PoolSettings* pool = pool_of(before);
    Promise promise;
    if (pool->made_from.gpus > 0) {
        promise.gpu_memory_bytes = before.offer.gpu_memory_bytes;
        promise.has_gpu = promise.gpu_memory_bytes > 0 || !before.offer.gpu.empty();
    }
    promise.disk_bytes = static_cast<std::uint64_t>(pool->made_from.disk_gb) * kGigabyte;
    auto found = co_await p_.crew.examine(worker_of(before), promise);
    Instance instance = *find(step.instance);
    switch (found.verdict) {
        case Examination::Verdict::not_yet:
            aside_[step.instance].rests_until = p_.clock.now() + p_.times.examine_again;
            find(step.instance)->reason = std::move(found.why);
            break;
        case Examination::Verdict::wrong:
            step.has_failed = step.counts = true;
            step.why = std::move(found.why);
            co_await leave(std::move(step));
            break;
        case Examination::Verdict::good:
            instance.gpu = std::move(found.gpu);
            co_await move(std::move(instance), warming, "it answers", "warming");
            break;
    }
}

Task<> Keeper::warm_up(Step step) {
    const Instance before = *find(step.instance);
    const PoolSettings pool = *pool_of(before);
    Result<> done;
    if (!pool.warm_up.empty()) {
        const Millis used = p_.clock.now() - before.begun().value_or(p_.clock.now());
        done = co_await p_.crew.warm_up(
            worker_of(before), pool.warm_up, std::max(pool.start_max - used, Millis(1'000))
        );
    }
    if (done) {
        const bool saved = co_await move(*find(step.instance), ready, "", "ready");
        if (saved) {
            co_await count_start(*find(step.instance));
        }
        co_return;
    }
    const Code code = done.error().code;
    if (code == Code::worker_rejected || code == Code::node_execution_error ||
        code == Code::out_of_memory) {
        step.has_failed = step.counts = true;
        step.why = "the warm-up failed: " + done.error().message;
        co_await leave(std::move(step));
    } else if (code != Code::cancelled) {
        aside_[step.instance].rests_until = p_.clock.now() + p_.times.examine_again;
        find(step.instance)->reason = "the warm-up did not end: " + done.error().message;
    }
}

// Its agent may know that it never will again. What was promised was looked at before it served.
Task<> Keeper::inquire(Step step) {
    auto found = co_await p_.crew.examine(worker_of(*find(step.instance)), {});
    Aside& aside = aside_[step.instance];
    aside.rests_until = p_.clock.now() + p_.times.examine_again;
    if (found.verdict == Examination::Verdict::wrong) {
        step.has_failed = true;
        step.why = std::move(found.why);
        co_await leave(std::move(step));
    } else if (aside.silent_since) {
        find(step.instance)->reason = std::move(found.why);
    }
}

void Keeper::employ(const Step& step) {
    const Instance& instance = *find(step.instance);
    auto added = p_.crew.employ(worker_of(instance));
    if (!added && added.error().code != Code::conflict) {
        log::warning(
            "a machine cannot be a worker",
            {{"instance", instance.id}, {"error", log::foreign(added.error().message)}}
        );
        aside_[step.instance].rests_until = p_.clock.now() + p_.times.examine_again;
        return;
    }
    aside_[step.instance].is_employed = true;
}

Task<> Keeper::drain(Step step) {
    Instance instance = *find(step.instance);
    if (instance.state == ready) {
        instance.parks = step.to == parked;
        const bool saved = co_await move(std::move(instance), draining, step.why, "draining");
        if (!saved) {
            co_return;
        }
        instance = *find(step.instance);
    }
    const PoolSettings* pool = pool_of(instance);
    Millis patience = pool == nullptr ? PoolSettings().drain_max : pool->drain_max;
    if (step.machine && step.machine->reclaimed_at) {
        constexpr Millis kSpare{5'000};  // to give back in time what does not end
        const Millis left = *step.machine->reclaimed_at - p_.clock.now() - kSpare;
        patience = std::clamp(left, Millis(0), patience);
    }
    auto let_go = co_await p_.crew.dismiss(instance.worker(), patience);
    if (!let_go && let_go.error().code != Code::not_found) {
        co_return;  // stopped, or somebody else does it: looked at again
    }
    aside_[step.instance].is_employed = false;
    aside_[step.instance].switched_at.reset();
    const InstanceState to = instance.parks ? parked : removing;
    co_await move(*find(step.instance), to, instance.reason, std::string(to_string(to)));
}

Task<> Keeper::leave(Step step) {
    Instance instance = *find(step.instance);
    const bool saved = co_await move(
        std::move(instance),
        removing,
        step.why,
        step.has_failed ? "failing" : "removing",
        step.has_failed
    );
    if (!saved) {
        co_return;
    }
    if (step.counts) {
        co_await count_failed_start(*find(step.instance));
    }
    if (aside_[step.instance].is_employed) {
        auto let_go = co_await p_.crew.dismiss(find(step.instance)->worker(), Millis(0));
        aside_[step.instance].is_employed = !let_go && let_go.error().code != Code::not_found;
    }
}

Task<> Keeper::remove(Step step) {
    const Instance instance = *find(step.instance);
    if (aside_[step.instance].is_employed) {
        auto let_go = co_await p_.crew.dismiss(instance.worker(), Millis(0));
        aside_[step.instance].is_employed = !let_go && let_go.error().code != Code::not_found;
    }
    MachineProvider* of = provider(instance.provider);
    if (of == nullptr || !may_act()) {
        if (of == nullptr) {
            removals_.fail(instance.id, p_.clock.now(), p_.chance());
            aside_[instance.id].rests_until = removals_.until(instance.id);
            log::error(
                "a machine cannot be removed: its provider is not configured any more",
                {{"instance", instance.id},
                 {"provider", instance.provider},
                 {"machine", instance.machine}}
            );
        }
        co_return;
    }
    auto removed = co_await of->remove(instance.machine);
    if (removed) {
        aside_[instance.id].removed_at = p_.clock.now();
        list_now_.at(instance.provider)->notify();
        co_return;
    }
    if (removed.error().code == Code::cancelled) {
        co_return;
    }
    removals_.fail(instance.id, p_.clock.now(), p_.chance());
    aside_[instance.id].rests_until = removals_.until(instance.id);
    log::warning(
        "a machine was not removed yet",
        {{"instance", instance.id},
         {"provider", instance.provider},
         {"error", log::foreign(removed.error().message)}}
    );
    auto told = event("not_removed", removed.error().message, instance);
    co_await tell(std::move(told));
}

Task<> Keeper::end(Step step) {
    Instance instance = *find(step.instance);
    const InstanceState to = step.has_failed ? failed : gone;
    const bool saved =
        co_await move(instance, to, step.why, std::string(to_string(to)), step.has_failed);
    if (!saved) {
        co_return;
    }
    if (const auto record = records_.find(instance.pool);
        record != records_.end() && record->second.leaving.contains(instance.id)) {
        const std::string id = instance.id;
        const ChangePool forget = [id](PoolRecord& pool) {
            pool.leaving.erase(id);
            return std::optional<FleetEvent>();
        };
        co_await change_pool(instance.pool, forget);
    }
}

Task<> Keeper::remove_stray(Step step) {
    if (!may_act()) {
        co_return;
    }
    auto removed = co_await provider(step.provider)->remove(step.machine->id);
    Instance unknown;
    unknown.id = step.instance;
    unknown.provider = step.provider;
    log::warning(
        "a machine that no instance knows is removed",
        {{"provider", step.provider}, {"machine", step.machine->name}, {"done", removed.has_value()}
        }
    );
    if (removed) {
        counts_.strays_removed += 1;
        auto told = event("stray_removed", step.why, unknown);
        co_await tell(std::move(told));
    }
}

Task<bool> Keeper::save(Instance instance, std::optional<FleetEvent> event) {
    if (!may_act()) {
        co_return false;
    }
    const std::string id = instance.id;
    auto saved = co_await p_.store.save_instance(instance, std::move(event), p_.term);
    if (saved) {
        if (is_open(instance.state)) {
            rows_[id] = std::move(instance);
        } else {
            rows_.erase(id);
        }
        let_in(id);
        co_return true;
    }
    must_read_ = true;  // it may be stored all the same
    store_rests_ = p_.clock.now() + p_.times.tick;
    if (saved.error().code == Code::lead_lost) {
        is_over_ = true;
    } else if (saved.error().code != Code::cancelled) {
        log::warning(
            "what became of a machine could not be stored yet",
            {{"instance", id}, {"error", saved.error().message}}
        );
    }
    co_return false;
}

Task<bool> Keeper::move(
    Instance instance, InstanceState to, std::string why, std::string told, bool has_failed
) {
    auto next = moved(std::move(instance), to, p_.clock.now(), why);
    if (!next) {
        log::error("an instance cannot change", {{"error", next.error().message}});
        co_return false;
    }
    next->has_failed = next->has_failed || has_failed;
    log::info(
        "instance",
        {{"instance", next->id},
         {"pool", next->pool},
         {"state", to_string(to)},
         {"why", log::foreign(why)}}
    );
    auto about = event(std::move(told), std::move(why), *next);
    const bool saved = co_await save(std::move(*next), std::move(about));
    co_return saved;
}

FleetEvent Keeper::event(std::string what, std::string why, const Instance& of) const {
    FleetEvent made;
    made.at = p_.clock.now();
    made.fleet = p_.fleet;
    made.what = std::move(what);
    made.why = std::move(why);
    made.pool = of.pool;
    made.instance = of.id;
    made.provider = of.provider;
    return made;
}

// Losing one costs nothing but the knowledge of it.
Task<> Keeper::tell(FleetEvent event) {
    auto noted = co_await p_.store.note_fleet_event(std::move(event));
    if (!noted && noted.error().code != Code::cancelled) {
        log::warning("an event of the fleet is not noted", {{"error", noted.error().message}});
    }
}

// Operators write the same record: it is read again until nobody comes between.
Task<> Keeper::change_pool(std::string name, ChangePool change) {
    for (int tries = 0; tries < kPoolTries; ++tries) {
        co_await read_pools();
        PoolRecord record = records_[name];
        record.fleet = p_.fleet;
        record.name = name;
        auto told = change(record);
        record.revision += 1;
        auto saved = co_await p_.store.save_pool(record, std::move(told));
        if (saved) {
            records_[name] = std::move(record);
            co_return;
        }
        if (saved.error().code != Code::conflict) {
            log::warning(
                "what is known of a pool could not be stored",
                {{"pool", name}, {"error", saved.error().message}}
            );
            co_return;
        }
    }
}

Task<> Keeper::count_failed_start(Instance instance) {
    counts_.failed_starts += 1;
    pools_rest_.fail(instance.pool, p_.clock.now(), p_.chance());
    const PoolSettings* pool = pool_of(instance);
    if (pool == nullptr) {
        co_return;
    }
    const std::string mark = pool->mark();
    const ChangePool count = [this, instance, mark](PoolRecord& record) {
        record.failed_starts += 1;
        if (record.failed_starts < kFailedStartsMax) {
            return std::optional<FleetEvent>();
        }
        record.paused = mark;
        record.paused_why = std::to_string(record.failed_starts) +
                            " starts in a row failed, the last because: " + instance.reason;
        return std::optional(event("paused", record.paused_why, instance));
    };
    co_await change_pool(instance.pool, count);
}

Task<> Keeper::count_start(Instance instance) {
    counts_.starts += 1;
    if (const PoolSettings* pool = pool_of(instance)) {
        scaling_.note_start(*pool, instance);
    }
    pools_rest_.succeed(instance.pool);
    std::optional<Time> before;
    std::optional<InstanceState> phase;
    const Time woken = instance.when(parked).value_or(Time());
    for (const InstanceState state : {requested, creating, pulling, starting, warming, ready}) {
        if (const auto at = instance.when(state); at && *at >= woken) {
            if (phase && before) {
                counts_.seconds_in[*phase] += std::chrono::duration<double>(*at - *before).count();
            }
            phase = state;
            before = at;
        }
    }
    const auto record = records_.find(instance.pool);
    if (record != records_.end() && record->second.failed_starts > 0) {
        const ChangePool forget = [](PoolRecord& pool) {
            pool.failed_starts = 0;
            return std::optional<FleetEvent>();
        };
        co_await change_pool(instance.pool, forget);
    }
}

}  // namespace comfyd::fleet
