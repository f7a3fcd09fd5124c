// SwarmUI's rule in real time: the policy that `comfyd simulate` knows as "pressure" drives the
// workers itself, with nothing between it and them. As SwarmUI does, it loads a model with a small
// prompt of its own.
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>

#include "direct.hpp"
#include "placement.hpp"
#include "scheduler/predictor.hpp"
#include "simulate/policy.hpp"
#include "tools.hpp"

namespace comfyd::bench {
namespace {

simulate::Trace trace_of(const ManyModels& setup) {
    simulate::Trace trace;
    trace.tenants.emplace_back("bench");
    for (int i = 0; i < setup.models; ++i) {
        auto profile = std::make_shared<scheduler::Profile>();
        profile->models.push_back({"checkpoint/model-" + std::to_string(i), 0});
        trace.profiles.push_back({std::move(profile)});
    }
    for (const std::size_t model : zipf_models(setup)) {
        trace.jobs.push_back({.profile = static_cast<std::uint32_t>(model)});
    }
    return trace;
}

class PressureRun {
public:
    explicit PressureRun(const ManyModels& setup)
        : trace_(trace_of(setup)), fleet_(setup.workers.size()), threads_(setup.workers.size()) {
        for (const std::string& url : setup.workers) {
            workers_.push_back(std::make_unique<DirectWorker>(url));
        }
        policy_ = simulate::make_policy("pressure", {trace_, fleet_, estimates_});
    }

    // Returns how long each job waited.
    std::vector<double> all() {
        start_ = SteadyClock::now();
        for (std::uint32_t job = 0; job < trace_.jobs.size(); ++job) {
            policy_->add(job, {});
        }
        const auto guard = boost::asio::make_work_guard(context_);
        while (ended_ < trace_.jobs.size()) {
            while (const auto action = policy_->next(now_ms())) {
                begin(*action);
            }
            if (const auto wake_at = policy_->wake_at()) {
                context_.run_one_until(start_ + std::chrono::milliseconds(*wake_at));
            } else {
                context_.run_one();
            }
        }
        return std::move(waits_s_);
    }

private:
    std::int64_t now_ms() const { return static_cast<std::int64_t>(ms_since(start_)); }

    void begin(const simulate::Action& action) {
        if (!action.jobs.empty()) {
            waits_s_.push_back(ms_since(start_) / 1000);
        }
        boost::asio::post(threads_, [this, action] {
            const std::string text =
                action.jobs.empty() ? "load" : "job " + std::to_string(action.jobs.front());
            workers_[action.worker]->run(picture_with(action.profile, text));
            boost::asio::post(context_, [this, action] {
                ended_ += action.jobs.size();
                policy_->finished(action, 0, now_ms());
            });
        });
    }

    const simulate::Trace trace_;
    const simulate::Fleet fleet_;
    const scheduler::Predictor estimates_;
    std::unique_ptr<simulate::Policy> policy_;
    std::vector<std::unique_ptr<DirectWorker>> workers_;
    SteadyClock::time_point start_;
    std::vector<double> waits_s_;
    std::size_t ended_ = 0;
    boost::asio::io_context context_;
    boost::asio::thread_pool threads_;  // as many as workers: each has one prompt at a time
};

}  // namespace

int place_by_pressure(const ManyModels& setup) {
    PressureRun run(setup);
    const auto start = SteadyClock::now();
    const std::vector<double> waits_s = run.all();
    print_placement(setup, ms_since(start) / 1000, waits_s);
    return 0;
}

}  // namespace comfyd::bench
