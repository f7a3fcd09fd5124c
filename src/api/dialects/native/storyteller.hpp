// Who of ComfyUI's clients is told what: the jobs that they wait for, and their sockets. Messages
// are made here in ComfyUI's order and handed to the mailboxes of the sockets.
//
// What a client hears of a job is one story, whatever happened behind it: one execution_start, and
// one end after the ledger has it. When a worker is lost, progress begins anew without another
// start; a failure that is tried again is not told.
//
// Belongs to the board and lives on its executor, but for expect().
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "api/dialects/native/audience.hpp"
#include "api/dialects/native/run_notes.hpp"
#include "base/mutex.hpp"
#include "events/notice.hpp"

namespace comfyd::api::native {

class Storyteller {
public:
    // The job is on its way. Its messages wait until release(): the answer to its submission comes
    // first. Any thread.
    void expect(const std::string& tenant, const JobId& job) COMFYD_EXCLUDES(mutex_);
    // `is_accepted`: it will be heard of, or was.
    void release(const JobId& job, bool is_accepted) COMFYD_EXCLUDES(mutex_);

    // Returns a job of this client that runs.
    std::optional<JobId> attach(
        const std::string& tenant, const std::string& client_id, std::shared_ptr<Mailbox> mailbox
    );
    void detach(const std::string& tenant, const Mailbox* mailbox);
    std::optional<RunNotes> notes(const JobId& job) const;

    void hear(events::Notice& notice);

    // After a gap in what was heard: a job of this dialect as the ledger has it, which is never
    // older than what was heard. Its clients are told its start and its end, if they were not. What
    // is heard later and is not newer is left out.
    void see(const jobs::Job& job);
    void forget(const JobId& job);  // the ledger does not have it any more
    // Of which no end was heard.
    struct Unfinished {
        JobId id;
        std::string tenant;
        bool is_stored = true;  // not so while it is on its way
    };
    std::vector<Unfinished> unfinished() COMFYD_EXCLUDES(mutex_);
    bool has_sockets() const { return audience_.socket_count() > 0; }
    std::vector<std::string> tenants() const { return audience_.tenants(); }  // with sockets
    void set_unfinished(const std::string& tenant, std::size_t count);
    // What crowds are still to be told.
    Audience& audience() { return audience_; }

private:
    static constexpr std::size_t kEndedMax = 4'096;
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
        int revision = 0;  // of the job when it was read anew; what is not newer is known
        std::vector<Held> waiting{};
        RunNotes notes{};

        bool has_seen(const jobs::Job& job) const {
            return revision > 0 && revision >= job.revision;
        }
    };
    struct Ended {
        RunNotes notes;
        int revision = 0;  // of the job when its end was told
    };
    using Lives = std::unordered_map<JobId, Live>;

    void hear(const events::Arrived& arrived);
    void hear(const events::Changed& changed);
    void hear(const events::Shown&) {}
    void hear(events::Said& said);
    void hear_start(const jobs::Job& job, Live* live, Time at);
    void say_start(Live& live, Time at);
    void hear_end(const jobs::Job& job, Live* live, Time at);
    Lives::iterator begin(const jobs::Job& job, bool held);

    void send(Live& live, To to, FramePtr frame);
    void deliver(const Live& live, To to, const FramePtr& frame);
    void say(Live& live, To to, std::string_view type, json::object data);
    void tell_status(const std::string& tenant, Live* live);
    void tell_end(Live& live, const jobs::Job& job, Time at);
    void tell_reused(Live& live, const jobs::Job& job, Time at);
    void remember(const jobs::Job& job, RunNotes notes);
    // Its end was told, as that of a job which was seen may be before it is heard of.
    bool is_told(const jobs::Job& job) const;
    void wait_for_others(const JobId& job, Live& live);
    // The jobs whose messages waited for those of this one; they are told now.
    std::vector<JobId> let_others_go(const JobId& job);
    // Forgets those of the jobs of which everything is told.
    void drop_told(std::vector<JobId> candidates);
    void flush(Live& live);
    bool is_heard(const Live& live, To to) const;
    // nullopt: it was not expected.
    struct Expected {
        std::string tenant;
        bool held = true;
    };
    std::optional<Expected> take_expected(const JobId& job) COMFYD_EXCLUDES(mutex_);

    Audience audience_;
    Mutex mutex_;
    std::unordered_map<JobId, Expected> expected_ COMFYD_GUARDED_BY(mutex_);  // not heard of yet
    Lives live_;  // native jobs that have not ended
    // Live jobs whose worker is done with them, and those that are behind them.
    std::unordered_map<JobId, std::vector<JobId>> finishing_;
    std::unordered_map<JobId, Ended> ended_;
    std::deque<JobId> ended_by_age_;
};

}  // namespace comfyd::api::native
