// What became of prompts.
#include <algorithm>
#include <utility>

#include "standalone/backend.hpp"

namespace comfyd::standalone {
namespace {

namespace server = comfy::server;

// A job of any kind.
struct Listed {
    PromptPtr prompt;
    HistoryEntryPtr entry;  // of an ended one
    comfy::JobStatus status;

    std::int64_t duration() const { return entry ? (entry->ended - entry->started).count() : 0; }
    server::JobView view(bool details) const {
        return entry ? view_job(*entry, details) : view_job(*prompt, status, details);
    }
};

std::vector<Listed> all_jobs(const Core& core) {
    std::vector<Listed> jobs;
    for (const HistoryEntryPtr& entry : core.history.all()) {
        jobs.push_back({entry->prompt, entry, entry->status});
    }
    if (core.running) {
        jobs.push_back({core.running->prompt, nullptr, comfy::JobStatus::in_progress});
    }
    for (const PromptPtr& prompt : core.queue.pending()) {
        jobs.push_back({prompt, nullptr, comfy::JobStatus::pending});
    }
    return jobs;
}

// On a thread of the pool.
server::JobsPage list_jobs(std::vector<Listed> jobs, const comfy::JobsQuery& query) {
    std::erase_if(jobs, [&query](const Listed& job) {
        return !query.wants(job.status) ||
               (!query.workflow_id.empty() &&
                comfy::workflow_id_of(job.prompt->extra_data) != query.workflow_id);
    });
    const auto key = [&query](const Listed& job) {
        return std::pair(
            query.by_duration ? job.duration() : to_unix_ms(job.prompt->created),
            job.prompt->sequence
        );
    };
    std::ranges::sort(jobs, [&](const Listed& a, const Listed& b) {
        return query.ascending ? key(a) < key(b) : key(b) < key(a);
    });
    const std::size_t first = std::min(query.offset, jobs.size());
    const std::size_t count = std::min(query.limit.value_or(jobs.size()), jobs.size() - first);
    server::JobsPage page;
    for (std::size_t i = first; i < first + count; ++i) {
        page.jobs.push_back(jobs[i].view(false));
    }
    page.total = jobs.size();
    page.has_more = first + count < jobs.size();
    return page;
}

Task<server::HistoryPage> encode(Pool& pool, std::vector<HistoryEntryPtr> entries) {
    auto page = co_await pool.run([entries = std::move(entries)] {
        server::HistoryPage made;
        for (const HistoryEntryPtr& entry : entries) {
            made.members.push_back(server::encode_member(entry->view()));
        }
        return made;
    });
    co_return page;
}

}  // namespace

Task<Result<server::HistoryPage>> EngineBackend::history(
    std::optional<std::int64_t> max_items, std::optional<std::int64_t> offset
) {
    auto page = co_await encode(core_.pool, core_.history.window(max_items, offset));
    co_return page;
}

Task<Result<server::HistoryPage>> EngineBackend::history_of(std::string id) {
    std::vector<HistoryEntryPtr> entries;
    if (HistoryEntryPtr entry = core_.history.find(id)) {
        entries.push_back(std::move(entry));
    }
    auto page = co_await encode(core_.pool, std::move(entries));
    co_return page;
}

Task<Result<>> EngineBackend::clear_history() {
    core_.history.clear();
    co_return Result<>();
}

Task<Result<>> EngineBackend::forget(std::vector<std::string> ids) {
    for (const std::string& id : ids) {
        core_.history.erase(id);
    }
    co_return Result<>();
}

Task<Result<server::JobsPage>> EngineBackend::jobs(comfy::JobsQuery query) {
    auto page = co_await core_.pool.run([jobs = all_jobs(core_), &query]() mutable {
        return list_jobs(std::move(jobs), query);
    });
    co_return page;
}

Task<Result<std::optional<server::JobView>>> EngineBackend::job(std::string id) {
    const auto jobs = all_jobs(core_);
    const auto found = std::ranges::find_if(jobs.rbegin(), jobs.rend(), [&id](const Listed& job) {
        return job.prompt->id == id;
    });
    co_return found == jobs.rend() ? std::nullopt : std::optional(found->view(true));
}

}  // namespace comfyd::standalone
