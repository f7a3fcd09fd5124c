// What each step of the keeper does, from the wish for a machine until it works;
// keeper_ordering.cpp orders it, keeper_leaving.cpp gives it up, keeper_records.cpp writes down
// what became of it.
#include <algorithm>
#include <utility>

#include "base/foreign_text.hpp"
#include "base/log.hpp"
#include "fleet/instances/keeper.hpp"

namespace comfyd::fleet {
namespace {

using enum InstanceState;

constexpr std::uint64_t kGigabyte = 1'000'000'000;

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
    found.why = presentable(step.instance, std::move(found.why));
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
    const std::string why = presentable(step.instance, std::move(done.error().message));
    if (code == Code::worker_rejected || code == Code::node_execution_error ||
        code == Code::out_of_memory) {
        step.has_failed = step.counts = true;
        step.why = "the warm-up failed: " + why;
        co_await leave(std::move(step));
    } else if (code != Code::cancelled) {
        aside_[step.instance].rests_until = p_.clock.now() + p_.times.examine_again;
        find(step.instance)->reason = "the warm-up did not end: " + why;
    }
}

// Its agent may know that it never will again. What was promised was looked at before it served.
Task<> Keeper::inquire(Step step) {
    auto found = co_await p_.crew.examine(worker_of(*find(step.instance)), {});
    found.why = presentable(step.instance, std::move(found.why));
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

}  // namespace comfyd::fleet
