// GET and POST /history, GET /api/jobs: what became of prompts.
#include <algorithm>
#include <charconv>
#include <limits>
#include <set>
#include <utility>

#include "api/dialects/native/names.hpp"
#include "api/dialects/native/routes.hpp"
#include "api/dialects/native/story.hpp"
#include "base/hop.hpp"
#include "base/text.hpp"
#include "comfy/members.hpp"

namespace comfyd::api::native {
namespace {

constexpr int kPage = 1'000;
constexpr std::size_t kHistoryMax = 10'000;  // as ComfyUI keeps
constexpr std::size_t kShownMax = 1'000;     // of one answer that names no number
constexpr std::size_t kIdsMax = 1'000;       // of one request
// What one answer holds, apart from its newest entry: a prompt may have 30 MB.
constexpr std::size_t kAnswerBytesMax = 64 * 1024 * 1024;
// Entries of larger prompts are made on the pool.
constexpr std::size_t kLargeBytes = 256 * 1024;

// A number that is too long is as good as the largest one: Python's have no end.
std::optional<std::int64_t> to_int(std::string_view text) {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (end != text.data() + text.size() || error == std::errc::invalid_argument) {
        return std::nullopt;
    }
    using Limits = std::numeric_limits<std::int64_t>;
    return error == std::errc() ? number : text.starts_with('-') ? Limits::min() : Limits::max();
}

bool has_query(const Call& call, std::string_view name) {
    return std::any_of(call.query.begin(), call.query.end(), [name](const auto& entry) {
        return entry.first == name;
    });
}

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

// "id": {…}
std::string entry_text(
    const jobs::Job& job, const jobs::Spec& spec, const std::optional<RunNotes>& notes
) {
    return json::serialize_python(json::value(prompt_id_of(job))) + ": " +
           json::serialize_python(history_entry(job, spec, notes));
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
        co_return entry_text(job, *spec, notes);
    }
    auto text = co_await context.parts.pool.run([&job, spec = std::move(*spec), notes] {
        return entry_text(job, spec, notes);
    });
    co_return text;
}

struct History {
    std::string text;
    std::size_t left_out = 0;  // older ones, for which there was no room
};
Task<Result<History>> to_history(
    Context& context, std::string tenant, std::vector<jobs::Job> jobs
) {
    History history;
    std::vector<std::string> entries;  // the newest first, which are wanted most
    std::set<std::string> ids;         // one that was used again names the newest prompt
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
        if (!entries.empty() && bytes + (*entry)->size() > kAnswerBytesMax) {
            history.left_out = static_cast<std::size_t>(jobs.rend() - job);
            break;
        }
        bytes += (*entry)->size();
        entries.push_back(std::move(**entry));
    }
    history.text.reserve(bytes + 2 * entries.size() + 2);
    history.text = "{";
    for (; !entries.empty(); entries.pop_back()) {
        history.text += history.text.size() > 1 ? ", " : "";
        history.text += entries.back();
    }
    history.text += "}";
    co_return history;
}

Task<> answer_history(Call& call, Context& context, std::vector<jobs::Job> jobs) {
    auto pass = co_await context.history_turns.enter(call.caller.tenant);
    if (!pass) {
        co_await send(call, encode_native_error(pass.error()));
        co_return;
    }
    auto history = co_await to_history(context, call.caller.tenant, std::move(jobs));
    if (!history) {
        co_await send(call, encode_native_error(history.error()));
        co_return;
    }
    net::Response response = json_text_reply(200, std::move(history->text));
    if (history->left_out > 0) {
        response.headers.set("X-Comfyd-Left-Out", std::to_string(history->left_out));
    }
    co_await send(call, std::move(response));
}

net::Response refusal(const char* text) {
    return json_reply(400, json::object{{"error", text}});
}

struct JobsQuery {
    jobs::ListQuery list;
    bool by_duration = false;
    bool ascending = false;
    std::optional<std::size_t> limit;
    std::size_t offset = 0;
};

