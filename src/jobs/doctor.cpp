#include "jobs/doctor.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "jobs/fleet.hpp"

namespace comfyd::jobs {
namespace {

constexpr std::size_t kAvoidedMax = 8;

Cause cause_of(const PastAttempt& attempt) {
    return attempt.failure ? cause_of(*attempt.failure) : Cause::unknown;
}

// What a process of comfyd's own engine or a GPU did to itself counts each time; a worker that
// cannot be reached may have been somewhere else than down, so it counts once.
bool counts_each_time(const Failure& failure) {
    return failure.details.contains(kEndedWithProcess) || cause_of(failure) == Cause::cuda_fault;
}

class Strikes {
public:
    void add(const std::string& worker, const Failure& failure) {
        if (!info(cause_of(failure)).takes_worker_down) {
            return;
        }
        const bool is_new = workers_.insert(worker).second;
        count_ += is_new || counts_each_time(failure) ? 1 : 0;
    }
    int count() const { return count_; }
    std::string names() const {
        std::string all;
        for (const std::string& worker : workers_) {
            all += (all.empty() ? "'" : ", '") + worker + "'";
        }
        return all;
    }

private:
    std::set<std::string> workers_;
    int count_ = 0;
};

std::string advice_for(Cause cause) {
    switch (cause) {
        case Cause::validation:
            return "correct the workflow; what is wrong stands in the message";
        case Cause::node_error:
            return "look at the node and its inputs; the traceback says where it raised";
        case Cause::out_of_memory:
            return "use a smaller picture or batch, a smaller or quantized model, or add a worker "
                   "with more memory";
        case Cause::cuda_fault:
            return "the GPU or its driver failed; the node that is named may be innocent";
        case Cause::hung:
            return "a node never came to an end; give the workflow's nodes less to do, or look at "
                   "the worker";
        case Cause::worker_lost:
        case Cause::worker_refused:
            return "look at the workers: they went away or did not take the job";
        case Cause::worker_misconfigured:
            return "the worker's GPU or software cannot run a node of this workflow; update it, or "
                   "send the workflow to another pool";
        case Cause::worker_disk_full:
            return "free space on the disks of the workers";
        case Cause::model_missing:
            return "install the model on a worker, or name one that is there";
        case Cause::model_damaged:
            return "download the model's file again; it may be incomplete";
        case Cause::model_unavailable:
            return "see what its source answers, or register another source of the model";
        case Cause::interrupted:
            return "somebody else stops prompts on the worker";
        case Cause::timeout:
            return "give the job a longer timeout, or less to do";
        case Cause::storage:
            return "free disk space of comfyd, or look at its store";
        case Cause::poison:
            return "run it on a worker of its own before you send it again";
        case Cause::unknown:
            break;
    }
    return "look at the log of comfyd and of the worker";
}

void give_up_as_poison(Failure& failure, const Strikes& strikes) {
    failure.details["last_cause"] = to_string(cause_of(failure));
    failure.details["last_message"] = failure.message;
    failure.details[kCauseKey] = to_string(Cause::poison);
    failure.code = Code::node_execution_error;
    const bool is_engine = failure.details.contains(kEndedWithProcess);
    failure.message =
        is_engine
            ? "the engine's process ended twice while it ran this job, so it is not tried again. "
              "Its workflow may ask for more than this machine has: make it smaller, or give it "
              "to a ComfyUI worker"
            : strikes.names() +
                  " went down or hung while they ran this job, so it is not given to " +
                  "another worker: " + failure.message;
}

void avoid_workers(Failure& failure, const Job& job, const std::vector<PastAttempt>& before) {
    json::array avoided{json::value(job.worker)};
    for (auto attempt = before.rbegin(); attempt != before.rend(); ++attempt) {
        const json::value worker(attempt->worker);
        const bool is_new = std::ranges::find(avoided, worker) == avoided.end();
        if (attempt->failure && is_new && avoided.size() < kAvoidedMax) {
            avoided.push_back(worker);
        }
    }
    failure.details[kAvoidKey] = std::move(avoided);
}

}  // namespace

FailurePolicy::FailurePolicy() {
    for (int i = 0; i < kCauses; ++i) {
        retries[static_cast<std::size_t>(i)] = info(static_cast<Cause>(i)).retries;
    }
}

Verdict judge_failure(
    const Job& job,
    Failure failure,
    const std::vector<PastAttempt>& before,
    const FailurePolicy& policy,
    double jitter
) {
    Cause cause = cause_of(failure);
    Strikes strikes;
    int alike = 0;
    for (const PastAttempt& attempt : before) {
        if (attempt.failure) {
            strikes.add(attempt.worker, *attempt.failure);
            alike += cause_of(attempt) == cause ? 1 : 0;
        }
    }
    strikes.add(job.worker, failure);
    const bool is_poison =
        info(cause).takes_worker_down && strikes.count() >= policy.poison_workers;
    if (is_poison) {
        give_up_as_poison(failure, strikes);
        cause = Cause::poison;
    }
    failure.details[kCauseKey] = to_string(cause);
    Verdict verdict;
    verdict.retries = alike < policy.retries_of(cause) && job.attempt < job.max_attempts;
    verdict.is_costly = info(cause).has_run;
    verdict.timeout = job.timeout;
    if (verdict.retries) {
        verdict.delay = retry_delay(job.attempt, jitter);
        avoid_workers(failure, job, before);
        if (cause == Cause::timeout) {
            const auto longer = static_cast<double>(job.timeout.count()) * policy.timeout_growth;
            verdict.timeout = std::min(Millis(static_cast<std::int64_t>(longer)), kTimeoutMax);
        }
    } else {
        failure.details["advice"] = advice_for(cause);
    }
    verdict.failure = std::move(failure);
    return verdict;
}

std::vector<std::string> workers_to_avoid(const Job& job) {
    std::vector<std::string> workers;
    if (!job.failure) {
        return workers;
    }
    if (const json::value* named = json::find(job.failure->details, kAvoidKey);
        named != nullptr && named->is_array()) {
        for (const json::value& worker : named->get_array()) {
            if (worker.is_string()) {
                workers.emplace_back(worker.get_string());
            }
        }
    } else if (!job.worker.empty()) {
        workers.push_back(job.worker);
    }
    return workers;
}

bool is_suspect(const Job& job) {
    return job.failure && info(cause_of(*job.failure)).takes_worker_down;
}

}  // namespace comfyd::jobs
