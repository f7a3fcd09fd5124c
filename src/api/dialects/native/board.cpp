#include "api/dialects/native/board.hpp"

#include <algorithm>
#include <utility>

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

// The client knows the prompt by its own id, and files by the names that it can fetch them by.
void translate(jobs::Remark& remark, const JobId& job, const std::string& prompt_id) {
    // Messages of custom nodes are left as they are, but for the id.
    if (remark.data.contains("prompt_id")) {
        remark.data["prompt_id"] = prompt_id;
    }
    if (remark.type == "progress_state") {
        if (json::value* nodes = remark.data.if_contains("nodes"); nodes && nodes->is_object()) {
            for (auto& [id, node] : nodes->get_object()) {
                if (json::object* state = node.if_object()) {
                    (*state)["prompt_id"] = prompt_id;
                }
            }
        }
    } else if (remark.type == "executed") {
        if (json::value* ui = remark.data.if_contains("output"); ui && ui->is_object()) {
            rename_files(ui->get_object(), job);
        }
    }
}

// About the size of the text.
std::size_t weight(const json::value& value);
std::size_t weight(const json::object& object) {
    std::size_t sum = 0;
    for (const auto& [key, element] : object) {
        sum += key.size() + weight(element);
    }
    return sum;
}

std::size_t weight(const json::value& value) {
    constexpr std::size_t kSmall = 8;
    std::size_t sum = kSmall;
    if (const auto* text = value.if_string()) {
        sum += text->size();
    } else if (const auto* list = value.if_array()) {
        for (const json::value& element : *list) {
            sum += weight(element);
        }
    } else if (const auto* object = value.if_object()) {
        sum += weight(*object);
    }
    return sum;
}

constexpr std::size_t kCrowd = 16;  // sockets of a tenant

FramePtr make_status(std::size_t unfinished, bool for_crowd) {
    auto frame = std::make_shared<Frame>();
    json::object data = status_data(unfinished);
    frame->text_bytes = weight(data);
    frame->is_status = true;
    frame->for_crowd = for_crowd;
    frame->message = {{"type", "status"}, {"data", std::move(data)}};
    return frame;
}

constexpr std::size_t kNotedNodesMax = 1'000;
constexpr std::size_t kNotedOutputBytesMax = 1024 * 1024;

void note_output(RunNotes& notes, const std::string& node, const json::object& executed) {
    if (notes.meta.size() >= kNotedNodesMax) {
        return;
    }
    const std::string shown = comfy::text_of(executed, "display_node");
    notes.meta[node] = {
        {"node_id", node},
        {"display_node", shown.empty() ? node : shown},
        {"parent_node", nullptr},
        {"real_node_id", node},
    };
    if (const json::object* ui = comfy::object_of(executed, "output")) {
        notes.output_bytes += json::serialize(*ui).size();
        if (notes.output_bytes <= kNotedOutputBytesMax) {
            notes.outputs[node] = *ui;
        }
    }
}

FramePtr to_frame(jobs::Remark remark) {
    if (remark.type == "preview") {
        auto frame = std::make_shared<Frame>();
        frame->preview = comfy::Preview{
            std::move(remark.bytes),
            std::move(remark.content_type),
            comfy::text_of(remark.data, "prompt_id"),
            comfy::text_of(remark.data, "node_id"),
            comfy::text_of(remark.data, "display_node_id"),
            comfy::text_of(remark.data, "parent_node_id"),
            comfy::text_of(remark.data, "real_node_id"),
        };
        return frame;
    }
    if (remark.type == "text") {
        auto frame = std::make_shared<Frame>();
        frame->text_bytes = remark.bytes.size();
        frame->text =
            comfy::NodeText{comfy::text_of(remark.data, "node_id"), std::move(remark.bytes)};
        return frame;
    }
    return make_frame(remark.type, std::move(remark.data));
}

}  // namespace

FramePtr make_frame(std::string_view type, json::object data) {
    auto frame = std::make_shared<Frame>();
    frame->message.emplace("type", json::value(boost::json::string_view(type.data(), type.size())));
    frame->text_bytes = weight(data);
    frame->message.emplace("data", std::move(data));
    return frame;
}

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
    note(live, remark);
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
        translate(remark, job, live.prompt_id);
        send(live, to, to_frame(std::move(remark)));
    }
}

void Board::note(Live& live, const jobs::Remark& remark) {
    RunNotes& notes = live.notes;
    const std::string node = comfy::text_of(remark.data, "node");
    if (remark.type == "execution_cached") {
        notes = {};  // another attempt may have been before
        if (const json::array* nodes = comfy::array_of(remark.data, "nodes")) {
            notes.cached = *nodes;
        }
    } else if (remark.type == "executing" && !node.empty()) {
        // The one before is done when the next begins.
        const bool known =
            std::find(notes.executed.begin(), notes.executed.end(), json::value(notes.last_node)) !=
            notes.executed.end();
        if (!notes.last_node.empty() && !known && notes.executed.size() < kNotedNodesMax) {
            notes.executed.emplace_back(notes.last_node);
        }
        notes.last_node = node;
    } else if (remark.type == "executed" && !node.empty()) {
        note_output(notes, node, remark.data);
    } else if (remark.type == "execution_interrupted") {
        notes.last_node = comfy::text_of(remark.data, "node_id");
        notes.last_node_type = comfy::text_of(remark.data, "node_type");
        if (const json::array* nodes = comfy::array_of(remark.data, "executed")) {
            notes.executed = *nodes;
        }
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
