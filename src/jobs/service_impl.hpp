// The inside of the service, over the ledger, the dispatcher and the jobs on their way between the
// two: how jobs come in is in service_submit.cpp, how they are listened to in service_listen.cpp,
// what is asked of them otherwise in service.cpp. Thread rules as for the service.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "jobs/arrivals.hpp"
#include "jobs/dispatcher.hpp"
#include "jobs/service.hpp"

namespace comfyd::jobs {

class Service::Impl {
public:
    Impl(
        Executor core,
        Clock& clock,
        Ledger& ledger,
        Fleet& fleet,
        events::Hub& hub,
        ServiceOptions options
    );

    Task<Result<Submitted>> submit(Spec spec);
    Task<Result<std::optional<Submitted>>> find_submitted(
        std::string tenant, std::string key, std::string request_hash
    );

    Task<Result<Job>> find(std::string tenant, JobId id);
    Task<Result<View>> get(std::string tenant, JobId id);
    Task<Result<View>> cancel(std::string tenant, JobId id);
    Task<Result<View>> remove(std::string tenant, JobId id);
    Task<Result<>> cancel_waiting(std::string tenant, JobId id);
    Task<Result<View>> retry(std::string tenant, JobId id);
    Task<Result<std::shared_ptr<events::Subscription>>> watch(
        std::string tenant, JobId id, events::WatchOptions options
    );
    std::shared_ptr<events::Feed> subscribe(Executor executor, events::FeedOptions options);
    Task<Result<std::string>> read_output(
        std::string tenant, JobId id, WorkerFile file, std::uint64_t bytes_max
    );
    // On the core.
    Task<> free_idle_workers(bool models, bool results);

    Executor core_;
    Clock& clock_;
    Ledger& ledger_;
    Fleet& fleet_;
    events::Hub& hub_;
    ServiceOptions options_;
    Dispatcher dispatcher_;
    Arrivals arrivals_;
    std::atomic<bool> stopping_{false};

private:
    // On the core.
    Task<Result<std::string>> read_from_worker(JobId id, WorkerFile file, std::uint64_t bytes_max);
    // What is expected of the job, into the answer and the event that tells of its acceptance.
    Task<> add_outlook(NewJob& job, View& view);
    // nullopt: there are no outputs for it, `job` is as it was.
    Task<std::optional<Result<Accepted>>> accept_with_outputs(NewJob& job, View& view);
    Task<Result<Submitted>> replay(Accepted accepted, std::string request_hash);
    // By what never changes. Any thread.
    int likely_rank(const Job& job) const;
    // Those in the core's queue and those on their way to it.
    std::size_t jobs_ahead(int rank) const;

    // For what asks after a job: its submit may have been answered while it was still on its way.
    template <class T>
    Task<T> with_arrivals(Task<T> work) {
        arrivals_.take_over();
        auto result = co_await std::move(work);
        co_return result;
    }
};

}  // namespace comfyd::jobs
