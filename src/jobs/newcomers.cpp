#include "jobs/newcomers.hpp"

#include <algorithm>
#include <utility>

#include "base/log.hpp"
#include "base/stall_watch.hpp"

namespace comfyd::jobs {
namespace {

constexpr int kPage = 1000;
// While the core does other things, too: what a page brings is taken over in one go.
constexpr int kSmallPage = 250;
constexpr int kWishesAtOnce = 100;

}  // namespace

Task<Result<std::vector<Unfinished>>> Newcomers::read_back() {
    if (has_read_back_) {
        co_return std::vector<Unfinished>();
    }
    auto page = co_await p_.shared.arrivals(p_.domain, cursor_, kPage);
    if (!page) {
        co_return fail(std::move(page.error()));
    }
    cursor_ = page->next;
    has_read_back_ = !page->more;
    co_return std::move(page->jobs);
}

Task<> Newcomers::run() {
    bool goes_on = true;
    while (goes_on) {
        co_await look_for_jobs();
        co_await look_for_wishes();
        const bool is_told = co_await told_.wait_for(kLookEvery);
        const bool is_over = co_await is_cancelled();
        goes_on = is_told || !is_over;
    }
}

Task<> Newcomers::look_for_jobs() {
    ended_.back() = std::exchange(ended_.front(), {});
    const Time begun = p_.clock.now();
    const IsKnown is_known = [this](const Arrival& one) {
        return one.state == State::running || (one.revision == 1 && p_.knows(one.job));
    };
    for (bool more = true; more;) {
        auto page = co_await p_.shared.arrivals(p_.domain, cursor_, kSmallPage, is_known);
        if (!page) {
            log::warning("new jobs were not found", {{"error", page.error().message}});
            co_return;
        }
        const NowDoing doing("taking over jobs of other nodes");
        for (Unfinished& job : page->jobs) {
            meet(std::move(job));
        }
        cursor_ = page->next;
        more = page->more;
    }
    read_until_ = begun;
}

void Newcomers::meet(Unfinished job) {
    if (job.job.state == State::running || has_just_ended(job.job)) {
        return;
    }
    if (!p_.knows(job.job.id)) {
        p_.take(std::move(job));
    } else if (job.job.revision > 1) {
        brought_back_.insert_or_assign(job.job.id, std::move(job));
    }
}

void Newcomers::note_end(const Job& job) {
    ended_.front().insert_or_assign(job.id, job.revision);
    auto met = brought_back_.extract(job.id);
    if (met && met.mapped().job.revision > job.revision) {
        p_.take(std::move(met.mapped()));
    }
}

bool Newcomers::has_just_ended(const Job& job) const {
    return std::ranges::any_of(ended_, [&job](const auto& revisions) {
        const auto ended = revisions.find(job.id);
        return ended != revisions.end() && ended->second >= job.revision;
    });
}

// A wish that is done twice does no harm, one that is dropped before it is done does.
Task<> Newcomers::look_for_wishes() {
    for (bool more = true; more;) {
        auto wishes = co_await p_.shared.wishes(p_.domain, kWishesAtOnce);
        if (!wishes) {
            log::warning("wishes were not found", {{"error", wishes.error().message}});
            co_return;
        }
        std::vector<std::int64_t> done;
        for (Wish& wish : *wishes) {
            done.push_back(wish.id);
            co_await p_.fulfil(std::move(wish));
        }
        more = done.size() == static_cast<std::size_t>(kWishesAtOnce);
        if (!done.empty()) {
            auto dropped = co_await p_.shared.drop_wishes(std::move(done));
            more = more && dropped;
        }
    }
}

}  // namespace comfyd::jobs
