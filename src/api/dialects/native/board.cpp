#include "api/dialects/native/board.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "api/dialects/native/names.hpp"
#include "base/log.hpp"
#include "base/on_executor.hpp"

namespace comfyd::api::native {
namespace {

constexpr Millis kStoragePause{1'000};
constexpr std::size_t kNotedAtOnce = 64;

events::FeedOptions what_is_followed(std::size_t waiting_max) {
    events::FeedOptions options;
    // Also without any socket: the history tells what was cached and what a failed run had made.
    options.messages_of = kDialect;
    options.waiting_max = waiting_max;
    return options;
}

}  // namespace

Board::Board(jobs::Service& jobs, Executor executor, std::size_t waiting_max)
    : jobs_(jobs),
      executor_(executor),
      feed_(jobs.subscribe(executor, what_is_followed(waiting_max))),
      tasks_(executor) {}

void Board::start() {
    COMFYD_ON(executor_);
    feed_->on_told([this] { catch_up(); });
    hurry_for_sockets();
}

Task<> Board::stop() {
    catch_up();
    feed_->on_told(nullptr);
    storyteller_.audience().tell_owed();
    tasks_.cancel();
    co_await tasks_.join();
}

void Board::release(const JobId& job, bool is_accepted) {
    catch_up();
    storyteller_.release(job, is_accepted);
    tell_crowds_later();
}

std::optional<JobId> Board::attach(
    const std::string& tenant, const std::string& client_id, std::shared_ptr<Mailbox> mailbox
) {
    catch_up();
    const auto running = storyteller_.attach(tenant, client_id, std::move(mailbox));
    hurry_for_sockets();
    return running;
}

void Board::detach(const std::string& tenant, const Mailbox* mailbox) {
    catch_up();
    storyteller_.detach(tenant, mailbox);
    hurry_for_sockets();
}

std::optional<RunNotes> Board::notes(const JobId& job) {
    catch_up();
    return storyteller_.notes(job);
}

// Without any, what is told is only noted for the history, and whoever asks for that has it taken.
void Board::hurry_for_sockets() {
    feed_->wake_at(storyteller_.has_sockets() ? 1 : kNotedAtOnce);
}

void Board::catch_up() {
    COMFYD_ON(executor_);
    if (is_reading_) {
        return;
    }
    auto batch = feed_->take();
    for (events::Notice& notice : batch.notices) {
        storyteller_.hear(notice);
    }
    tell_crowds_later();
    if (batch.has_gap) {
        log::debug("something was lost on the way: the jobs of ComfyUI's clients are read anew");
        is_reading_ = true;
        tasks_.spawn("native board", read_anew());
    }
}

void Board::tell_crowds_later() {
    if (!is_telling_crowds_ && storyteller_.audience().next_due()) {
        is_telling_crowds_ = true;
        tasks_.spawn("crowds of sockets", tell_crowds());
    }
}

Task<> Board::tell_crowds() {
    using Ticks = Audience::Ticks;
    while (const auto due = storyteller_.audience().next_due()) {
        const auto wait = std::chrono::ceil<Millis>(*due - Ticks::now());
        const bool goes_on = co_await sleep_for(std::max(wait, Millis(1)));
        if (!goes_on) {
            break;
        }
        storyteller_.audience().tell_due(Ticks::now());
    }
    is_telling_crowds_ = false;
}

Task<> Board::read_anew() {
    for (;;) {
        std::unordered_set<JobId> unfinished;
        auto read = co_await read_unfinished(unfinished);
        if (read) {
            read = co_await read_others(std::move(unfinished));
        }
        if (read) {
            co_await count_anew();
            is_reading_ = false;
            catch_up();
            co_return;
        }
        log::warning("the jobs cannot be read", {{"error", read.error().message}});
        const bool goes_on = co_await sleep_for(kStoragePause);
        if (!goes_on) {
            co_return;
        }
    }
}

Task<Result<>> Board::read_unfinished(std::unordered_set<JobId>& found) {
    jobs::ListQuery query;
    query.dialect = kDialect;
    query.states = {jobs::State::queued, jobs::State::running, jobs::State::retry_waiting};
    query.limit = 1'000;
    do {
        auto page = co_await jobs_.list(query);
        if (!page) {
            co_return fail(std::move(page.error()));
        }
        for (const jobs::Job& job : page->jobs) {
            found.insert(job.id);
            storyteller_.see(job);
        }
        query.cursor = page->next_cursor;
    } while (query.cursor);
    co_return Result<>();
}

// Those that were not found have ended, or have come since.
Task<Result<>> Board::read_others(std::unordered_set<JobId> found) {
    const auto told = storyteller_.unfinished();
    for (const auto& job : told) {
        if (found.contains(job.id)) {
            continue;
        }
        auto view = co_await jobs_.get(job.tenant, job.id);
        if (view) {
            storyteller_.see(view->job);
        } else if (view.error().code == Code::not_found) {
            if (job.is_stored) {
                storyteller_.forget(job.id);
            }
        } else {
            co_return fail(std::move(view.error()));
        }
    }
    co_return Result<>();
}

Task<> Board::count_anew() {
    const auto tenants = storyteller_.tenants();
    for (const std::string& tenant : tenants) {
        const std::size_t unfinished = co_await jobs_.unfinished(tenant);
        storyteller_.set_unfinished(tenant, unfinished);
    }
}

}  // namespace comfyd::api::native
