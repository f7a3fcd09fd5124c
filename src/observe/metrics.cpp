#include "observe/metrics.hpp"

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <array>
#include <functional>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "base/mutex.hpp"
#include "base/shared_mutex.hpp"

namespace comfyd::observe {
namespace {

// Labels come from our own tables (route patterns, states), so the caches stay small; readers only
// share a lock.
template <class Key, class Child>
class Children {
public:
    template <class Lookup, class Make>
    Child& get(const Lookup& lookup, const Make& make) {
        {
            const ReadLock lock(mutex_);
            if (const auto found = children_.find(lookup); found != children_.end()) {
                return *found->second;
            }
        }
        const WriteLock lock(mutex_);
        if (const auto found = children_.find(lookup); found != children_.end()) {
            return *found->second;
        }
        Child& made = make();
        children_.emplace(Key(lookup), &made);
        return made;
    }

private:
    SharedMutex mutex_;
    std::map<Key, Child*, std::less<>> children_ COMFYD_GUARDED_BY(mutex_);
};

prometheus::Histogram::BucketBoundaries request_buckets() {
    return {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60};
}

prometheus::Histogram::BucketBoundaries job_buckets() {
    return {0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200};
}

prometheus::Histogram::BucketBoundaries stall_buckets() {
    return {0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10};
}

prometheus::Histogram& make_histogram(
    prometheus::Registry& registry,
    const char* name,
    const char* help,
    prometheus::Histogram::BucketBoundaries buckets
) {
    return prometheus::BuildHistogram().Name(name).Help(help).Register(registry).Add(
        {}, std::move(buckets)
    );
}

prometheus::Family<prometheus::Counter>& make_counters(
    prometheus::Registry& registry, const char* name, const char* help
) {
    return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
}

using RequestKey = std::tuple<std::string, std::string, int>;
using RequestLookup = std::tuple<std::string_view, std::string_view, int>;

// The gauges of one scrape. A registry of its own: what no collector sets any more is gone.
class ScrapeGauges final : public Metrics::Gauges {
public:
    void set(
        const std::string& name,
        const std::string& help,
        std::initializer_list<std::pair<std::string, std::string>> labels,
        double value
    ) override {
        auto& family = families_[name];
        if (family == nullptr) {
            family = &prometheus::BuildGauge().Name(name).Help(help).Register(registry_);
        }
        family->Add(prometheus::Labels(labels.begin(), labels.end())).Set(value);
    }

    void set_histogram(
        const std::string& name,
        const std::string& help,
        std::initializer_list<std::pair<std::string, std::string>> labels,
        const Buckets& buckets
    ) override {
        auto& family = histograms_[name];
        if (family == nullptr) {
            family = &prometheus::BuildHistogram().Name(name).Help(help).Register(registry_);
        }
        family->Add(prometheus::Labels(labels.begin(), labels.end()), buckets.bounds)
            .ObserveMultiple(buckets.counts, buckets.sum);
    }

    std::vector<prometheus::MetricFamily> collect() const { return registry_.Collect(); }

private:
    prometheus::Registry registry_;
    std::map<std::string, prometheus::Family<prometheus::Gauge>*> families_;
    std::map<std::string, prometheus::Family<prometheus::Histogram>*> histograms_;
};

}  // namespace

class Metrics::Impl {
public:
    void http_request(std::string_view route, std::string_view method, int status, double seconds) {
        requests_
            .get(
                RequestLookup(route, method, status),
                [&]() -> prometheus::Counter& {
                    return request_family_.Add(
                        {{"route", std::string(route)},
                         {"method", std::string(method)},
                         {"status", std::to_string(status)}}
                    );
                }
            )
            .Increment();
        request_seconds_
            .get(
                route,
                [&]() -> prometheus::Histogram& {
                    return request_seconds_family_.Add(
                        {{"route", std::string(route)}}, request_buckets()
                    );
                }
            )
            .Observe(seconds);
    }

    void job_submitted(std::string_view dialect) {
        submitted_
            .get(
                dialect,
                [&]() -> prometheus::Counter& {
                    return submitted_family_.Add({{"dialect", std::string(dialect)}});
                }
            )
            .Increment();
    }

