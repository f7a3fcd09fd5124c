#include "jobs/arrivals.hpp"

#include <utility>

#include <boost/asio/post.hpp>

#include "base/stall_watch.hpp"

namespace comfyd::jobs {

Arrivals::Arrivals(Executor core, Dispatcher& dispatcher) : core_(core), dispatcher_(dispatcher) {}

void Arrivals::send(Job job, Executor here) {
    by_rank_[static_cast<std::size_t>(job.rank)].fetch_add(1, std::memory_order_relaxed);
    bool must_post = false;
    {
        const Lock lock(mutex_);
        must_post = jobs_.empty();
        jobs_.push_back(std::move(job));
    }
    if (must_post) {
        // By way of the caller's own queue, so that all that one commit resumes there goes along.
        boost::asio::post(here, [this] { boost::asio::post(core_, [this] { take_over(); }); });
    }
}

std::size_t Arrivals::count(int rank) const {
    std::size_t count = 0;
    for (auto at = static_cast<std::size_t>(rank); at < by_rank_.size(); ++at) {
        count += by_rank_[at].load(std::memory_order_relaxed);
    }
    return count;
}

void Arrivals::take_over() {
    std::vector<Job> taken;
    {
        const Lock lock(mutex_);
        taken.swap(jobs_);
    }
    const NowDoing doing("taking over new jobs");
    for (Job& job : taken) {
        by_rank_[static_cast<std::size_t>(job.rank)].fetch_sub(1, std::memory_order_relaxed);
        dispatcher_.enqueue(
            job.job, std::move(job.profile), std::move(job.secret_extra_data), job.content
        );
    }
    dispatcher_.start_waiting();
}

}  // namespace comfyd::jobs
