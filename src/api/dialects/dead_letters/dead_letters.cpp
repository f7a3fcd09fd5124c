// Dead letters: jobs that have failed, why, and what to do with them (docs/failures.md). Under the
// paths of the Comfy API v2, in its shapes.
#include "api/dialects/dead_letters/dead_letters.hpp"

#include <charconv>
#include <utility>

#include "api/dialects/comfy_v2/comfy_v2_parts.hpp"
#include "api/dialects/comfy_v2/comfy_v2_shapes.hpp"
#include "api/dialects/dialects.hpp"
#include "api/own_ids.hpp"
#include "api/submission.hpp"
#include "api/wrong_field.hpp"

namespace comfyd::api {
namespace dead_letters {
namespace {

using v2::answer;
using v2::refuse;

constexpr int kLimitDefault = 50;
constexpr int kLimitMax = 200;
// Failed jobs that one request looks at, whether they match or not.
constexpr int kPage = 200;
constexpr int kPagesMax = 10;
constexpr std::string_view kDialect = "comfy-v2";

struct Filter {
    std::optional<std::string> tenant;   // nullopt: all
    std::optional<jobs::Cause> cause{};  // nullopt: any
    std::optional<Time> before{};        // created earlier
    std::optional<JobId> cursor{};
};

// The caller's tenant, or all of them for an operator who asks for it.
Result<std::optional<std::string>> wanted_tenant(const Call& call) {
    if (call.query_value("all_tenants") != "true") {
        return std::optional(call.caller.tenant);
    }
    if (!call.caller.may(auth::Scope::admin)) {
        return fail(Code::forbidden, "'all_tenants' is for operators");
    }
    return std::nullopt;
}

Result<std::optional<jobs::Cause>> parse_cause(std::string_view text) {
    if (text.empty()) {
        return std::nullopt;
    }
    const auto cause = jobs::parse_cause(text);
    if (!cause) {
        std::string known;
        for (int i = 0; i < jobs::kCauses; ++i) {
            known += (i == 0 ? "" : ", ") + std::string(to_string(static_cast<jobs::Cause>(i)));
        }
        return wrong("cause", "'cause' must be one of " + known);
    }
    return cause;
}

Result<int> parse_limit(std::string_view text) {
    int limit = kLimitDefault;
    if (text.empty()) {
        return limit;
    }
    const auto read = std::from_chars(text.data(), text.data() + text.size(), limit);
    if (read.ec != std::errc() || read.ptr != text.data() + text.size() || limit < 1 ||
        limit > kLimitMax) {
        return wrong("limit", "'limit' must be from 1 to " + std::to_string(kLimitMax));
    }
    return limit;
}

Result<Filter> decode_filter(const Call& call, std::string_view cause_text) {
    auto tenant = wanted_tenant(call);
    if (!tenant) {
        return fail(std::move(tenant.error()));
    }
    const auto cause = parse_cause(cause_text);
    if (!cause) {
        return fail(cause.error());
    }
    Filter filter{.tenant = std::move(*tenant), .cause = *cause};
    if (const std::string_view text = call.query_value("cursor"); !text.empty()) {
        filter.cursor = JobId::parse(text);
        if (!filter.cursor) {
            return wrong("cursor", "'cursor' must be the next_cursor of an earlier page");
        }
    }
    return filter;
}

bool matches(const jobs::Job& job, const Filter& filter) {
    return !filter.cause || (job.failure && jobs::cause_of(*job.failure) == *filter.cause);
}

// Failed jobs that match, the newest first. A few pages are looked at; where there may be more,
// next_cursor says where to go on.
Task<Result<jobs::Page>> find(const Services& services, Filter filter, int limit) {
    jobs::Page found;
    for (int page = 0; page < kPagesMax; ++page) {
        jobs::ListQuery query;
        query.tenant = filter.tenant;
        query.states = {jobs::State::failed};
        query.created_before = filter.before;
        query.cursor = filter.cursor;
        query.limit = filter.cause ? kPage : limit;
        auto listed = co_await services.jobs.list(std::move(query));
        if (!listed) {
            co_return fail(std::move(listed.error()));
        }
        for (jobs::Job& job : listed->jobs) {
            filter.cursor = job.id;
            if (!matches(job, filter)) {
                continue;
            }
            found.jobs.push_back(std::move(job));
            if (found.jobs.size() == static_cast<std::size_t>(limit)) {
                const bool is_last =
                    !listed->next_cursor && *filter.cursor == listed->jobs.back().id;
                found.next_cursor = is_last ? std::nullopt : filter.cursor;
                co_return found;
            }
        }
        found.next_cursor = listed->next_cursor;
        if (!listed->next_cursor) {
            break;
        }
    }
    co_return found;
}

json::object encode(const jobs::Job& job, const Services& services) {
    const jobs::Failure failure = job.failure.value_or(jobs::Failure{});
    json::object body = v2::encode_failure(failure);
    body.erase("traceback");
    body["id"] = job.id.to_string();
    body["tenant"] = job.tenant;
    body["workflow_id"] =
        job.workflow_id.empty() ? json::value(nullptr) : json::value(job.workflow_id);
    body["created_at"] = to_rfc3339(job.created_at);
    body["failed_at"] = to_rfc3339(job.finished_at.value_or(job.created_at));
    body["worker"] = job.worker.empty() ? json::value(nullptr) : json::value(job.worker);
    body["attempt"] = job.attempt;
    body["outputs"] = job.outputs.size();
    body["job"] = v2::job_path(job.id, services.options);
    return body;
}

Task<> list(Call& call, const Services& services) {
    auto filter = decode_filter(call, call.query_value("cause"));
    const auto limit = parse_limit(call.query_value("limit"));
    if (!filter || !limit) {
        co_await refuse(call, filter ? limit.error() : filter.error());
        co_return;
    }
    auto page = co_await find(services, std::move(*filter), *limit);
    if (!page) {
        co_await refuse(call, std::move(page.error()));
        co_return;
    }
    json::array listed;
    for (const jobs::Job& job : page->jobs) {
        listed.emplace_back(encode(job, services));
    }
    json::object body{{"dead_letters", std::move(listed)}};
    body["next_cursor"] =
        page->next_cursor ? json::value(page->next_cursor->to_string()) : json::value(nullptr);
    co_await answer(call, 200, std::move(body));
}

// What the path names, where it is the caller's and has failed.
Task<Result<jobs::Job>> find_named(const Call& call, const Services& services) {
    const auto id = co_await find_job_id(call, services, call.path_parameters.at(0));
    if (!id) {
        co_return fail(id.error());
    }
    auto view = co_await services.jobs.get(call.caller.tenant, *id);
    if (!view) {
        co_return fail(std::move(view.error()));
    }
    if (view->job.state != jobs::State::failed) {
        co_return fail(
            Code::not_found, "job " + id->to_string() + " is no dead letter: it has not failed"
        );
    }
    co_return std::move(view->job);
}

Task<Result<json::object>> describe(const Call& call, const Services& services) {
    auto job = co_await find_named(call, services);
    if (!job) {
        co_return fail(std::move(job.error()));
    }
    auto attempts = co_await services.jobs.attempts(*job);
    if (!attempts) {
        co_return fail(std::move(attempts.error()));
    }
    auto spec = co_await services.jobs.spec(call.caller.tenant, job->id);
    if (!spec) {
        co_return fail(std::move(spec.error()));
    }
    auto workflow = json::parse(spec->workflow);
    json::array tried;
    for (const jobs::PastAttempt& attempt : *attempts) {
        tried.emplace_back(attempt.to_json());
    }
    json::array outputs;
    for (const jobs::Output& output : job->outputs) {
        outputs.emplace_back(v2::encode_output(output, job->id, {call.request, services}));
    }
    json::object body = encode(*job, services);
    body["traceback"] = job->failure && !job->failure->traceback.empty()
                            ? json::value(job->failure->traceback)
                            : json::value(nullptr);
    body["details"] = job->failure ? job->failure->details : json::object();
    body["attempts"] = std::move(tried);
    body["outputs"] = std::move(outputs);
    body["workflow"] = workflow ? std::move(*workflow) : json::value(nullptr);
    co_return body;
}

Task<> show(Call& call, const Services& services) {
    auto body = co_await describe(call, services);
    if (!body) {
        co_await refuse(call, std::move(body.error()));
        co_return;
    }
    co_await answer(call, 200, std::move(*body));
}

// What was asked for then, without what the API that it came by kept for itself.
jobs::Spec again(const jobs::Spec& then, const jobs::Job& failed) {
    jobs::Spec spec;
    spec.dialect = kDialect;
    spec.extra_data = then.extra_data;
    spec.priority = then.priority;
    spec.batch = then.batch;
    spec.fairness_key = then.fairness_key;
    spec.timeout = then.timeout;
    spec.max_attempts = then.max_attempts;
    spec.metadata = then.metadata;
    spec.workflow_id = then.workflow_id;
    spec.webhook = then.webhook;
    for (const char* kept : {"keep", "output_config"}) {
        if (const json::value* value = json::find(then.dialect_data, kept)) {
            spec.dialect_data[kept] = *value;
        }
    }
    spec.dialect_data["retried_from"] = failed.id.to_string();
    return spec;
}

// The body may set anew what a submission may: "inputs" by "node.input", and the rest as there.
Task<Result<Submission>> decode_retry(Call& call, const Services& services) {
    auto job = co_await find_named(call, services);
    if (!job) {
        co_return fail(std::move(job.error()));
    }
    auto body = co_await read_json_body(call, services);
    if (!body) {
        co_return fail(std::move(body.error()));
    }
    auto then = co_await services.jobs.spec(call.caller.tenant, job->id);
    if (!then) {
        co_return fail(std::move(then.error()));
    }
    auto workflow = json::parse_object(then->workflow);
    if (!workflow) {
        co_return fail(std::move(workflow.error()));
    }
    const auto inputs = json::find_object(*body, "inputs");
    if (!inputs) {
        co_return fail(inputs.error());
    }
    json::object parameters = *inputs == nullptr ? json::object() : **inputs;
    for (const auto& member : machine_members(then->requirement.machine())) {
        if (!body->contains(member.key())) {
            (*body)[member.key()] = member.value();
        }
    }
    jobs::Spec spec = again(*then, *job);
    if (auto done = decode_common(call, services, *body, spec); !done) {
        co_return fail(std::move(done.error()));
    }
    co_return Submission{
        .spec = std::move(spec),
        .workflow = std::move(*workflow),
        .parameters = std::move(parameters),
        .targets = then->targets.empty() ? std::nullopt : std::optional(then->targets),
    };
}

Task<> retry(Call& call, const Services& services) {
    auto submission = co_await decode_retry(call, services);
    if (!submission) {
        co_await refuse(call, std::move(submission.error()));
        co_return;
    }
    auto submitted = co_await submit(call, services, std::move(*submission));
    if (!submitted) {
        co_await refuse(call, std::move(submitted.error()));
        co_return;
    }
    co_await answer(call, 201, v2::encode_job(submitted->view, {call.request, services}));
}

// False: it stays, because something needs it still.
Task<Result<bool>> remove(const Services& services, std::string tenant, JobId id) {
    auto removed = co_await services.jobs.remove(tenant, id);
    if (!removed) {
        co_return fail(std::move(removed.error()));
    }
    auto left = co_await services.jobs.get(std::move(tenant), id);
    if (!left && left.error().code != Code::not_found) {
        co_return fail(std::move(left.error()));
    }
    co_return !left.has_value();
}

Task<> purge_one(Call& call, const Services& services) {
    auto job = co_await find_named(call, services);
    if (!job) {
        co_await refuse(call, std::move(job.error()));
        co_return;
    }
    auto removed = co_await remove(services, call.caller.tenant, job->id);
    if (!removed) {
        co_await refuse(call, std::move(removed.error()));
        co_return;
    }
    if (!*removed) {
        co_await refuse(
            call,
            Error(
                Code::conflict,
                "job " + job->id.to_string() +
                    " is needed still: its webhook is to be delivered, or its outputs are in use"
            )
        );
        co_return;
    }
    co_await answer(call, 200, json::object{{"purged", 1}});
}

Task<Result<Filter>> decode_purge(Call& call, const Services& services) {
    auto body = co_await read_json_body(call, services);
    if (!body) {
        co_return fail(std::move(body.error()));
    }
    const auto cause = json::find_string(*body, "cause");
    const auto before = json::find_string(*body, "created_before");
    if (!cause || !before) {
        co_return fail(cause ? before.error() : cause.error());
    }
    auto filter = decode_filter(call, cause->value_or(""));
    if (filter && *before) {
        filter->before = parse_rfc3339(**before);
        if (!filter->before) {
            co_return wrong(
                "created_before",
                "'created_before' must be a time such as 2030-01-31T12:00:00Z (RFC 3339)"
            );
        }
    }
    co_return filter;
}

// Some at a time: whoever wants all asks until "more" is false.
Task<> purge_all(Call& call, const Services& services) {
    auto filter = co_await decode_purge(call, services);
    if (!filter) {
        co_await refuse(call, std::move(filter.error()));
        co_return;
    }
    auto page = co_await find(services, std::move(*filter), kLimitMax);
    if (!page) {
        co_await refuse(call, std::move(page.error()));
        co_return;
    }
    int purged = 0;
    for (const jobs::Job& job : page->jobs) {
        auto removed = co_await remove(services, job.tenant, job.id);
        if (!removed) {
            co_await refuse(call, std::move(removed.error()));
            co_return;
        }
        purged += *removed ? 1 : 0;
    }
    const bool more = page->next_cursor.has_value() && purged > 0;
    co_await answer(call, 200, json::object{{"purged", purged}, {"more", more}});
}

}  // namespace
}  // namespace dead_letters

void add_dead_letters(Router& router, const Services& services) {
    using net::Method;
    using Function = Task<> (*)(Call&, const Services&);
    const auto add = [&](Method method, const char* pattern, const char* operation, Function call) {
        router.add(Route{
            method,
            pattern,
            [&services, call](Call& of) { return call(of, services); },
            v2::encode_error,
            Access::jobs,
            dead_letters::operation(operation),
        });
    };
    add(Method::get, "/api/v2/dead-letters", "listDeadLetters", dead_letters::list);
    add(Method::post, "/api/v2/dead-letters/purge", "purgeDeadLetters", dead_letters::purge_all);
    add(Method::get, "/api/v2/dead-letters/{id}", "getDeadLetter", dead_letters::show);
    add(Method::post, "/api/v2/dead-letters/{id}/retry", "retryDeadLetter", dead_letters::retry);
    add(Method::del, "/api/v2/dead-letters/{id}", "purgeDeadLetter", dead_letters::purge_one);
    router.add_schemas(dead_letters::schemas());
}

}  // namespace comfyd::api
