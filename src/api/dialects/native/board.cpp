#include "api/dialects/native/board.hpp"

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
bool is_ours_to_say(const jobs::Remark& remark) {
    if (remark.type == "execution_error") {
        return comfy::text_of(remark.data, "exception_type") != "ExecutionBlocked";
    }
    if (remark.type == "executing") {
        return json::find(remark.data, "node") == nullptr;
    }
    return remark.type == "execution_start" || remark.type == "execution_success" ||
           remark.type == "execution_interrupted";
}

constexpr std::size_t kCrowd = 16;  // sockets of a tenant

}  // namespace

void Board::hold(const JobId& job) {
    holds_.insert(job);
}

void Board::release(const JobId& job) {
    holds_.erase(job);
    const auto found = live_.find(job);
    if (found == live_.end()) {
        return;
    }
    found->second.held = false;
    flush(found->second);
    drop_told({job});
}

void Board::flush(Live& live) {
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
void Board::wait_for_others(const JobId& job, Live& live) {
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

std::vector<JobId> Board::let_others_go(const JobId& job) {
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

void Board::drop_told(std::vector<JobId> candidates) {
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

Board::Greeting Board::attach(
    const std::string& tenant, const std::string& client_id, std::shared_ptr<Mailbox> mailbox
) {
    Tenant& known = tenants_[tenant];
    known.sockets.push_back({client_id, std::move(mailbox)});
    Greeting greeting{known.unfinished, std::nullopt};
    for (const auto& [id, live] : live_) {
        if (live.started && !live.ended && live.tenant == tenant && live.client_id == client_id) {
            greeting.running = id;
            break;
        }
    }
    return greeting;
}

void Board::detach(const std::string& tenant, const Mailbox* mailbox) {
    const auto known = tenants_.find(tenant);
    if (known == tenants_.end()) {
        return;
    }
    std::erase_if(known->second.sockets, [mailbox](const Socket& socket) {
        return socket.mailbox.get() == mailbox;
    });
    if (known->second.sockets.empty() && known->second.unfinished == 0) {
        tenants_.erase(known);
    }
}

std::size_t Board::unfinished(const std::string& tenant) const {
    const auto known = tenants_.find(tenant);
    return known == tenants_.end() ? 0 : known->second.unfinished;
}

std::optional<RunNotes> Board::notes(const JobId& job) const {
    if (const auto found = live_.find(job); found != live_.end()) {
        return found->second.notes;
    }
    const auto found = notes_.find(job);
    return found == notes_.end() ? std::nullopt : std::optional(found->second);
}

void Board::on_job(const jobs::Job& job, bool is_new) {
    ++tenants_[job.tenant].unfinished;
    if (job.dialect != kDialect) {
        tell_status(job.tenant, nullptr);
        return;
    }
    Live live{job.tenant, prompt_id_of(job), client_id_of(job)};
    live.started = !is_new && job.attempt > 0;
    live.held = holds_.erase(job.id) > 0;
    Live& kept = live_.insert_or_assign(job.id, std::move(live)).first->second;
    tell_status(job.tenant, &kept);
}

void Board::on_change(const jobs::Job& job, const jobs::Event& event) {
    const auto found = live_.find(job.id);
    Live* live = found == live_.end() ? nullptr : &found->second;
    if (event.type == jobs::EventType::started) {
        if (live != nullptr) {
            live->worker = job.worker;
            wait_for_others(job.id, *live);
        }
        tell_status(job.tenant, live);
        if (live != nullptr && !std::exchange(live->started, true)) {
            say(*live,
                To::owner,
                "execution_start",
                {{"prompt_id", live->prompt_id}, {"timestamp", to_unix_ms(event.at)}});
        }
        return;
    }
    if (event.type == jobs::EventType::retrying) {
        drop_told(let_others_go(job.id));
    }
    if (!jobs::is_terminal(job.state)) {
        return;
    }
    Tenant& tenant = tenants_[job.tenant];
    tenant.unfinished -= tenant.unfinished > 0 ? 1 : 0;
    if (live == nullptr) {
        tell_status(job.tenant, nullptr);
        return;
    }
    tell_end(*live, job, event);
    if (job.state == jobs::State::completed) {
        live->notes.outputs.clear();  // the ledger has them
    }
    remember(job.id, live->notes);
    live->ended = true;
    drop_told({job.id});
}

void Board::tell_end(Live& live, const jobs::Job& job, const jobs::Event& event) {
    if (job.reused_from) {
        tell_reused(live, job, event);
    }
    // One that was taken out of the queue has no story to end.
    if (!live.started) {
        tell_status(live.tenant, &live);
        return;
    }
    auto [type, data] = ending(job, live.prompt_id, live.notes, event.at);
    const bool to_all = live.client_id.empty() && !is_for_owner_only(type);
    say(live, to_all ? To::everybody : To::owner, type, std::move(data));
    tell_status(live.tenant, &live);
    say(live, To::owner, "executing", {{"node", nullptr}, {"prompt_id", live.prompt_id}});
}

// As ComfyUI tells of a prompt whose nodes were all run before.
void Board::tell_reused(Live& live, const jobs::Job& job, const jobs::Event& event) {
    const std::int64_t at = to_unix_ms(event.at);
    live.notes = {};
    for (const auto& [node, ui] : job.ui_outputs) {
        live.notes.cached.emplace_back(node);
    }
    if (!std::exchange(live.started, true)) {
        say(live, To::owner, "execution_start", {{"prompt_id", live.prompt_id}, {"timestamp", at}});
    }
    say(live,
        To::owner,
        "execution_cached",
        {{"nodes", live.notes.cached}, {"prompt_id", live.prompt_id}, {"timestamp", at}});
    for (const auto& [node, ui] : renamed_outputs(job.ui_outputs, job.id)) {
        say(live,
            To::owner,
            "executed",
            {{"node", node}, {"display_node", node}, {"output", ui}, {"prompt_id", live.prompt_id}}
        );
    }
}

// Also without any socket: the history tells what was cached and what a failed run had made.
bool Board::wants_remarks(const JobId& job) const {
    const auto found = live_.find(job);
    return found != live_.end() && !found->second.ended;
}

bool Board::is_heard(const Live& live, To to) const {
    if (live.held || live.behind) {
        return true;
    }
    const auto tenant = tenants_.find(live.tenant);
    return to == To::owner ? owner(live) != nullptr
                           : tenant != tenants_.end() && !tenant->second.sockets.empty();
}

void Board::on_remark(const JobId& job, jobs::Remark remark) {
    const auto found = live_.find(job);
    if (found == live_.end() || found->second.ended) {
        return;
    }
    Live& live = found->second;
    note(live.notes, remark);
    if (remark.type == "execution_success" || remark.type == "execution_error" ||
        remark.type == "execution_interrupted") {
        finishing_.try_emplace(job);
    } else if (remark.type == "execution_cached") {
        drop_told(let_others_go(job));  // another attempt
    }
    if (is_ours_to_say(remark) || (live.client_id.empty() && is_for_owner_only(remark.type))) {
        return;
    }
    const To to = live.client_id.empty() || remark.type == "text" ? To::everybody : To::owner;
    if (is_heard(live, to)) {
        send(live, to, to_frame(std::move(remark), job, live.prompt_id));
    }
}

void Board::remember(const JobId& job, RunNotes notes) {
    if (notes_.insert_or_assign(job, std::move(notes)).second) {
        notes_by_age_.push_back(job);
    }
    while (notes_by_age_.size() > kNotesMax) {
        notes_.erase(notes_by_age_.front());
        notes_by_age_.pop_front();
    }
}

Mailbox* Board::owner(const Live& live) const {
    const auto tenant = tenants_.find(live.tenant);
    if (tenant == tenants_.end() || live.client_id.empty()) {
        return nullptr;
    }
    const auto& sockets = tenant->second.sockets;
    const auto newest = std::find_if(sockets.rbegin(), sockets.rend(), [&live](const Socket& one) {
        return one.client_id == live.client_id;
    });
    return newest == sockets.rend() ? nullptr : newest->mailbox.get();
}

void Board::say(Live& live, To to, std::string_view type, json::object data) {
    if (is_heard(live, to)) {
        send(live, to, make_frame(type, std::move(data)));
    }
}

void Board::send(Live& live, To to, FramePtr frame) {
    if (!live.held && !live.behind) {
        deliver(live, to, frame);
    } else if (live.waiting.size() < kHeldMax) {
        live.waiting.push_back({to, std::move(frame)});
    }
}

void Board::deliver(const Live& live, To to, const FramePtr& frame) {
    if (to == To::everybody) {
        broadcast(live.tenant, frame);
    } else if (Mailbox* mailbox = owner(live)) {
        mailbox->post(frame);
    }
}

void Board::broadcast(const std::string& tenant, const FramePtr& frame) {
    if (const auto known = tenants_.find(tenant); known != tenants_.end()) {
        for (const Socket& socket : known->second.sockets) {
            socket.mailbox->post(frame);
        }
    }
}

void Board::tell_status(const std::string& tenant, Live* live) {
    const auto known = tenants_.find(tenant);
    if (known == tenants_.end()) {
        return;
    }
    if (known->second.sockets.empty()) {
        if (known->second.unfinished == 0) {
            tenants_.erase(known);
        }
        return;
    }
    if (live != nullptr && live->behind) {
        send(*live, To::everybody, nullptr);
        return;
    }
    const bool crowd = known->second.sockets.size() > kCrowd;
    FramePtr frame = make_status(known->second.unfinished, crowd);
    if (live != nullptr) {
        send(*live, To::everybody, std::move(frame));
    } else {
        broadcast(tenant, frame);
    }
}

}  // namespace comfyd::api::native
