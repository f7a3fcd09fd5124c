#include <algorithm>
#include <cmath>
#include <utility>

#include "base/crypto.hpp"
#include "base/log.hpp"
#include "fleet/comfy_machine.hpp"
#include "workflow/merge/merge.hpp"
#include "workflow/plan/loaders.hpp"

namespace comfyd::fleet {
namespace {

// Whoever asks for new files again and again does not make a worker tell of its classes each time.
constexpr std::chrono::seconds kListsMayBeOld{5};
// Of what larger ones tell no attempt makes its result: it is read from the history.
constexpr std::size_t kKeptTextBytesMax = 256 * 1024;

// 0.5 .. 1, so that workers that went down together are not asked together.
double jitter() {
    std::uint16_t bits = 0;
    random_bytes(&bits, sizeof bits);
    return 0.5 + static_cast<double>(bits) / 131'072.0;
}

}  // namespace

Task<> ComfyMachine::watch_health() {
    while (true) {
        check_wanted_ = false;
        co_await check_health();
        if (!check_wanted_) {
            co_await check_.wait_for(next_check());
        }
        const bool stop = co_await is_cancelled();
        if (stop) {
            co_return;
        }
    }
}

Task<> ComfyMachine::check_health() {
    checked_at_ = Ticks::now();
    auto stats = co_await link_.client.system_stats();
    if (!stats) {
        note_failure(stats.error());
        co_await meet_agent(std::move(stats.error()));
        co_return;
    }
    known_.stats = std::move(*stats);
    report();
    link_.gpu_type = known_.stats.device;
    for (const auto& [prompt, attempt] : attempts_) {
        attempt->on_machine(known_.stats);
    }
    failures_ = 0;
    silences_ = 0;
    refused_since_.reset();
    if (!reachable_) {
        reachable_ = true;
        reachable_changed_.notify();
    }
    if (known_.state != State::up) {
        auto up = co_await come_up();
        if (!up) {
            note_failure(up.error());
        }
        co_return;
    }
    co_await clear_orphans();
    if (known_.fetches_models && Ticks::now() - agent_asked_at_ >= options_.agent_interval) {
        co_await look_for_agent();
        report();
    }
    const auto age = Ticks::now() - classes_read_at_;
    const bool idle = attempts_.empty();
    // A worker needs a third of a second for the answer, so preferably when it has nothing else to
    // do.
    if (classes_stale_ || (lists_stale_ && age >= kListsMayBeOld) ||
        age >= options_.classes_interval * (idle ? 1 : 2)) {
        auto refreshed = co_await refresh_classes();
        if (!refreshed) {
            log::debug(
                "node classes not read", {{"worker", id_}, {"error", refreshed.error().message}}
            );
        }
    }
}

Task<Result<>> ComfyMachine::come_up() {
    if (blockage_) {
        auto free = co_await check_blockage();
        if (!free) {
            co_return free;
        }
    }
    auto refreshed = co_await refresh_classes();
    if (!refreshed) {
        co_return refreshed;
    }
    known_.fetches_models = false;  // another server may be there now
    known_.wants_rest = false;
    co_await look_for_agent();
    co_await clear_orphans();
    co_await announce_lead();
    if (link_.socket == 0) {
        co_await socket_changed_.wait_for(options_.socket_wait);
    }
    const bool stop = co_await is_cancelled();
    if (stop) {
        co_return Result<>();
    }
    known_.state = State::up;
    known_.last_error.clear();
    checks_down_ = 0;
    log::info(
        "worker is up",
        {{"worker", id_},
         {"version", known_.stats.version},
         {"device", known_.stats.device},
         {"node_classes", known_.classes->size()},
         {"websocket", link_.socket != 0}}
    );
    report();
    co_return Result<>();
}

Task<Result<>> ComfyMachine::refresh_classes() {
    auto document = co_await link_.client.object_info();
    if (!document) {
        co_return fail(std::move(document.error()));
    }
    auto described = co_await link_.client.described_classes();
    if (!described) {
        co_return fail(std::move(described.error()));
    }
    auto replacements = co_await link_.client.node_replacements();
    if (!replacements) {
        co_return fail(std::move(replacements.error()));
    }
    auto classes = co_await parts_.classes.read(
        {std::move(*document), std::move(*described), std::move(*replacements)}
    );
    if (!classes) {
        co_return fail(std::move(classes.error()));
    }
    classes_read_at_ = Ticks::now();
    classes_stale_ = lists_stale_ = false;
    if (known_.classes != *classes) {
        known_.classes = std::move(*classes);
        known_.merges = workflow::worker_supports_merge(*known_.classes);
        known_.warms = known_.classes->find(workflow::kWarmClass) != nullptr;
        report();
    }
    co_return Result<>();
}

// A blocked worker answers as if nothing were wrong; only its queue shows whether it works again.
Task<Result<>> ComfyMachine::check_blockage() {
    auto queue = co_await link_.client.queue();
    if (!queue) {
        co_return fail(std::move(queue.error()));
    }
    if (blockage_->needs_probe) {
        auto ran = co_await probe();
        co_return ran;
    }
    const bool blocked = blockage_->prompt_id.empty()
                             ? queue->running.empty() && !queue->pending.empty()
                             : queue->is_running(blockage_->prompt_id);
    if (blocked) {
        co_return fail(Code::worker_unavailable, blockage_->reason);
    }
    unblock();
    co_return Result<>();
}

// Prompts that were given up while the worker could not be reached must not keep it busy.
Task<> ComfyMachine::clear_orphans() {
    if (orphans_.empty()) {
        co_return;
    }
    auto queue = co_await link_.client.queue();
    if (!queue) {
        co_return;
    }
    const auto orphans = std::exchange(orphans_, {});
    for (const std::string& prompt : orphans) {
        Result<> removed = may_send(options_.mandate, current(options_.mandate));
        if (!removed) {
            co_return;  // whoever leads now knows what is wanted there
        }
        if (queue->is_pending(prompt)) {
            removed = co_await link_.client.delete_queued(prompt);
        } else if (queue->is_running(prompt)) {
            removed = co_await link_.client.interrupt(prompt);
        }
        if (!removed) {
            log::debug("orphan not removed", {{"worker", id_}, {"error", removed.error().message}});
        }
    }
}

// Early, so that no prompt of an earlier leader is taken any more where there is a fence.
Task<> ComfyMachine::announce_lead() {
    const MandatePtr mandate = current(options_.mandate);
    auto known = co_await announce(link_, mandate);
    if (!known && known.error().code == Code::lead_lost) {
        mandate->refused();
    }
}

void ComfyMachine::note_failure(const Error& error) {
    if (error.code == Code::cancelled) {
        return;
    }
    ++failures_;
    const bool refused = comfy::is_refused(error);
    const bool gone = refused || failures_ >= options_.health_failures_max;
    if (known_.state != State::down && gone) {
        go_down(error.message);
    } else if (known_.state != State::up) {
        known_.last_error = error.message;
        ++checks_down_;
        report();
    }
    if (hangs(refused)) {
        silences_ = 0;
        refused_since_.reset();
        parts_.end_process();
    }
}

// One of ours that answers nothing hangs, whether it was ever up or not. One that takes no
// connections may be on its way up, which takes long where others compute, too: how often it was
// asked meanwhile does not matter.
bool ComfyMachine::hangs(bool refused) {
    if (!refused) {
        refused_since_.reset();
        return ++silences_ >= options_.health_failures_max;
    }
    silences_ = 0;
    const auto now = Ticks::now();
    refused_since_ = refused_since_.value_or(now);
    return now - *refused_since_ >= options_.dead_after;
}

void ComfyMachine::go_down(std::string reason) {
    const bool was_down = known_.state == State::down;
    known_.state = State::down;
    known_.last_error = std::move(reason);
    link_.uploaded.clear();
    link_.known_epoch = 0;
    files_revision_.reset();
    known_.agent_answers = false;
    report();
    if (was_down) {
        return;
    }
    checks_down_ = 0;
    if (!blockage_) {
        reachable_ = false;
        if (events_) {
            events_->abort();
        }
    }
    log::info("worker is down", {{"worker", id_}, {"error", known_.last_error}});
}

Millis ComfyMachine::next_check() {
    if (known_.state == State::up) {
        return failures_ > 0 ? options_.health_retry : options_.health_interval;
    }
    if (const auto rest = std::chrono::ceil<Millis>(probe_at_ - Ticks::now());
        blockage_ && rest > Millis(0)) {
        return rest;
    }
    constexpr int kDoublingsMax = 20;
    const double factor = std::ldexp(1.0, std::min(checks_down_, kDoublingsMax));
    const double wait = std::min(
        static_cast<double>(options_.backoff_min.count()) * factor,
        static_cast<double>(options_.backoff_max.count())
    );
    return Millis(static_cast<std::int64_t>(wait * jitter()));
}

void ComfyMachine::check_soon() {
    check_wanted_ = true;
    check_.notify();
}

void ComfyMachine::hear_ready() {
    if (known_.state != State::up) {
        check_soon();
    }
}

// Short runs would fall between the regular checks; but each look is answered by the interpreter
// that samples.
void ComfyMachine::look_at_machine() {
    if (known_.state == State::up && Ticks::now() - checked_at_ >= options_.busy_look) {
        check_soon();
    }
}

// The new socket comes only after the old one is gone: a worker that notices the end of an old
// socket late would silence a new one of the same id.
Task<> ComfyMachine::keep_socket() {
    while (true) {
        while (!reachable_) {
            co_await reachable_changed_.wait();
            const bool stop = co_await is_cancelled();
            if (stop) {
                co_return;
            }
        }
        auto connected = co_await link_.client.connect_events(link_.client_id);
        if (connected) {
            events_ = std::move(*connected);
            link_.socket = ++sockets_made_;
            link_.socket_heard_at = Ticks::now();
            socket_changed_.notify();
            co_await read_socket();
            link_.socket = 0;
            events_.reset();
            link_.uploaded.clear();
            link_.known_epoch = 0;
            for (const auto& [prompt, attempt] : attempts_) {
                attempt->on_socket_lost();
            }
            check_soon();
        } else {
            log::debug("no WebSocket", {{"worker", id_}, {"error", connected.error().message}});
        }
        co_await sleep_for(options_.reconnect_delay);
        const bool stop = co_await is_cancelled();
        if (stop) {
            co_return;
        }
    }
}

Task<> ComfyMachine::read_socket() {
    while (true) {
        auto frame = co_await events_->next_frame();
        if (!frame) {
            log::debug("WebSocket ended", {{"worker", id_}, {"error", frame.error().message}});
            hear_held();
            co_return;
        }
        const auto now = Ticks::now();
        link_.socket_heard_at = now;
        if (!has_audience()) {
            is_held_.notify();
            if (!frame->binary && held_.hold(frame->data, now)) {
                continue;
            }
        }
        hear_held();
        if (!frame->binary && frame->data.size() > kKeptTextBytesMax) {
            miss_message();
        }
        const auto message = co_await events_->decode(std::move(*frame));
        dispatch(message, now);
    }
}

bool ComfyMachine::has_audience() const {
    return std::ranges::any_of(attempts_, [](const auto& entry) {
        return entry.second->has_audience();
    });
}

// What nobody waits for is seen by whoever asks for a job's status, soon enough for them.
Task<> ComfyMachine::tell_later() {
    constexpr Millis kSoonEnough{20};
    bool goes_on = true;
    while (goes_on) {
        co_await is_held_.wait();
        goes_on = co_await sleep_for(kSoonEnough);
        hear_held();
        for (const auto& [prompt, attempt] : attempts_) {
            attempt->tell_progress();
        }
    }
}

void ComfyMachine::miss_message() {
    for (const auto& [prompt, attempt] : attempts_) {
        attempt->on_message_missed();
    }
}

void ComfyMachine::hear_held() {
    for (const comfy::HeldFrames::Frame& frame : held_.take()) {
        dispatch(comfy::decode_text(frame.text), frame.came_at);
    }
}

void ComfyMachine::dispatch(const comfy::Message& message, Ticks::time_point came_at) {
    const auto* unknown = std::get_if<comfy::Unknown>(&message);
    if (std::holds_alternative<comfy::Malformed>(message)) {
        miss_message();
    }
    if (std::holds_alternative<comfy::Malformed>(message) || (unknown && !unknown->data)) {
        ++messages_skipped_;
        log::debug("message skipped", {{"worker", id_}, {"skipped", messages_skipped_}});
        return;
    }
    const std::string_view prompt = comfy::prompt_id_of(message);
    const auto found = attempts_.find(prompt);
    if (found != attempts_.end()) {
        found->second->on_message(message, came_at);
        return;
    }
    // Older workers do not say whose preview it is; it comes only to the owner of the prompt that
    // runs. Texts name no prompt at all, messages of custom nodes seldom.
    const bool is_nameless = std::holds_alternative<comfy::Preview>(message) ||
                             std::holds_alternative<comfy::NodeText>(message) || unknown != nullptr;
    if (ComfyAttempt* running = prompt.empty() && is_nameless ? find_running() : nullptr) {
        running->on_message(message, came_at);
    }
}

}  // namespace comfyd::fleet