    void job_finished(std::string_view state, double queue_seconds, double execution_seconds) {
        finished_
            .get(
                state,
                [&]() -> prometheus::Counter& {
                    return finished_family_.Add({{"state", std::string(state)}});
                }
            )
            .Increment();
        if (queue_seconds >= 0) {
            queue_seconds_.Observe(queue_seconds);
        }
        if (execution_seconds >= 0) {
            execution_seconds_.Observe(execution_seconds);
        }
    }

    void attempt_failed(std::string_view cause, bool is_retried) {
        failed_attempts_family_
            .Add({{"cause", std::string(cause)}, {"then", is_retried ? "retry" : "fail"}})
            .Increment();
    }

    void prewarmed(std::string_view outcome) {
        prewarms_family_.Add({{"outcome", std::string(outcome)}}).Increment();
    }

    void purged(int jobs, int files) {
        purged_jobs_.Increment(jobs);
        removed_files_.Increment(files);
    }

    void core_stalled(double seconds) { core_stall_seconds_.Observe(seconds); }

    void worker_used(std::string_view worker, const WorkerUse& use) {
        const auto add = [worker](CounterByWorker& counter, double by) {
            counter.children
                .get(
                    worker,
                    [&]() -> prometheus::Counter& {
                        return counter.family.Add({{"worker", std::string(worker)}});
                    }
                )
                .Increment(by);
        };
        add(gpu_seconds_, use.gpu_seconds);
        add(model_load_seconds_, use.model_load_seconds);
        add(images_, use.images);
        add(cost_usd_, use.cost_usd);
    }

    void job_used(
        std::string_view tenant, std::string_view workflow, double images, double cost_usd
    ) {
        tenants_.add(tenant, images, cost_usd);
        workflows_.add(workflow, images, cost_usd);
    }

    std::string render(const std::function<void(Gauges&)>& collect) {
        ScrapeGauges gauges;
        if (collect) {
            collect(gauges);
        }
        auto families = registry_.Collect();
        for (auto& family : gauges.collect()) {
            families.push_back(std::move(family));
        }
        return prometheus::TextSerializer().Serialize(families);
    }

private:
    // Pictures and cost by a label whose values clients choose: only so many of them are kept
    // apart.
    class CostsByName {
    public:
        CostsByName(prometheus::Registry& registry, const std::string& label)
            : label_(label),
              images_(prometheus::BuildCounter()
                          .Name("comfyd_" + label + "_images_total")
                          .Help("Pictures that jobs made, by " + label + ".")
                          .Register(registry)),
              cost_usd_(prometheus::BuildCounter()
                            .Name("comfyd_" + label + "_cost_usd_total")
                            .Help("What GPU time of jobs cost, by " + label + ".")
                            .Register(registry)) {}

        void add(std::string_view name, double images, double cost_usd) {
            const std::string shown = bounded(name.empty() ? "(none)" : std::string(name));
            images_.Add({{label_, shown}}).Increment(images);
            cost_usd_.Add({{label_, shown}}).Increment(cost_usd);
        }

    private:
        std::string bounded(std::string name) {
            const Lock lock(mutex_);
            const bool has_room = names_.size() < kNamesMax;
            return names_.contains(name) || (has_room && names_.insert(name).second) ? name
                                                                                     : "(others)";
        }

        const std::string label_;
        prometheus::Family<prometheus::Counter>& images_;
        prometheus::Family<prometheus::Counter>& cost_usd_;
        Mutex mutex_;
        std::set<std::string> names_ COMFYD_GUARDED_BY(mutex_);
    };
    struct CounterByWorker {
        prometheus::Family<prometheus::Counter>& family;
        Children<std::string, prometheus::Counter> children{};
    };

