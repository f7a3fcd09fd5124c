// Follows every job of the process for ComfyUI's clients, and has them told.
//
// Lives on a thread of its own, where all but expect() is called: a crowd of clients takes it long.
// Whoever asks it something finds all that was told before.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>

#include "api/dialects/native/storyteller.hpp"
#include "base/task.hpp"
#include "events/feed.hpp"
#include "jobs/service.hpp"

namespace comfyd::api::native {

class Board {
public:
    static constexpr std::size_t kWaitingMax = 16'384;

    // Before jobs::Service::recover(). `jobs` outlives it. So many stored changes may wait for it;
    // after a gap it reads the jobs anew.
    Board(jobs::Service& jobs, Executor executor, std::size_t waiting_max = kWaitingMax);

    Executor executor() const { return executor_; }
    void start();
    // What the jobs told until they stopped is passed on first.
    Task<> stop();

    // All as the storyteller's. The first on any thread.
    void expect(const std::string& tenant, const JobId& job) { storyteller_.expect(tenant, job); }
    void release(const JobId& job, bool is_accepted);
    std::optional<JobId> attach(
        const std::string& tenant, const std::string& client_id, std::shared_ptr<Mailbox> mailbox
    );
    void detach(const std::string& tenant, const Mailbox* mailbox);
    std::optional<RunNotes> notes(const JobId& job);

private:
    void catch_up();
    void hurry_for_sockets();
    void tell_crowds_later();
    Task<> tell_crowds();
    Task<> read_anew();
    Task<Result<>> read_unfinished(std::unordered_set<JobId>& found);
    Task<Result<>> read_others(std::unordered_set<JobId> found);
    Task<> count_anew();

    jobs::Service& jobs_;
    const Executor executor_;
    const std::shared_ptr<events::Feed> feed_;  // shared with those who tell
    TaskGroup tasks_;
    bool is_reading_ = false;  // what is told waits until the jobs are read anew
    bool is_telling_crowds_ = false;
    Storyteller storyteller_;
};

}  // namespace comfyd::api::native
