// What became of prompts: /history and /api/jobs.
#include <algorithm>
#include <charconv>
#include <utility>

#include "base/id.hpp"
#include "comfy/jobs_list.hpp"
#include "comfy/members.hpp"
#include "comfy/replies.hpp"
#include "standalone/routes.hpp"

namespace comfyd::standalone {
namespace {

constexpr std::size_t kIdsMax = 1'000;  // of one request

// Of a query; Code::invalid_argument when it is there and no number.
Result<std::optional<std::int64_t>> query_number(const Call& call, std::string_view name) {
    if (!call.has_query(name)) {
        return std::optional<std::int64_t>();
    }
    const std::string_view text = call.query_value(name);
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size()) {
        return fail(Code::invalid_argument, std::string(name) + " must be an integer");
    }
    return std::optional(number);
}

// A job of any kind, as GET /api/jobs sorts and shows it.
struct Listed {
    PromptPtr prompt;
    HistoryEntryPtr entry;  // of an ended one
    comfy::JobStatus status;

    std::int64_t duration() const { return entry ? (entry->ended - entry->started).count() : 0; }
    json::object to_json(bool details) const {
        return entry ? describe_job(*entry, details) : describe_job(*prompt, status, details);
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
net::Response list_jobs(std::vector<Listed> jobs, const comfy::JobsQuery& query) {
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
    json::array shown;
    for (std::size_t i = first; i < first + count; ++i) {
        shown.push_back(jobs[i].to_json(false));
    }
    json::object body;
    body["pagination"] = comfy::pagination(query, shown.size(), jobs.size());
    body["jobs"] = std::move(shown);
    return comfy::json_reply(200, body);
}

Task<> answer_history(Call& call, Core& core, std::vector<HistoryEntryPtr> entries) {
    auto response = co_await core.pool.run([entries = std::move(entries)] {
        json::object history;
        for (const HistoryEntryPtr& entry : entries) {
            history[entry->prompt->id] = entry->to_json();
        }
        return comfy::json_reply(200, history);
    });
    co_await answer(call, std::move(response));
}

}  // namespace

Task<> get_history(Call& call, Core& core) {
    const auto max_items = query_number(call, "max_items");
    const auto offset = query_number(call, "offset");
    if (!max_items || !offset) {
        co_await answer(call, encode_error(!max_items ? max_items.error() : offset.error()));
        co_return;
    }
    co_await answer_history(call, core, core.history.window(*max_items, *offset));
}

Task<> get_history_of(Call& call, Core& core) {
    std::vector<HistoryEntryPtr> entries;
    if (HistoryEntryPtr entry = core.history.find(call.parameters.at(0))) {
        entries.push_back(std::move(entry));
    }
    co_await answer_history(call, core, std::move(entries));
}

Task<> post_history(Call& call, Core& core) {
    auto body = co_await read_object(call, core);
    if (!body) {
        co_return;
    }
    if (is_true(*body, "clear")) {
        core.history.clear();
    }
    for (const std::string& id : comfy::texts_of(*body, "delete")) {
        core.history.erase(id);
    }
    co_await answer(call, comfy::empty_reply(200));
}

Task<> get_jobs(Call& call, Core& core) {
    auto query = comfy::parse_jobs_query(call.query);
    if (!query) {
        co_await answer(call, comfy::error_reply(400, query.error()));
        co_return;
    }
    auto response = co_await core.pool.run([jobs = all_jobs(core), &query = *query]() mutable {
        return list_jobs(std::move(jobs), query);
    });
    co_await answer(call, std::move(response));
}

Task<> get_job(Call& call, Core& core) {
    auto jobs = all_jobs(core);
    // The newest of an id that was used again.
    const auto found = std::ranges::find_if(jobs.rbegin(), jobs.rend(), [&call](const Listed& job) {
        return job.prompt->id == call.parameters.at(0);
    });
    if (found == jobs.rend()) {
        co_await answer(call, comfy::error_reply(404, "Job not found"));
        co_return;
    }
    co_await answer(call, comfy::json_reply(200, found->to_json(true)));
}

Task<> cancel_job(Call& call, Core& core) {
    json::object body;
    body["cancelled"] = core.cancel(call.parameters.at(0));
    co_await answer(call, comfy::json_reply(200, body));
}

Task<> cancel_jobs(Call& call, Core& core) {
    auto body = co_await read_json(call, core);
    if (!body) {
        co_return;
    }
    const json::array* ids =
        body->is_object() ? comfy::array_of(body->get_object(), "job_ids") : nullptr;
    if (ids == nullptr || ids->size() > kIdsMax) {
        co_await answer(
            call, comfy::error_reply(400, "job_ids must be a list of at most 1000 job ids")
        );
        co_return;
    }
    json::array invalid;
    for (const json::value& id : *ids) {
        if (!id.is_string() || !Uuid::parse(std::string_view(id.get_string()))) {
            invalid.push_back(id);
        }
    }
    if (!invalid.empty()) {
        json::object refusal;
        refusal["error"] = "job_ids must be UUIDs";
        refusal["invalid_ids"] = std::move(invalid);
        co_await answer(call, comfy::json_reply(400, refusal));
        co_return;
    }
    bool any = false;
    for (const json::value& id : *ids) {
        any = core.cancel(std::string_view(id.get_string())) || any;
    }
    json::object done;
    done["cancelled"] = any;
    co_await answer(call, comfy::json_reply(200, done));
}

}  // namespace comfyd::standalone