    prometheus::Registry registry_;
    prometheus::Family<prometheus::Counter>& request_family_ =
        prometheus::BuildCounter()
            .Name("comfyd_http_requests_total")
            .Help("Answered HTTP requests.")
            .Register(registry_);
    prometheus::Family<prometheus::Histogram>& request_seconds_family_ =
        prometheus::BuildHistogram()
            .Name("comfyd_http_request_seconds")
            .Help("Time from a request's headers to its answer; for streams to their first byte.")
            .Register(registry_);
    prometheus::Family<prometheus::Counter>& submitted_family_ =
        prometheus::BuildCounter()
            .Name("comfyd_jobs_submitted_total")
            .Help("Accepted jobs, by the API that they came by.")
            .Register(registry_);
    prometheus::Counter& purged_jobs_ =
        make_counters(
            registry_, "comfyd_jobs_purged_total", "Ended jobs that were removed after their time."
        )
            .Add({});
    prometheus::Counter& removed_files_ =
        make_counters(
            registry_,
            "comfyd_files_removed_total",
            "Files that nothing referred to any more, and records of expired uploads."
        )
            .Add({});
    prometheus::Family<prometheus::Counter>& failed_attempts_family_ = make_counters(
        registry_,
        "comfyd_attempts_failed_total",
        "Attempts that failed, by cause and by what followed."
    );
    prometheus::Family<prometheus::Counter>& prewarms_family_ =
        prometheus::BuildCounter()
            .Name("comfyd_prewarms_total")
            .Help("Loads of models on idle workers ahead of jobs, by outcome.")
            .Register(registry_);
    prometheus::Family<prometheus::Counter>& finished_family_ =
        prometheus::BuildCounter()
            .Name("comfyd_jobs_finished_total")
            .Help("Ended jobs, by final state.")
            .Register(registry_);
    prometheus::Histogram& queue_seconds_ = make_histogram(
        registry_,
        "comfyd_job_queue_seconds",
        "Time that ended jobs waited for a worker.",
        job_buckets()
    );
    prometheus::Histogram& execution_seconds_ = make_histogram(
        registry_,
        "comfyd_job_execution_seconds",
        "Time that ended jobs ran on a worker.",
        job_buckets()
    );
    prometheus::Histogram& core_stall_seconds_ = make_histogram(
        registry_,
        "comfyd_core_stall_seconds",
        "How long the core was held up, each time that it was longer than 20 ms.",
        stall_buckets()
    );
    Children<RequestKey, prometheus::Counter> requests_;
    Children<std::string, prometheus::Histogram> request_seconds_;
    Children<std::string, prometheus::Counter> submitted_;
    Children<std::string, prometheus::Counter> finished_;
    CostsByName tenants_{registry_, "tenant"};
    CostsByName workflows_{registry_, "workflow"};
    CounterByWorker gpu_seconds_{make_counters(
        registry_, "comfyd_gpu_seconds_total", "Time that prompts ran on GPUs, by worker."
    )};
    CounterByWorker model_load_seconds_{make_counters(
        registry_, "comfyd_model_load_seconds_total", "Time of it in which models were loaded."
    )};
    CounterByWorker images_{
        make_counters(registry_, "comfyd_images_total", "Pictures made, by worker.")
    };
    CounterByWorker cost_usd_{
        make_counters(registry_, "comfyd_cost_usd_total", "Estimated cost in USD, by worker.")
    };
};

Metrics::Metrics() : impl_(std::make_unique<Impl>()) {}

Metrics::~Metrics() = default;

void Metrics::http_request(
    std::string_view route, std::string_view method, int status, double seconds
) {
    impl_->http_request(route, method, status, seconds);
}

void Metrics::job_submitted(std::string_view dialect) {
    impl_->job_submitted(dialect);
}

void Metrics::job_finished(std::string_view state, double queue_seconds, double execution_seconds) {
    impl_->job_finished(state, queue_seconds, execution_seconds);
}

void Metrics::attempt_failed(std::string_view cause, bool is_retried) {
    impl_->attempt_failed(cause, is_retried);
}

void Metrics::prewarmed(std::string_view outcome) {
    impl_->prewarmed(outcome);
}

void Metrics::purged(int jobs, int files) {
    impl_->purged(jobs, files);
}

void Metrics::core_stalled(double seconds) {
    impl_->core_stalled(seconds);
}

void Metrics::job_used(
    std::string_view tenant, std::string_view workflow, double images, double cost_usd
) {
    impl_->job_used(tenant, workflow, images, cost_usd);
}

void Metrics::worker_used(std::string_view worker, const WorkerUse& use) {
    impl_->worker_used(worker, use);
}

std::string Metrics::render(const std::function<void(Gauges&)>& collect) {
    return impl_->render(collect);
}

}  // namespace comfyd::observe