// nullptr, or what is wrong.
const char* decode_states(std::string_view text, std::vector<jobs::State>& states) {
    while (!text.empty()) {
        const auto comma = std::min(text.find(','), text.size());
        const std::string_view word = trim(text.substr(0, comma), " ");
        text.remove_prefix(std::min(comma + 1, text.size()));
        if (word == "pending") {
            states.push_back(jobs::State::queued);
            states.push_back(jobs::State::retry_waiting);
        } else if (word == "in_progress") {
            states.push_back(jobs::State::running);
        } else if (word == "completed") {
            states.push_back(jobs::State::completed);
        } else if (word == "failed") {
            states.push_back(jobs::State::failed);
            states.push_back(jobs::State::expired);
        } else if (word == "cancelled") {
            states.push_back(jobs::State::cancelled);
        } else if (!word.empty()) {
            return "Invalid status value(s)";
        }
    }
    return nullptr;
}

const char* decode_jobs_query(const Call& call, JobsQuery& into) {
    if (const char* wrong = decode_states(call.query_value("status"), into.list.states)) {
        return wrong;
    }
    into.list.workflow_id = std::string(call.query_value("workflow_id"));
    const std::string_view sort = call.query_value("sort_by");
    if (!sort.empty() && sort != "created_at" && sort != "execution_duration") {
        return "sort_by must be one of: ['created_at', 'execution_duration']";
    }
    into.by_duration = sort == "execution_duration";
    const std::string_view order = call.query_value("sort_order");
    if (!order.empty() && order != "asc" && order != "desc") {
        return "sort_order must be 'asc' or 'desc'";
    }
    into.ascending = order == "asc";
    if (has_query(call, "limit")) {
        const auto limit = to_int(call.query_value("limit"));
        if (!limit) {
            return "limit must be an integer";
        }
        if (*limit <= 0) {
            return "limit must be a positive integer";
        }
        into.limit = static_cast<std::size_t>(*limit);
    }
    if (has_query(call, "offset")) {
        const auto offset = to_int(call.query_value("offset"));
        if (!offset) {
            return "offset must be an integer";
        }
        into.offset = static_cast<std::size_t>(std::max<std::int64_t>(*offset, 0));
    }
    return nullptr;
}

void sort_jobs(std::vector<jobs::Job>& jobs, const JobsQuery& query) {
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

// How many there are in all: exact when everything was read, else by the ledger's counters.
Task<std::size_t> total_of(Context& context, const JobsQuery& query, const Listing& listing) {
    if (listing.complete) {
        co_return listing.jobs.size();
    }
    auto counts = co_await context.services.jobs.counts(query.list.tenant);
    std::uint64_t total = 0;
    for (int state = 0; counts && state < 7; ++state) {
        const auto known = static_cast<jobs::State>(state);
        const auto& wanted = query.list.states;
        if (wanted.empty() || std::find(wanted.begin(), wanted.end(), known) != wanted.end()) {
            total += counts->of(known);
        }
    }
    co_return std::max(static_cast<std::size_t>(total), listing.jobs.size());
}

}  // namespace

Task<> get_history(Call& call, Context& context) {
    const auto number = [&call](std::string_view name) {
        return has_query(call, name) ? to_int(call.query_value(name))
                                     : std::optional<std::int64_t>();
    };
    const auto max_items = number("max_items");
    const auto offset = number("offset");
    if ((has_query(call, "max_items") && !max_items) || (has_query(call, "offset") && !offset)) {
        co_await send(call, trouble());
        co_return;
    }
    auto jobs = co_await history_window(context, call.caller.tenant, max_items, offset);
    if (!jobs) {
        co_await send(call, encode_native_error(jobs.error()));
        co_return;
    }
    co_await answer_history(call, context, std::move(*jobs));
}

Task<> get_history_of(Call& call, Context& context) {
    auto found = co_await find_jobs(context, call.caller.tenant, call.path_parameters.at(0));
    if (!found) {
        co_await send(call, encode_native_error(found.error()));
        co_return;
    }
    auto hidden = co_await hidden_of(context, call.caller.tenant);
    if (!hidden) {
        co_await send(call, encode_native_error(hidden.error()));
        co_return;
    }
    std::erase_if(*found, [&hidden](const jobs::Job& job) {
        return !is_in_history(job) || hidden->contains(job.id);
    });
    co_await answer_history(call, context, std::move(*found));
}

