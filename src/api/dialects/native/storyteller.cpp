#include "api/dialects/native/storyteller.hpp"

#include <algorithm>
#include <utility>

#include "api/dialects/native/frames.hpp"
#include "api/dialects/native/names.hpp"
#include "api/dialects/native/story.hpp"
#include "comfy/members.hpp"

namespace comfyd::api::native {
namespace {

// Told to nobody when a prompt has no owner; everything else goes to everybody then.
bool is_for_owner_only(std::string_view type) {
    return type == "execution_start" || type == "execution_cached" || type == "executing" ||
           type == "executed" || type == "execution_success" || type == "execution_error";
}

// The worker's own words about start and end: the ledger decides those.
bool is_ours_to_say(const jobs::WorkerMessage& said) {
    if (said.type == "execution_error") {
        return comfy::text_of(said.data, "exception_type") != "ExecutionBlocked";
    }
    if (said.type == "executing") {
        return json::find(said.data, "node") == nullptr;
    }
    return said.type == "execution_start" || said.type == "execution_success" ||
           said.type == "execution_interrupted";
}

}  // namespace

void Storyteller::see(const jobs::Job& job) {
    auto known = live_.find(job.id);
    const bool is_over = jobs::is_terminal(job.state);
    if (known == live_.end() || (known->second.ended && !is_over)) {
        auto expected = take_expected(job.id);
        if (is_over && !expected) {
            return;
        }
        known = begin(job, expected && expected->held);
    }
    Live& live = known->second;
    if (live.ended) {
        return;
    }
    live.revision = job.revision;
    live.worker = job.worker;
    if (job.attempt > 0) {
        say_start(live, job.started_at.value_or(job.created_at));
    }
    if (is_over) {
        hear_end(job, &live, job.finished_at.value_or(job.created_at));
    }
}

void Storyteller::forget(const JobId& job) {
    if (const auto found = live_.find(job); found != live_.end()) {
        found->second.ended = true;
        drop_told({job});
        return;
    }
    take_expected(job);
}

std::vector<Storyteller::Unfinished> Storyteller::unfinished() {
    std::vector<Unfinished> jobs;
    for (const auto& [id, live] : live_) {
        if (!live.ended) {
            jobs.push_back({id, live.tenant});
        }
    }
    const Lock lock(mutex_);
    for (const auto& [id, expected] : expected_) {
        jobs.push_back({id, expected.tenant, !expected.held});
    }
    return jobs;
}

void Storyteller::set_unfinished(const std::string& tenant, std::size_t count) {
    audience_.set_unfinished(tenant, count);
    tell_status(tenant, nullptr);
}

Storyteller::Lives::iterator Storyteller::begin(const jobs::Job& job, bool held) {
    Live live{job.tenant, prompt_id_of(job), client_id_of(job)};
    live.held = held;
    return live_.insert_or_assign(job.id, std::move(live)).first;
}

void Storyteller::expect(const std::string& tenant, const JobId& job) {
    const Lock lock(mutex_);
    expected_.emplace(job, Expected{tenant});
}

std::optional<Storyteller::Expected> Storyteller::take_expected(const JobId& job) {
    const Lock lock(mutex_);
    auto taken = expected_.extract(job);
    return taken ? std::optional(std::move(taken.mapped())) : std::nullopt;
}

void Storyteller::release(const JobId& job, bool is_accepted) {
    const auto found = live_.find(job);
    if (found == live_.end()) {
        const Lock lock(mutex_);
        if (!is_accepted) {
            expected_.erase(job);
        } else if (const auto expected = expected_.find(job); expected != expected_.end()) {
            expected->second.held = false;
        }
        return;
    }
    found->second.held = false;
    flush(found->second);
    drop_told({job});
}

void Storyteller::flush(Live& live) {
    if (live.held || live.behind) {
        return;
    }
    for (const Held& held : std::exchange(live.waiting, {})) {
        if (held.frame) {
            deliver(live, held.to, held.frame);
        } else {
            tell_status(live.tenant, nullptr);
        }
    }
}

// Several jobs of a worker may be finishing, each behind the one before it: the new one goes to the
// end of that line.
void Storyteller::wait_for_others(const JobId& job, Live& live) {
    auto last = finishing_.end();
    for (auto entry = finishing_.begin(); entry != finishing_.end(); ++entry) {
        const auto other = live_.find(entry->first);
        const bool is_before = entry->first != job && other != live_.end() &&
                               other->second.tenant == live.tenant &&
                               other->second.worker == live.worker;
        if (is_before && (last == finishing_.end() || entry->second.empty())) {
            last = entry;
        }
    }
    if (last != finishing_.end()) {
        live.behind = last->first;
        last->second.push_back(job);
    }
}

std::vector<JobId> Storyteller::let_others_go(const JobId& job) {
    const auto found = finishing_.find(job);
    if (found == finishing_.end()) {
        return {};
    }
    std::vector<JobId> freed = std::move(found->second);
    finishing_.erase(found);
    for (const JobId& id : freed) {
        const auto follower = live_.find(id);
        if (follower != live_.end() && follower->second.behind == job) {
            follower->second.behind.reset();
            flush(follower->second);
        }
    }
    return freed;
}

void Storyteller::drop_told(std::vector<JobId> candidates) {
    while (!candidates.empty()) {
        const JobId job = candidates.back();
        candidates.pop_back();
        const auto found = live_.find(job);
        if (found == live_.end() || !found->second.ended || found->second.held ||
            found->second.behind) {
            continue;
        }
        live_.erase(found);
        const auto freed = let_others_go(job);
        candidates.insert(candidates.end(), freed.begin(), freed.end());
    }
}

std::optional<JobId> Storyteller::attach(
    const std::string& tenant, const std::string& client_id, std::shared_ptr<Mailbox> mailbox
) {
    audience_.attach(tenant, client_id, std::move(mailbox));
    const auto running = std::ranges::find_if(live_, [&](const auto& entry) {
        const Live& live = entry.second;
        return live.started && !live.ended && live.tenant == tenant && live.client_id == client_id;
    });
    return running == live_.end() ? std::nullopt : std::optional(running->first);
}

void Storyteller::detach(const std::string& tenant, const Mailbox* mailbox) {
    audience_.detach(tenant, mailbox);
}

std::optional<RunNotes> Storyteller::notes(const JobId& job) const {
    if (const auto found = live_.find(job); found != live_.end()) {
        return found->second.notes;
    }
    const auto found = ended_.find(job);
    return found == ended_.end() ? std::nullopt : std::optional(found->second.notes);
}

void Storyteller::hear(events::Notice& notice) {
    std::visit([this](auto& told) { hear(told); }, notice);
}

void Storyteller::hear(const events::Arrived& arrived) {
    const jobs::Job& job = *arrived.job;
    audience_.set_unfinished(job.tenant, arrived.unfinished);
    if (job.dialect != kDialect) {
        tell_status(job.tenant, nullptr);
        return;
    }
    const auto known = live_.find(job.id);
    if (known == live_.end() ? is_told(job) : known->second.has_seen(job)) {
        return;
    }
    const auto expected = take_expected(job.id);
    Live& live = begin(job, expected && expected->held)->second;
    live.started = arrived.how == events::Arrived::How::restored && job.attempt > 0;
    tell_status(job.tenant, &live);
}

void Storyteller::hear(const events::Changed& changed) {
    const jobs::Job& job = *changed.job;
    audience_.set_unfinished(job.tenant, changed.unfinished);
    const auto found = live_.find(job.id);
    Live* live = found == live_.end() ? nullptr : &found->second;
    if (live != nullptr && live->has_seen(job)) {
        return;
    }
    if (changed.event->type == jobs::EventType::started) {
        hear_start(job, live, changed.event->at);
    } else if (changed.event->type == jobs::EventType::retrying) {
        drop_told(let_others_go(job.id));
    } else if (jobs::is_terminal(job.state)) {
        hear_end(job, live, changed.event->at);
    }
}

void Storyteller::hear_start(const jobs::Job& job, Live* live, Time at) {
    if (live != nullptr) {
        live->worker = job.worker;
        wait_for_others(job.id, *live);
    }
    tell_status(job.tenant, live);
    if (live != nullptr) {
        say_start(*live, at);
    }
}

void Storyteller::say_start(Live& live, Time at) {
    if (!std::exchange(live.started, true)) {
        say(live,
            To::owner,
            "execution_start",
            {{"prompt_id", live.prompt_id}, {"timestamp", to_unix_ms(at)}});
    }
}

void Storyteller::hear_end(const jobs::Job& job, Live* live, Time at) {
    if (live == nullptr) {
        tell_status(job.tenant, nullptr);
        return;
    }
    tell_end(*live, job, at);
    if (job.state == jobs::State::completed) {
        live->notes.outputs.clear();  // the ledger has them
    }
    remember(job, live->notes);
    live->ended = true;
    drop_told({job.id});
}

void Storyteller::tell_end(Live& live, const jobs::Job& job, Time at) {
    if (job.reused_from) {
        tell_reused(live, job, at);
    } else if (job.attempt > 0) {
        say_start(live, job.started_at.value_or(job.created_at));  // it may have been in a gap
    }
    // One that was taken out of the queue has no story to end.
    if (!live.started) {
        tell_status(live.tenant, &live);
        return;
    }
    auto [type, data] = ending(job, live.prompt_id, live.notes, at);
    const bool to_all = live.client_id.empty() && !is_for_owner_only(type);
    say(live, to_all ? To::everybody : To::owner, type, std::move(data));
    tell_status(live.tenant, &live);
    say(live, To::owner, "executing", {{"node", nullptr}, {"prompt_id", live.prompt_id}});
}

// As ComfyUI tells of a prompt whose nodes were all run before.
void Storyteller::tell_reused(Live& live, const jobs::Job& job, Time at) {
    live.notes = {};
    for (const auto& [node, ui] : job.ui_outputs) {
        live.notes.cached.emplace_back(node);
    }
    say_start(live, at);
    say(live,
        To::owner,
        "execution_cached",
        {{"nodes", live.notes.cached}, {"prompt_id", live.prompt_id}, {"timestamp", to_unix_ms(at)}}
    );
    for (const auto& [node, ui] : renamed_outputs(job.ui_outputs, job.id)) {
        say(live,
            To::owner,
            "executed",
            {{"node", node}, {"display_node", node}, {"output", ui}, {"prompt_id", live.prompt_id}}
        );
    }
}

bool Storyteller::is_heard(const Live& live, To to) const {
    if (live.held || live.behind) {
        return true;
    }
    return to == To::owner ? audience_.find(live.tenant, live.client_id) != nullptr
                           : audience_.is_there(live.tenant);
}

void Storyteller::hear(events::Said& told) {
    const JobId job = told.job;
    jobs::WorkerMessage& said = told.message;
    const auto found = live_.find(job);
    if (found == live_.end() || found->second.ended) {
        return;
    }
    Live& live = found->second;
    note(live.notes, said);
    if (said.type == "execution_success" || said.type == "execution_error" ||
        said.type == "execution_interrupted") {
        finishing_.try_emplace(job);
    } else if (said.type == "execution_cached") {
        drop_told(let_others_go(job));  // another attempt
    }
    if (is_ours_to_say(said) || (live.client_id.empty() && is_for_owner_only(said.type))) {
        return;
    }
    const To to = live.client_id.empty() || said.type == "text" ? To::everybody : To::owner;
    if (is_heard(live, to)) {
        send(live, to, to_frame(std::move(said), job, live.prompt_id));
    }
}

void Storyteller::remember(const jobs::Job& job, RunNotes notes) {
    if (ended_.insert_or_assign(job.id, Ended{std::move(notes), job.revision}).second) {
        ended_by_age_.push_back(job.id);
    }
    while (ended_by_age_.size() > kEndedMax) {
        ended_.erase(ended_by_age_.front());
        ended_by_age_.pop_front();
    }
}

bool Storyteller::is_told(const jobs::Job& job) const {
    const auto ended = ended_.find(job.id);
    return ended != ended_.end() && ended->second.revision >= job.revision;
}

void Storyteller::say(Live& live, To to, std::string_view type, json::object data) {
    if (is_heard(live, to)) {
        send(live, to, make_frame(type, std::move(data)));
    }
}

void Storyteller::send(Live& live, To to, FramePtr frame) {
    if (!live.held && !live.behind) {
        deliver(live, to, frame);
    } else if (live.waiting.size() < kHeldMax) {
        live.waiting.push_back({to, std::move(frame)});
    }
}

void Storyteller::deliver(const Live& live, To to, const FramePtr& frame) {
    if (to == To::everybody) {
        audience_.tell_all(live.tenant, frame);
    } else if (Mailbox* mailbox = audience_.find(live.tenant, live.client_id)) {
        mailbox->post(frame);
    }
}

void Storyteller::tell_status(const std::string& tenant, Live* live) {
    if (!audience_.is_there(tenant)) {
        return;
    }
    if (audience_.is_crowd(tenant)) {
        audience_.tell_crowd(tenant, Audience::Ticks::now());
    } else if (live != nullptr && live->behind) {
        send(*live, To::everybody, nullptr);
    } else if (live != nullptr) {
        send(*live, To::everybody, audience_.status(tenant));
    } else {
        audience_.tell_all(tenant, audience_.status(tenant));
    }
}

}  // namespace comfyd::api::native
