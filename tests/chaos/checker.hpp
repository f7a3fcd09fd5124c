// What must hold after any run, whatever happened in it: found out from what anybody can see, which
// is the public API, the messages that the receiver of webhooks got, and the journal of the workers
// (comfy_double.hpp). Knows nothing of comfyd.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "support/http.hpp"
#include "support/webhook_receiver.hpp"

namespace comfyd::support {

class Checker {
public:
    explicit Checker(Http& api) : api_(api) {}

    // The job has ended. If well, its output is there, and it is the one that shows `mark`; its
    // events are in order and have one end. Waits for the end of jobs that have none yet.
    void check_job(const std::string& id, std::string_view mark);
    // Of the jobs checked before: each was told of in order, with one end, which is the job's.
    void check_messages(const std::vector<ReceivedRequest>& requests);
    // No workflow ran twice at a time. Lines beside those of the workers: "gone PID" (it was
    // killed), and "away PID" and "back PID": between them it could not be reached or did as it
    // liked, so that its work may have been given to another.
    void check_runs(std::string_view journal);

    const std::vector<std::string>& complaints() const { return complaints_; }
    // How many of the jobs have ended so.
    const std::map<std::string, int>& ends() const { return ends_; }

private:
    void complain(const std::string& about, const std::string& what);
    void check_output(const std::string& id, const json::value& job, std::string_view mark);
    void check_events(const std::string& id, const std::string& status);

    Http& api_;
    std::map<std::string, std::string> statuses_;  // by job
    std::map<std::string, int> ends_;
    std::vector<std::string> complaints_;
};

}  // namespace comfyd::support
