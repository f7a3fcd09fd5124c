// What is asked of prompts that have not ended: the queue, and taking out of it what waits or runs.
#include <algorithm>
#include <utility>

#include "api/dialects/native/gateway.hpp"
#include "api/dialects/native/story.hpp"

namespace comfyd::api::native {
namespace {

namespace server = comfy::server;

constexpr int kQueueShownMax = 1'000;
constexpr int kPage = 1'000;
constexpr std::size_t kIdsMax = 1'000;  // of one request

bool is_waiting(const jobs::Job& job) {
    return job.state == jobs::State::queued || job.state == jobs::State::retry_waiting;
}

Task<Result<std::vector<server::PromptView>>> list_prompts(
    Context& context, std::string tenant, std::vector<jobs::State> states
) {
    jobs::ListQuery query;
    query.tenant = tenant;
    query.states = std::move(states);
    query.limit = kQueueShownMax;
    auto page = co_await context.services.jobs.list(std::move(query));
    if (!page) {
        co_return fail(std::move(page.error()));
    }
    std::vector<server::PromptView> prompts;
    for (auto job = page->jobs.rbegin(); job != page->jobs.rend(); ++job) {
        auto spec = co_await context.services.jobs.spec(tenant, job->id);
        if (spec) {
            prompts.push_back(view_prompt(*job, *spec));
        }
    }
    co_return prompts;
}

// Cancels the tenant's jobs in these states. A job that cannot be cancelled has ended.
Task<Result<>> cancel_all(Context& context, std::string tenant, std::vector<jobs::State> states) {
    jobs::ListQuery query;
    query.tenant = tenant;
    query.states = std::move(states);
    query.limit = kPage;
    for (;;) {
        auto page = co_await context.services.jobs.list(query);
        if (!page) {
            co_return fail(std::move(page.error()));
        }
        for (const jobs::Job& job : page->jobs) {
            auto cancelled = co_await context.services.jobs.cancel(tenant, job.id);
            if (!cancelled && cancelled.error().code != Code::conflict &&
                cancelled.error().code != Code::not_found) {
                co_return fail(std::move(cancelled.error()));
            }
        }
        if (!page->next_cursor) {
            co_return Result<>();
        }
        query.cursor = page->next_cursor;
    }
}

// Cancels those of the jobs with this id that `which` wants. True when any was.
using Which = bool (*)(const jobs::Job&);
Task<Result<bool>> cancel_by_id(
    Context& context, std::string tenant, std::string prompt_id, Which which
) {
    auto found = co_await find_jobs(context, tenant, std::move(prompt_id));
    if (!found) {
        co_return fail(std::move(found.error()));
    }
    bool any = false;
    for (const jobs::Job& job : *found) {
        if (!which(job)) {
            continue;
        }
        auto cancelled = co_await context.services.jobs.cancel(tenant, job.id);
        if (!cancelled) {
            co_return fail(std::move(cancelled.error()));
        }
        any = true;
    }
    co_return any;
}

bool is_running(const jobs::Job& job) {
    return job.state == jobs::State::running;
}

bool is_unfinished(const jobs::Job& job) {
    return !jobs::is_terminal(job.state);
}

}  // namespace

Task<std::size_t> Gateway::unfinished() {
    return context_.services.jobs.unfinished(tenant());
}

Task<Result<server::QueueView>> Gateway::queue() {
    auto running = co_await list_prompts(context_, tenant(), {jobs::State::running});
    if (!running) {
        co_return fail(std::move(running.error()));
    }
    auto pending = co_await list_prompts(
        context_, tenant(), {jobs::State::queued, jobs::State::retry_waiting}
    );
    if (!pending) {
        co_return fail(std::move(pending.error()));
    }
    co_return server::QueueView{std::move(*running), std::move(*pending)};
}

Task<Result<>> Gateway::clear_queue() {
    return cancel_all(context_, tenant(), {jobs::State::queued, jobs::State::retry_waiting});
}

Task<Result<>> Gateway::dequeue(std::vector<std::string> ids) {
    ids.resize(std::min(ids.size(), kIdsMax));
    Result<> done;
    for (std::string& id : ids) {
        auto one = co_await cancel_by_id(context_, tenant(), std::move(id), is_waiting);
        if (!one) {
            done = fail(std::move(one.error()));
        }
    }
    co_return done;
}

Task<Result<>> Gateway::interrupt(std::string id) {
    if (id.empty()) {
        auto all = co_await cancel_all(context_, tenant(), {jobs::State::running});
        co_return all;
    }
    auto one = co_await cancel_by_id(context_, tenant(), std::move(id), is_running);
    co_return one ? Result<>() : fail(std::move(one.error()));
}

Task<Result<bool>> Gateway::cancel(std::string id) {
    return cancel_by_id(context_, tenant(), std::move(id), is_unfinished);
}

Task<> Gateway::free_memory(bool models, bool results) {
    co_await context_.services.jobs.free_idle_workers(models, results);
}

}  // namespace comfyd::api::native
