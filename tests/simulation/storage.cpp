#include "simulation/storage.hpp"

#include <utility>

#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace comfyd::simulation {
namespace {

tl::unexpected<Error> lost() {
    return fail(Code::shutting_down, "the process is gone");
}

}  // namespace

template <class Handler>
struct Storage::Held final : Waiting {
    explicit Held(Handler waiting) : handler(std::move(waiting)) {}
    void go(bool is_done) override {
        const auto home = boost::asio::get_associated_executor(handler);
        boost::asio::post(home, [handler = std::move(handler), is_done]() mutable {
            std::move(handler)(is_done);
        });
    }
    Handler handler;
};

Task<bool> Storage::wait_in(Queue& queue) {
    if (is_cut_) {
        co_return false;
    }
    auto initiate = [&queue](auto handler) {
        queue.push_back(std::make_unique<Held<decltype(handler)>>(std::move(handler)));
    };
    constexpr boost::asio::use_awaitable_t<Executor> kAwait{};
    const bool is_done = co_await boost::asio::
        async_initiate<const boost::asio::use_awaitable_t<Executor>, void(bool)>(
            std::move(initiate), kAwait
        );
    co_return is_done;
}

void Storage::let_one_through() {
    Queue& queue = others_.empty() || (!writes_.empty() && chance_.one_in(2)) ? writes_ : others_;
    if (!queue.empty()) {
        const auto first = std::move(queue.front());
        queue.pop_front();
        first->go(true);
    }
}

void Storage::cut() {
    is_cut_ = true;
    int done = writes_.empty() ? 0 : chance_.below(static_cast<int>(writes_.size()) + 1);
    for (const auto& waiting : std::exchange(writes_, {})) {
        waiting->go(done-- > 0);
    }
    for (const auto& waiting : std::exchange(others_, {})) {
        waiting->go(false);
    }
}

std::optional<Error> Storage::find_trouble(const char* what) {
    if (is_cut_ || (!trouble_.is_down && trouble_.failures == 0)) {
        return std::nullopt;
    }
    if (trouble_.failures > 0) {
        trouble_.failures -= 1;
    }
    journal_.add([&] { return std::string("storage fails: ") + what; });
    const bool is_full = chance_.one_in(2);
    return Error(is_full ? Code::storage_full : Code::storage_unavailable, "the disk is away");
}

Task<bool> Storage::answer() {
    if (!is_cut_ && chance_.one_in(3)) {
        co_await wait_in(others_);
    }
    co_return !is_cut_;
}

template <class T>
Task<Result<T>> Storage::read(Task<Result<T>> operation) {
    if (chance_.one_in(2)) {
        const bool is_done = co_await wait_in(others_);
        if (!is_done) {
            co_return lost();
        }
    }
    if (is_cut_) {
        co_return lost();
    }
    if (auto error = find_trouble("a read")) {
        co_return fail(std::move(*error));
    }
    auto result = co_await std::move(operation);
    const bool is_told = co_await answer();
    if (!is_told) {
        co_return lost();
    }
    co_return result;
}

Task<Result<jobs::Accepted>> Storage::accept(jobs::NewJob job) {
    const bool is_done = co_await wait_in(writes_);
    if (!is_done) {
        co_return lost();
    }
    if (auto error = find_trouble("accept")) {
        co_return fail(std::move(*error));
    }
    const JobId id = job.change.job.id;
    journal_.add([&] {
        return "ledger: accept " + name_of(id) +
               (job.then ? ", " + std::string(to_string(job.then->event.type)) : "");
    });
    auto accepted = co_await stored_.accept(std::move(job));
    if (accepted && accepted->created) {
        rules_.on_accepted(id);
    }
    const bool is_told = co_await answer();
    if (!is_told) {
        co_return lost();
    }
    co_return accepted;
}

Task<Result<>> Storage::commit(jobs::Change change) {
    const bool is_done = co_await wait_in(writes_);
    if (!is_done) {
        co_return lost();
    }
    const char* const type = to_string(change.event.type).data();
    if (auto error = find_trouble(type)) {
        co_return fail(std::move(*error));
    }
    if (trouble_.has_new_leader) {
        co_return fail(Code::lead_lost, "another node leads");
    }
    const auto found = stored_.entries().find(change.job.id);
    if (trouble_.conflicts > 0 && !is_cut_ && found != stored_.entries().end()) {
        trouble_.conflicts -= 1;
        stored_.touch(change.job.id);
        journal_.add([&] { return "ledger: another writer was at " + name_of(change.job.id); });
    }
    const auto before =
        found == stored_.entries().end() ? std::nullopt : std::optional(found->second.job);
    auto committed = co_await stored_.commit(change);
    journal_.add([&] {
        return std::string("ledger: ") + name_of(change.job.id) + " " + type + ", " +
               std::string(to_string(change.job.state)) +
               (committed ? "" : ": " + committed.error().message);
    });
    if (committed) {
        rules_.on_committed(*before, change);
    }
    const bool is_told = co_await answer();
    if (!is_told) {
        co_return lost();
    }
    co_return committed;
}

Task<Result<jobs::Accepted>> Storage::find_key(std::string tenant, std::string key) {
    return read(stored_.find_key(std::move(tenant), std::move(key)));
}
Task<Result<std::optional<jobs::Job>>> Storage::find_reusable(
    std::string tenant, std::string reuse_key
) {
    return read(stored_.find_reusable(std::move(tenant), std::move(reuse_key)));
}
Task<Result<std::optional<jobs::Job>>> Storage::find(JobId id) {
    return read(stored_.find(id));
}
Task<Result<std::optional<jobs::Spec>>> Storage::find_spec(JobId id) {
    return read(stored_.find_spec(id));
}
Task<Result<jobs::Page>> Storage::list(jobs::ListQuery query) {
    return read(stored_.list(std::move(query)));
}
Task<Result<std::vector<jobs::Event>>> Storage::events(JobId id, std::uint64_t after) {
    if (trouble_.hides_events) {
        co_return fail(Code::storage_unavailable, "a page of the disk cannot be read");
    }
    auto events = co_await read(stored_.events(id, after));
    co_return events;
}
Task<Result<jobs::WebhookStatus>> Storage::webhook_status(JobId id) {
    return read(stored_.webhook_status(id));
}
Task<Result<jobs::StateCounts>> Storage::counts(std::optional<std::string> tenant) {
    return read(stored_.counts(std::move(tenant)));
}
Task<Result<jobs::Stats>> Storage::stats(jobs::StatsQuery query) {
    return read(stored_.stats(std::move(query)));
}
Task<Result<std::vector<jobs::Unfinished>>> Storage::unfinished(
    std::optional<JobId> after, int limit
) {
    return read(stored_.unfinished(after, limit));
}

Task<Result<jobs::Purged>> Storage::purge(Time before, int limit) {
    return read(stored_.purge(before, limit));
}

Task<Result<>> Storage::discard(JobId id) {
    return read(stored_.discard(id));
}

}  // namespace comfyd::simulation
