// GET /v2/stats: what ended jobs took and cost over a range of time, in all and by tenant,
// workflow, worker or hour. Read from sums that are kept by the hour: no job is looked at.
#include "jobs/stats.hpp"

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "api/dialects/dialects.hpp"
#include "api/dialects/execution/execution.hpp"
#include "api/dialects/literal.hpp"
#include "api/dialects/workflows/workflows.hpp"

namespace comfyd::api {
namespace {

constexpr std::array<std::pair<std::string_view, std::chrono::hours>, 4> kRanges{{
    {"1h", std::chrono::hours(1)},
    {"24h", std::chrono::hours(24)},
    {"7d", std::chrono::hours(24 * 7)},
    {"30d", std::chrono::hours(24 * 30)},
}};
constexpr std::string_view kRangeDefault = "24h";

Result<Millis> decode_range(std::string_view text) {
    for (const auto& [name, length] : kRanges) {
        if (name == text) {
            return length;
        }
    }
    return fail(
        Code::invalid_argument,
        "'range' must be 1h, 24h, 7d or 30d, not '" + std::string(text) + "'",
        {{"field", "range"}}
    );
}

Result<jobs::StatsGroup> decode_group(std::string_view text) {
    if (text.empty()) {
        return jobs::StatsGroup::none;
    }
    if (const auto group = jobs::parse_stats_group(text)) {
        return *group;
    }
    return fail(
        Code::invalid_argument,
        "'group_by' must be tenant, workflow, worker or hour, not '" + std::string(text) + "'",
        {{"field", "group_by"}}
    );
}

// Operators see all tenants, or the one they ask for; others see their own.
Result<std::optional<std::string>> decode_tenant(const Call& call) {
    const std::string asked(call.query_value("tenant"));
    if (call.caller.may(auth::Scope::admin)) {
        return asked.empty() ? std::nullopt : std::optional(asked);
    }
    if (!asked.empty() && asked != call.caller.tenant) {
        return fail(
            Code::forbidden,
            "only an operator's key may read the figures of another tenant",
            {{"field", "tenant"}}
        );
    }
    return std::optional(call.caller.tenant);
}

Result<jobs::StatsQuery> decode_query(const Call& call, std::string_view range, Time now) {
    jobs::StatsQuery query;
    const auto length = decode_range(range);
    if (!length) {
        return fail(length.error());
    }
    const auto group = decode_group(call.query_value("group_by"));
    if (!group) {
        return fail(group.error());
    }
    auto tenant = decode_tenant(call);
    if (!tenant) {
        return fail(std::move(tenant.error()));
    }
    query.tenant = std::move(*tenant);
    query.group_by = *group;
    query.from = jobs::hour_of(now - *length);
    query.to = now;
    return query;
}

double seconds(Millis duration) {
    return std::chrono::duration<double>(duration).count();
}

json::object encode_durations(const jobs::Durations& durations) {
    const auto at = [&durations](double part) {
        const auto duration = durations.percentile(part);
        return duration ? json::value(seconds(*duration)) : json::value(nullptr);
    };
    return {{"p50", at(0.5)}, {"p95", at(0.95)}};
}

json::object encode_totals(const jobs::Totals& totals) {
    const double gpu_seconds = seconds(totals.gpu);
    json::object body;
    body["jobs"] = json::object{
        {"total", totals.jobs()},
        {"completed", totals.completed},
        {"failed", totals.failed},
        {"cancelled", totals.cancelled},
        {"expired", totals.expired},
    };
    body["retries"] = totals.retries;
    body["queue_time"] = encode_durations(totals.queued);
    body["run_time"] = encode_durations(totals.ran);
    body["gpu_seconds"] = gpu_seconds;
    body["inference_seconds"] = seconds(totals.inference);
    body["model_load_seconds"] = seconds(totals.model_load);
    body["model_loads"] = totals.model_loads;
    body["images"] = totals.images;
    body["images_per_gpu_second"] =
        gpu_seconds > 0 ? json::value(static_cast<double>(totals.images) / gpu_seconds)
                        : json::value(nullptr);
    body["cost_usd"] = execution::rounded_usd(totals.cost_usd);
    body["cost_per_image_usd"] =
        totals.images > 0
            ? json::value(
                  execution::rounded_usd(totals.cost_usd / static_cast<double>(totals.images))
              )
            : json::value(nullptr);
    return body;
}

json::object encode_stats(
    const jobs::Stats& stats, const jobs::StatsQuery& query, std::string_view range
) {
    json::array groups;
    for (const auto& [key, totals] : stats.groups) {
        json::object group{{"key", key}};
        for (auto& member : encode_totals(totals)) {
            group[member.key()] = std::move(member.value());
        }
        groups.emplace_back(std::move(group));
    }
    const bool grouped = query.group_by != jobs::StatsGroup::none;
    json::object body;
    body["range"] = range;
    body["from"] = to_rfc3339(query.from);
    body["to"] = to_rfc3339(query.to);
    body["tenant"] = query.tenant ? json::value(*query.tenant) : json::value(nullptr);
    body["group_by"] = grouped ? json::value(to_string(query.group_by)) : json::value(nullptr);
    body["totals"] = encode_totals(stats.totals);
    body["groups"] = std::move(groups);
    body["groups_cut"] = stats.is_cut;
    return body;
}

net::Response refusal(const Call& call, const Services& services, const Error& error) {
    return workflows::error_response(
        error, services.clock.now(), workflows::kV2, call.request.path
    );
}

Task<> show_stats(Call& call, const Services& services) {
    const std::string asked(call.query_value("range"));
    const std::string range = asked.empty() ? std::string(kRangeDefault) : asked;
    const auto query = decode_query(call, range, services.clock.now());
    if (!query) {
        co_await send(call, refusal(call, services, query.error()));
        co_return;
    }
    auto stats = co_await services.jobs.stats(*query);
    if (!stats) {
        co_await send(call, refusal(call, services, stats.error()));
        co_return;
    }
    net::Response response = json_response(200, encode_stats(*stats, *query, range));
    workflows::add_version_headers(response.headers, workflows::kV2, call.request.path);
    co_await send(call, std::move(response));
}

json::object operation() {
    return literal(R"json({
        "operationId": "getStats",
        "tags": ["stats"],
        "summary": "What ended jobs took and cost over a range of time",
        "description": "Counts, waiting and run times, GPU-seconds, pictures, model loads and estimated cost, in all and by group. The figures are kept by the hour, so the range begins with a whole hour ('from'). A key sees its own tenant, an operator's key all of them.",
        "parameters": [
            {"name": "range", "in": "query", "schema": {"type": "string", "enum": ["1h", "24h", "7d", "30d"], "default": "24h"}},
            {"name": "group_by", "in": "query", "schema": {"type": "string", "enum": ["tenant", "workflow", "worker", "hour"]}},
            {"name": "tenant", "in": "query", "description": "Only this one; for operators.", "schema": {"type": "string"}}
        ],
        "responses": {"200": {
            "description": "The figures.",
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Stats"}}}
        }}
    })json");
}

json::object schemas() {
    return literal(R"json({
        "StatsDurations": {
            "type": "object",
            "description": "Seconds, from a histogram whose buckets grow by 41 %; null where there is nothing to tell.",
            "required": ["p50", "p95"],
            "properties": {
                "p50": {"type": "number", "nullable": true},
                "p95": {"type": "number", "nullable": true}}
        },
        "StatsTotals": {
            "type": "object",
            "required": ["jobs", "retries", "queue_time", "run_time", "gpu_seconds", "inference_seconds", "model_load_seconds", "model_loads", "images", "images_per_gpu_second", "cost_usd", "cost_per_image_usd"],
            "properties": {
                "jobs": {"type": "object", "description": "That ended, by how.", "properties": {
                    "total": {"type": "integer"}, "completed": {"type": "integer"}, "failed": {"type": "integer"},
                    "cancelled": {"type": "integer"}, "expired": {"type": "integer"}}},
                "retries": {"type": "integer", "description": "Attempts that were followed by another one."},
                "queue_time": {"$ref": "#/components/schemas/StatsDurations"},
                "run_time": {"$ref": "#/components/schemas/StatsDurations"},
                "gpu_seconds": {"type": "number", "description": "Of all attempts."},
                "inference_seconds": {"type": "number"},
                "model_load_seconds": {"type": "number"},
                "model_loads": {"type": "integer", "description": "Nodes that had to load a model."},
                "images": {"type": "integer"},
                "images_per_gpu_second": {"type": "number", "nullable": true},
                "cost_usd": {"type": "number"},
                "cost_per_image_usd": {"type": "number", "nullable": true, "description": "null where there are no pictures."}}
        },
        "Stats": {
            "type": "object",
            "required": ["range", "from", "to", "tenant", "group_by", "totals", "groups", "groups_cut"],
            "properties": {
                "range": {"type": "string"},
                "from": {"type": "string", "format": "date-time"},
                "to": {"type": "string", "format": "date-time"},
                "tenant": {"type": "string", "nullable": true, "description": "null: all of them."},
                "group_by": {"type": "string", "nullable": true},
                "totals": {"$ref": "#/components/schemas/StatsTotals"},
                "groups": {"type": "array", "description": "Hours in their order, others with the most GPU-seconds first; at most 1000.",
                    "items": {"allOf": [{"$ref": "#/components/schemas/StatsTotals"}, {"type": "object", "properties": {
                        "key": {"type": "string", "description": "The tenant, the workflow's id (empty: none was given; \"(others)\": beyond 200 in an hour), the worker (empty: it never had one) or the beginning of the hour."}}}]}},
                "groups_cut": {"type": "boolean", "description": "There were more groups; the totals count them."}}
        }
    })json");
}

}  // namespace

void add_stats(Router& router, const Services& services) {
    Route route;
    route.pattern = "/v2/stats";
    route.handler = [&services](Call& call) { return show_stats(call, services); };
    route.encode_error = [&services](const Error& error) {
        return workflows::error_response(error, services.clock.now(), workflows::kV2, "");
    };
    route.access = Access::jobs;
    route.operation = operation();
    router.add(std::move(route));
    router.add_schemas(schemas());
}

}  // namespace comfyd::api
