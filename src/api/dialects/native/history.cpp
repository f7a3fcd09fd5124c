// What became of prompts.
#include <algorithm>
#include <set>
#include <utility>

#include "api/dialects/native/gateway.hpp"
#include "api/dialects/native/names.hpp"
#include "api/dialects/native/story.hpp"
#include "base/hop.hpp"

namespace comfyd::api::native {
namespace {

namespace server = comfy::server;

constexpr int kPage = 1'000;
constexpr std::size_t kHistoryMax = 10'000;  // as ComfyUI keeps
constexpr std::size_t kShownMax = 1'000;     // of one answer that names no number
constexpr std::size_t kIdsMax = 1'000;       // of one request
// What one answer holds, apart from its newest entry: a prompt may have 30 MB.
constexpr std::size_t kAnswerBytesMax = 64 * 1024 * 1024;
// Entries of larger prompts are made on the pool.
constexpr std::size_t kLargeBytes = 256 * 1024;

Task<Result<Hidden::View>> hidden_of(Context& context, std::string tenant) {
    auto view = co_await context.parts.pool.run([&context, tenant = std::move(tenant)] {
        return context.hidden.view(tenant);
    });
    co_return view;
}

// The tenant's jobs in these states that the native view shows, newest first, at most `count`.
struct Listing {
    std::vector<jobs::Job> jobs;
    bool complete = false;  // there are no more
};
Task<Result<Listing>> list_jobs(
    Context& context, jobs::ListQuery query, std::size_t count, Hidden::View hidden
) {
    Listing listing;
    query.limit = static_cast<int>(std::clamp<std::size_t>(count, 1, kPage));
    while (listing.jobs.size() < count) {
        auto page = co_await context.services.jobs.list(query);
        if (!page) {
            co_return fail(std::move(page.error()));
        }
        for (jobs::Job& job : page->jobs) {
            const bool shown =
                is_in_history(job) ? !hidden.contains(job.id) : !jobs::is_terminal(job.state);
            if (shown && listing.jobs.size() < count) {
                listing.jobs.push_back(std::move(job));
            }
        }
        if (!page->next_cursor) {
            listing.complete = true;
            break;
        }
        query.cursor = page->next_cursor;
    }
    co_return listing;
}

Task<std::optional<RunNotes>> notes_of(Context& context, JobId job) {
    auto notes = co_await call_on(context.board->executor(), [board = context.board, job] {
        return board->notes(job);
    });
    co_return notes;
}

const std::vector<jobs::State>& ended_states() {
    static const std::vector<jobs::State> kStates{
        jobs::State::completed, jobs::State::failed, jobs::State::cancelled, jobs::State::expired
    };
    return kStates;
}

// The part of the history that the request asks for, oldest first.
Task<Result<std::vector<jobs::Job>>> history_window(
    Context& context,
    std::string tenant,
    std::optional<std::int64_t> max_items,
    std::optional<std::int64_t> offset
) {
    auto hidden = co_await hidden_of(context, tenant);
    if (!hidden) {
        co_return fail(std::move(hidden.error()));
    }
    jobs::ListQuery query;
    query.tenant = tenant;
    query.states = ended_states();
    const std::size_t wanted =
        max_items && *max_items >= 0 ? static_cast<std::size_t>(*max_items) : kShownMax;
    const bool from_oldest = offset && *offset >= 0;
    const std::size_t count = from_oldest ? kHistoryMax : std::min(wanted, kHistoryMax);
    auto listing = co_await list_jobs(context, std::move(query), count, std::move(*hidden));
    if (!listing) {
        co_return fail(std::move(listing.error()));
    }
    auto jobs = std::move(listing->jobs);
    if (count == 0) {
        jobs.clear();
    }
    std::sort(jobs.begin(), jobs.end(), [](const auto& a, const auto& b) {
        return std::pair(a.finished_at, a.id) < std::pair(b.finished_at, b.id);
    });
    if (from_oldest) {
        const auto skip = std::min(static_cast<std::size_t>(*offset), jobs.size());
        jobs.erase(jobs.begin(), jobs.begin() + static_cast<std::ptrdiff_t>(skip));
        jobs.resize(std::min(jobs.size(), wanted));
    }
    co_return jobs;
}

// nullopt: the job is gone.
Task<Result<std::optional<std::string>>> make_entry(
    Context& context, std::string tenant, const jobs::Job& job
) {
    auto spec = co_await context.services.jobs.spec(std::move(tenant), job.id);
    if (!spec && spec.error().code == Code::not_found) {
        co_return std::nullopt;
    }
    if (!spec) {
        co_return fail(std::move(spec.error()));
    }
    auto notes = co_await notes_of(context, job.id);
    if (spec->workflow.size() < kLargeBytes) {
        co_return server::encode_member(view_history(job, *spec, notes));
    }
    auto text = co_await context.parts.pool.run([&job, spec = std::move(*spec), notes] {
        return server::encode_member(view_history(job, spec, notes));
    });
    co_return text;
}

Task<Result<server::HistoryPage>> to_page(
    Context& context, std::string tenant, std::vector<jobs::Job> jobs
) {
    auto pass = co_await context.history_turns.enter(tenant);
    if (!pass) {
        co_return fail(std::move(pass.error()));
    }
    server::HistoryPage page;   // the newest first, which are wanted most
    std::set<std::string> ids;  // one that was used again names the newest prompt
    std::size_t bytes = 0;
    for (auto job = jobs.rbegin(); job != jobs.rend(); ++job) {
        if (!ids.insert(prompt_id_of(*job)).second) {
            continue;
        }
        auto entry = co_await make_entry(context, tenant, *job);
        if (!entry) {
            co_return fail(std::move(entry.error()));
        }
        if (!*entry) {
            continue;
        }
        if (!page.members.empty() && bytes + (*entry)->size() > kAnswerBytesMax) {
            page.left_out = static_cast<std::size_t>(jobs.rend() - job);
            break;
        }
        bytes += (*entry)->size();
        page.members.push_back(std::move(**entry));
    }
    std::ranges::reverse(page.members);
    co_return page;
}

std::vector<jobs::State> states_of(const std::vector<comfy::JobStatus>& statuses) {
    std::vector<jobs::State> states;
    for (const comfy::JobStatus status : statuses) {
        switch (status) {
            case comfy::JobStatus::pending:
                states.push_back(jobs::State::queued);
                states.push_back(jobs::State::retry_waiting);
                break;
            case comfy::JobStatus::in_progress:
                states.push_back(jobs::State::running);
                break;
            case comfy::JobStatus::completed:
                states.push_back(jobs::State::completed);
                break;
            case comfy::JobStatus::failed:
                states.push_back(jobs::State::failed);
                states.push_back(jobs::State::expired);
                break;
            case comfy::JobStatus::cancelled:
                states.push_back(jobs::State::cancelled);
                break;
        }
    }
    return states;
}

void sort_jobs(std::vector<jobs::Job>& jobs, const comfy::JobsQuery& query) {
    const auto length = [](const jobs::Job& job) {
        return job.execution_time().value_or(Millis(0));
    };
    if (query.by_duration) {
        std::sort(jobs.begin(), jobs.end(), [&](const auto& a, const auto& b) {
            const auto left = std::pair(length(a), a.id);
            const auto right = std::pair(length(b), b.id);
            return query.ascending ? left < right : left > right;
        });
    } else if (query.ascending) {
        std::reverse(jobs.begin(), jobs.end());
    }
}

Task<Result<>> hide(Context& context, std::string tenant, std::vector<jobs::Job> jobs) {
    std::vector<JobId> ids;
    for (const jobs::Job& job : jobs) {
        ids.push_back(job.id);
    }
    auto done = co_await context.parts.pool.run([&context, &tenant, &ids] {
        return context.hidden.add(tenant, ids);
    });
    co_return done;
}

// How many there are in all: exact when everything was read, else by the ledger's counters.
Task<std::size_t> total_of(Context& context, const jobs::ListQuery& query, const Listing& listing) {
    if (listing.complete) {
        co_return listing.jobs.size();
    }
    auto counts = co_await context.services.jobs.counts(query.tenant);
    std::uint64_t total = 0;
    for (int state = 0; counts && state < 7; ++state) {
        const auto known = static_cast<jobs::State>(state);
        const auto& wanted = query.states;
        if (wanted.empty() || std::find(wanted.begin(), wanted.end(), known) != wanted.end()) {
            total += counts->of(known);
        }
    }
    co_return std::max(static_cast<std::size_t>(total), listing.jobs.size());
}

}  // namespace

Task<Result<server::HistoryPage>> Gateway::history(
    std::optional<std::int64_t> max_items, std::optional<std::int64_t> offset
) {
    auto jobs = co_await history_window(context_, tenant(), max_items, offset);
    if (!jobs) {
        co_return fail(std::move(jobs.error()));
    }
    auto page = co_await to_page(context_, tenant(), std::move(*jobs));
    co_return page;
}

Task<Result<server::HistoryPage>> Gateway::history_of(std::string id) {
    auto found = co_await find_jobs(context_, tenant(), std::move(id));
    if (!found) {
        co_return fail(std::move(found.error()));
    }
    auto hidden = co_await hidden_of(context_, tenant());
    if (!hidden) {
        co_return fail(std::move(hidden.error()));
    }
    std::erase_if(*found, [&hidden](const jobs::Job& job) {
        return !is_in_history(job) || hidden->contains(job.id);
    });
    auto page = co_await to_page(context_, tenant(), std::move(*found));
    co_return page;
}

// Those that have not ended yet come into the history later; only the ended ones go.
Task<Result<>> Gateway::clear_history() {
    jobs::ListQuery query;
    query.tenant = tenant();
    query.states = ended_states();
    auto listing = co_await list_jobs(context_, query, kHistoryMax, {});
    if (!listing) {
        co_return fail(std::move(listing.error()));
    }
    auto hidden = co_await hide(context_, tenant(), std::move(listing->jobs));
    co_return hidden;
}

Task<Result<>> Gateway::forget(std::vector<std::string> ids) {
    ids.resize(std::min(ids.size(), kIdsMax));
    Result<> done;
    for (const std::string& id : ids) {
        auto found = co_await find_jobs(context_, tenant(), id);
        if (found && !found->empty()) {
            done = co_await hide(context_, tenant(), std::move(*found));
        }
    }
    co_return done;
}

Task<Result<server::JobsPage>> Gateway::jobs(comfy::JobsQuery query) {
    auto hidden = co_await hidden_of(context_, tenant());
    if (!hidden) {
        co_return fail(std::move(hidden.error()));
    }
    jobs::ListQuery list;
    list.tenant = tenant();
    list.states = states_of(query.statuses);
    list.workflow_id = query.workflow_id;
    // The usual order is that of the ledger: no more is read than shown.
    const bool in_order = !query.by_duration && !query.ascending && query.limit;
    const std::size_t count =
        in_order ? std::min(query.offset + *query.limit + 1, kHistoryMax) : kHistoryMax;
    auto listing = co_await list_jobs(context_, list, count, std::move(*hidden));
    if (!listing) {
        co_return fail(std::move(listing.error()));
    }
    server::JobsPage page;
    page.total = co_await total_of(context_, list, *listing);
    sort_jobs(listing->jobs, query);
    const std::size_t end =
        std::min(listing->jobs.size(), query.offset + query.limit.value_or(kHistoryMax));
    for (std::size_t i = query.offset; i < end; ++i) {
        page.jobs.push_back(view_job(listing->jobs[i]));
    }
    page.has_more = end < listing->jobs.size();
    co_return page;
}

Task<Result<std::optional<server::JobView>>> Gateway::job(std::string id) {
    auto found = co_await find_jobs(context_, tenant(), std::move(id));
    if (!found) {
        co_return fail(std::move(found.error()));
    }
    if (found->empty()) {
        co_return std::nullopt;
    }
    const jobs::Job& job = found->back();
    auto spec = co_await context_.services.jobs.spec(tenant(), job.id);
    if (!spec) {
        co_return fail(std::move(spec.error()));
    }
    auto notes = co_await notes_of(context_, job.id);
    co_return view_job(job, *spec, notes);
}

}  // namespace comfyd::api::native
