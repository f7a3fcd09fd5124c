// Who of ComfyUI's clients is told what: the jobs that they wait for, and their sockets.
//
// Lives on the core executor, where it sees every job of the process. Messages are made here in
// ComfyUI's order and handed to the mailboxes of the sockets.
//
// What a client hears of a job is one story, whatever happened behind it: one execution_start, and
// one end after the ledger has it. When a worker is lost, progress begins anew without another
// start; a failure that is tried again is not told.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "api/dialects/native/run_notes.hpp"
#include "comfy/server/mailbox.hpp"
#include "events/hub.hpp"

namespace comfyd::api::native {

using comfy::server::FramePtr;
using comfy::server::Mailbox;

class Board final : public events::Observer {
public:
    // Messages of the job, which is on its way, wait until release(): the answer to its submission
    // comes first.
    void hold(const JobId& job);
    void release(const JobId& job);

    struct Greeting {
        std::size_t unfinished = 0;
        std::optional<JobId> running;  // a job of this client
    };
    // From now on the mailbox gets what its tenant and its client id are told. The newest mailbox
    // of an id gets the messages of its prompts; when it goes, the one before does.
    Greeting attach(
        const std::string& tenant, const std::string& client_id, std::shared_ptr<Mailbox> mailbox
    );
    void detach(const std::string& tenant, const Mailbox* mailbox);

    std::size_t unfinished(const std::string& tenant) const;
    std::optional<RunNotes> notes(const JobId& job) const;

    void on_job(const jobs::Job& job, bool is_new) override;
    void on_change(const jobs::Job& job, const jobs::Event& event) override;
    bool wants_remarks(const JobId& job) const override;
    void on_remark(const JobId& job, jobs::Remark remark) override;

private:
    static constexpr std::size_t kNotesMax = 4'096;
    static constexpr std::size_t kHeldMax = 65'536;

    enum class To { owner, everybody };
    struct Held {
        To to;
        FramePtr frame;  // nullptr: the queue's length, as it is when this is told
    };
    struct Live {
        std::string tenant;
        std::string prompt_id;
        std::string client_id;
        bool started = false;
        bool held = false;
        bool ended = false;  // and still held
        // The worker is done with that job of the tenant, and its end is not told yet: one hears
        // of the prompts of one worker one after the other.
        std::optional<JobId> behind{};
        std::string worker{};
        std::vector<Held> waiting{};
        RunNotes notes{};
    };
    struct Socket {
        std::string client_id;
        std::shared_ptr<Mailbox> mailbox;  // shared with the connection
    };
    struct Tenant {
        std::size_t unfinished = 0;
        std::vector<Socket> sockets;  // oldest first
    };

    Mailbox* owner(const Live& live) const;
    void send(Live& live, To to, FramePtr frame);
    void deliver(const Live& live, To to, const FramePtr& frame);
    void broadcast(const std::string& tenant, const FramePtr& frame);
    void say(Live& live, To to, std::string_view type, json::object data);
    void tell_status(const std::string& tenant, Live* live);
    void tell_end(Live& live, const jobs::Job& job, const jobs::Event& event);
    void tell_reused(Live& live, const jobs::Job& job, const jobs::Event& event);
    void remember(const JobId& job, RunNotes notes);
    void wait_for_others(const JobId& job, Live& live);
    // The jobs whose messages waited for those of this one; they are told now.
    std::vector<JobId> let_others_go(const JobId& job);
    // Forgets those of the jobs of which everything is told.
    void drop_told(std::vector<JobId> candidates);
    void flush(Live& live);
    bool is_heard(const Live& live, To to) const;

    std::unordered_map<JobId, Live> live_;  // native jobs that have not ended
    std::unordered_set<JobId> holds_;       // submissions whose job is not here yet
    // Live jobs whose worker is done with them, and those that are behind them.
    std::unordered_map<JobId, std::vector<JobId>> finishing_;
    std::unordered_map<std::string, Tenant> tenants_;
    std::unordered_map<JobId, RunNotes> notes_;
    std::deque<JobId> notes_by_age_;
};

}  // namespace comfyd::api::native
