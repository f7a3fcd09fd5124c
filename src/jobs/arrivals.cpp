#include "jobs/arrivals.hpp"

#include <utility>

#include <boost/asio/post.hpp>

#include "base/stall_watch.hpp"

namespace comfyd::jobs {

void Arrivals::send(Job job, Executor here) {
    backlog_.add(static_cast<std::size_t>(job.rank));
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

void Arrivals::take_over() {
    std::vector<Job> taken;
    {
        const Lock lock(mutex_);
        taken.swap(jobs_);
    }
    const NowDoing doing("taking over new jobs");
    for (Job& job : taken) {
        backlog_.take(static_cast<std::size_t>(job.rank));
        if (Dispatcher* dispatcher = leads_.find(job.job.domain)) {
            dispatcher->enqueue(
                job.job, std::move(job.profile), std::move(job.secret_extra_data), job.content
            );
        } else if (elsewhere_ != nullptr) {
            elsewhere_->tell_of_arrival(job.job.domain);
        }
    }
    leads_.each([](Dispatcher& dispatcher) { dispatcher.start_waiting(); });
}

}  // namespace comfyd::jobs
