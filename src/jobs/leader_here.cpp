#include "jobs/leader_here.hpp"

#include <utility>

#include "base/hop.hpp"
#include "base/stall_watch.hpp"

namespace comfyd::jobs {
namespace {

tl::unexpected<Error> not_led_here() {
    return fail(Code::lead_lost, "this node does not lead the job's domain");
}

}  // namespace

template <class Ask>
auto LeaderHere::ask(std::string domain, Ask ask) {
    return call_on(core_, [this, domain = std::move(domain), ask = std::move(ask)] {
        arrivals_.take_over();
        const Dispatcher* dispatcher = leads_.find(domain);
        return dispatcher == nullptr ? std::nullopt : std::optional(ask(*dispatcher));
    });
}

Task<std::optional<Forecast::Live>> LeaderHere::live(LedJob job) {
    return ask(job.domain, [id = job.id](const Dispatcher& dispatcher) {
        return dispatcher.live(id);
    });
}

Task<std::optional<Waiting>> LeaderHere::explain(LedJob job) {
    return ask(job.domain, [id = job.id](const Dispatcher& dispatcher) {
        return Waiting{dispatcher.explain(id), dispatcher.waits_for(id)};
    });
}

Task<std::optional<Load>> LeaderHere::load(std::string domain) {
    return ask(std::move(domain), [](const Dispatcher& dispatcher) { return dispatcher.load(); });
}

Task<Result<>> LeaderHere::cancel(LedJob job, Cancel how) {
    return await_on(core_, cancel_on_core(std::move(job), how));
}

Task<Result<>> LeaderHere::cancel_on_core(LedJob job, Cancel how) {
    arrivals_.take_over();
    if (leads_.find(job.domain) == nullptr) {
        co_return not_led_here();
    }
    auto done = co_await leads_.visit(job.domain, [id = job.id, how](Dispatcher& dispatcher) {
        return how == Cancel::anyway ? dispatcher.cancel(id) : dispatcher.cancel_waiting(id);
    });
    co_return done;
}

Task<Result<std::string>> LeaderHere::read_output(
    LedJob job, WorkerFile file, std::uint64_t bytes_max
) {
    return await_on(core_, read_on_core(std::move(job), std::move(file), bytes_max));
}

Task<Result<std::string>> LeaderHere::read_on_core(
    LedJob job, WorkerFile file, std::uint64_t bytes_max
) {
    const Dispatcher* dispatcher = leads_.find(job.domain);
    if (dispatcher == nullptr) {
        co_return not_led_here();
    }
    const auto worker = dispatcher->worker_of(job.id);  // kept alive until the file is read
    if (!worker) {
        co_return fail(Code::conflict, "the job does not run any more");
    }
    auto read = co_await worker->read_file(job.id, std::move(file), bytes_max);
    dispatcher = leads_.find(job.domain);
    if (!read && (dispatcher == nullptr || !dispatcher->worker_of(job.id))) {
        co_return fail(Code::conflict, "the job has ended meanwhile");
    }
    co_return read;
}

Task<std::vector<WorkerInfo>> LeaderHere::workers() {
    return call_on(core_, [this] {
        const NowDoing doing("describing workers");
        std::vector<WorkerInfo> infos;
        leads_.each([&infos](Dispatcher& dispatcher) {
            for (const auto& worker : dispatcher.fleet().workers()) {
                infos.push_back(worker->info());
            }
        });
        return infos;
    });
}

Task<> LeaderHere::free_idle_workers(bool models, bool results) {
    return await_on(core_, free_on_core(models, results));
}

Task<> LeaderHere::free_on_core(bool models, bool results) {
    for (const std::string& domain : leads_.domains()) {
        if (leads_.find(domain) != nullptr) {
            co_await leads_.visit(domain, [models, results](Dispatcher& dispatcher) {
                return dispatcher.free_idle_workers(models, results);
            });
        }
    }
}

}  // namespace comfyd::jobs