Task<> post_history(Call& call, Context& context) {
    auto body = co_await read_json(call, context.services);
    if (!body) {
        co_await send(call, encode_native_error(body.error()));
        co_return;
    }
    const json::object wanted = body->is_object() ? body->get_object() : json::object();
    const json::value* clear = json::find(wanted, "clear");
    const std::string tenant = call.caller.tenant;
    Result<> done;
    if (clear != nullptr && clear->is_bool() && clear->get_bool()) {
        // Those that have not ended yet come into the history later; only the ended ones go.
        jobs::ListQuery query;
        query.tenant = tenant;
        query.states = ended_states();
        auto listing = co_await list_jobs(context, query, kHistoryMax, {});
        if (!listing) {
            co_await send(call, encode_native_error(listing.error()));
            co_return;
        }
        std::vector<JobId> ids;
        for (const jobs::Job& job : listing->jobs) {
            ids.push_back(job.id);
        }
        done = co_await context.parts.pool.run([&context, tenant, ids = std::move(ids)] {
            return context.hidden.add(tenant, ids);
        });
    }
    auto names = comfy::texts_of(wanted, "delete");
    names.resize(std::min(names.size(), kIdsMax));
    for (const std::string& name : names) {
        auto found = co_await find_jobs(context, tenant, name);
        std::vector<JobId> ids;
        for (std::size_t i = 0; found && i < found->size(); ++i) {
            ids.push_back((*found)[i].id);
        }
        if (!ids.empty()) {
            done = co_await context.parts.pool.run([&context, tenant, ids = std::move(ids)] {
                return context.hidden.add(tenant, ids);
            });
        }
    }
    co_await send(call, done ? empty_reply(200) : encode_native_error(done.error()));
}

Task<> get_jobs(Call& call, Context& context) {
    JobsQuery query;
    if (const char* wrong = decode_jobs_query(call, query)) {
        co_await send(call, refusal(wrong));
        co_return;
    }
    query.list.tenant = call.caller.tenant;
    auto hidden = co_await hidden_of(context, call.caller.tenant);
    if (!hidden) {
        co_await send(call, encode_native_error(hidden.error()));
        co_return;
    }
    // The usual order is that of the ledger: no more is read than shown.
    const bool in_order = !query.by_duration && !query.ascending && query.limit;
    const std::size_t count =
        in_order ? std::min(query.offset + *query.limit + 1, kHistoryMax) : kHistoryMax;
    auto listing = co_await list_jobs(context, query.list, count, std::move(*hidden));
    if (!listing) {
        co_await send(call, encode_native_error(listing.error()));
        co_return;
    }
    const auto total = co_await total_of(context, query, *listing);
    sort_jobs(listing->jobs, query);
    json::array shown;
    const std::size_t end =
        std::min(listing->jobs.size(), query.offset + query.limit.value_or(kHistoryMax));
    for (std::size_t i = query.offset; i < end; ++i) {
        shown.push_back(job_summary(listing->jobs[i]));
    }
    json::object body;
    body["jobs"] = std::move(shown);
    body["pagination"] = {
        {"offset", query.offset},
        {"limit", query.limit ? json::value(*query.limit) : json::value()},
        {"total", total},
        {"has_more", end < listing->jobs.size()},
    };
    co_await send(call, json_reply(200, body));
}

Task<> get_job(Call& call, Context& context) {
    const std::string tenant = call.caller.tenant;
    auto found = co_await find_jobs(context, tenant, call.path_parameters.at(0));
    if (!found) {
        co_await send(call, encode_native_error(found.error()));
        co_return;
    }
    if (found->empty()) {
        co_await send(call, json_reply(404, json::object{{"error", "Job not found"}}));
        co_return;
    }
    const jobs::Job& job = found->back();
    auto spec = co_await context.services.jobs.spec(tenant, job.id);
    if (!spec) {
        co_await send(call, encode_native_error(spec.error()));
        co_return;
    }
    auto notes = co_await notes_of(context, job.id);
    co_await send(call, json_reply(200, job_details(job, *spec, notes)));
}

}  // namespace comfyd::api::native
