// Has model files brought to where jobs wait for them. A job that was accepted though no worker has
// all its models says in its dialect_data which they are; it waits in the queue like any other,
// and a worker that could run it but for the files is asked to fetch them. Then it can, and the
// scheduler does the rest. Where workers have the files and are busy, one that is free fetches them
// if that takes less time than the job is expected to wait: a fetch counts as a load. Machines that
// start fetch what waits while they do so.
//
// What has a hash is brought from outside to one worker of a region at a time, if that can give it
// to the others, which have it from there then (jobs/content_flights.hpp).
//
// Jobs that need the same are one need. What it does per change of the fleet does not depend on how
// many jobs wait. Core executor.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/task.hpp"
#include "events/hub.hpp"
#include "jobs/changes.hpp"
#include "jobs/content_flights.hpp"
#include "jobs/fleet.hpp"
#include "jobs/job.hpp"
#include "jobs/job_table.hpp"
#include "jobs/model_holder.hpp"

namespace comfyd::jobs {

// The member of dialect_data: a list as models::WantedModel writes them.
inline constexpr std::string_view kModelsMember = "models";

class Preparing {
public:
    // All outlive it.
    struct Parts {
        Clock& clock;
        Fleet& fleet;
        events::Hub& hub;
        JobTable& table;
        Changes& changes;
        TaskGroup& tasks;
        const bool& is_stopping;
        // Seconds until a waiting job is expected to start; nullopt: nobody can say.
        std::function<std::optional<double>(const JobId&)> expected_wait;
    };
    explicit Preparing(const Parts& parts) : p_(parts) {}

    // It waits from now on; nothing happens where it names no models. REQUIRES: it is in the table.
    void add(const Job& job, const Requirement& requirement);
    // It has ended.
    void remove(const JobId& id);
    // The worker has left.
    void forget(const std::string& worker);
    // Workers have changed, or something waits. Cheap where nothing is needed.
    void look();
    // Of a job that waits for files; nullopt: it does not.
    std::optional<Progress> progress(const JobId& id) const;
    // Fetches that the worker is at, for jobs that wait for them.
    std::size_t fetches_of(const std::string& worker) const;
    // Of a job that waits for files: whose disk has no room for them, in words.
    std::vector<std::string> reasons(const JobId& id) const;

private:
    static constexpr double kUsualRate = 50e6;

    struct Waiting {
        std::string tenant;
        std::uint64_t told = 0;  // number of its latest event
    };
    struct Need {
        Requirement requirement;
        std::vector<json::object> wishes;
        std::uint64_t bytes = 0;  // of all, as far as it is known
        std::unordered_map<JobId, Waiting> jobs{};
        std::string worker{};  // that fetches now; empty: none
        ModelHolder::Fetched fetched{};
        std::set<std::string> failed_on{};  // workers
        Time not_before{};                  // the next try
        // When coming workers may be asked; those that have been asked and answered are not again.
        std::map<std::string, std::optional<Time>> early{};
        std::string early_worker{};  // the latest of them that fetches
        int rounds = 0;              // fetches that ended well, and no worker can run it yet
    };
    using NeedPtr = std::shared_ptr<Need>;

    Task<> look_soon();
    void serve(const NeedPtr& need);
    std::optional<JobId> find_waiting(const Need& need) const;
    bool is_worth_it(const Need& need, std::uint64_t bytes) const;
    class Departure;
    struct Choice {
        std::shared_ptr<Worker> worker;
        std::vector<json::object> wishes;        // that it lacks
        std::uint64_t bytes = 0;                 // of these; 0: not known
        bool is_spare = false;                   // others have them, and are busy
        std::shared_ptr<Departure> departure{};  // once it is decided
    };
    std::optional<Choice> choose(const Need& need) const;
    static std::vector<json::object> lacking_of(
        const Need& need, const std::vector<std::string>& values
    );
    // Its disk has room for so many bytes more than what it fetches already.
    bool has_room(const Worker& worker, const ModelHolder& holder, std::uint64_t bytes) const;
    void name_peers(const Need& need, Choice& choice) const;
    // Another worker of its region is to have some of it first.
    bool must_wait(const Choice& choice) const;
    void serve_coming(const NeedPtr& need);
    Task<> fetch_early(NeedPtr need, Choice choice);
    Task<> fetch(NeedPtr need, Choice choice);
    Task<Result<>> bring(NeedPtr need, Choice choice);
    void learn(std::uint64_t bytes, Millis took);
    void fetch_failed(const NeedPtr& need, const std::string& worker, const Error& error);
    Task<> fail_all(NeedPtr need, Error error);
    void tell(Need& need, const std::string& worker, ModelHolder::Fetched fetched);
    static const std::string& teller_of(const Need& need);
    static Progress shown(const Need& need);

    Parts p_;
    std::map<std::string, NeedPtr> needs_;
    std::unordered_map<JobId, NeedPtr> by_job_;
    std::map<std::string, int> busy_;                    // fetches of each worker
    std::map<std::string, std::uint64_t> on_their_way_;  // bytes, to each worker
    ContentFlights flights_;
    double bytes_per_s_ = kUsualRate;  // of fetches that were measured, recent ones weigh more
    bool is_looking_ = false;
};

}  // namespace comfyd::jobs
