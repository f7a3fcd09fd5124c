#include "api/dialects/named/named.hpp"

#include <algorithm>
#include <utility>

#include "api/dialects/named/named_parts.hpp"
#include "api/dialects/workflows/workflows.hpp"
#include "api/workflow_source.hpp"
#include "net/static_files.hpp"

namespace comfyd::api {
namespace named {
namespace {

using workflows::kV2;

constexpr std::string_view kPrefix = "/v2/workflows/";

Task<Result<jobs::WorkflowSaved>> save(Call& call, const Services& services, Choice choice) {
    auto body = co_await read_workflow_body(call, services);
    if (!body) {
        co_return fail(std::move(body.error()));
    }
    auto opened = co_await open_workflow(call, services, *body, "workflow");
    if (!opened) {
        co_return fail(std::move(opened.error()));
    }
    const auto catalogue = services.catalogue();
    auto version =
        make_version(std::move(*body), *catalogue, *services.rules.security_of(call.caller.tenant));
    if (!version) {
        co_return fail(std::move(version.error()));
    }
    auto expected = co_await read_condition(call, services, name_of(call, choice));
    if (!expected) {
        co_return fail(std::move(expected.error()));
    }
    jobs::WorkflowSave request{name_of(call, choice), std::move(*version), std::move(*expected)};
    auto saved = co_await services.workflows.save_workflow(std::move(request));
    co_return saved;
}

// The workflow and one version of it, as GET and PUT show them.
Result<json::object> encode_whole(const Loaded& loaded) {
    auto version = encode_version(loaded, true);
    if (!version) {
        return version;
    }
    json::object body = encode_workflow(loaded.workflow);
    for (const char* member :
         {"version", "description", "node_count", "parameters", "workflow", "prompt"}) {
        if (version->contains(member)) {
            body[member] = std::move(version->at(member));
        }
    }
    return body;
}

Task<> put(Call& call, const Services& services) {
    auto choice = decode_choice(call);
    if (!choice) {
        // Here the name is what was sent, not what was looked for.
        Error error = std::move(choice.error());
        error.code = Code::invalid_argument;
        co_await refuse(call, services, std::move(error));
        co_return;
    }
    auto saved = co_await save(call, services, *choice);
    if (!saved) {
        co_await refuse(call, services, std::move(saved.error()));
        co_return;
    }
    choice->label.clear();
    choice->version = saved->version;
    auto loaded = co_await load(services, call.caller.tenant, *choice);
    if (loaded) {
        loaded->workflow = std::move(saved->workflow);  // another may have changed it by now
    }
    const auto body = loaded ? encode_whole(*loaded) : fail(loaded.error());
    if (!body) {
        co_await refuse(call, services, body.error());
        co_return;
    }
    net::Response response = tagged(saved->created ? 201 : 200, *body, loaded->workflow);
    response.headers.set(
        "Location",
        std::string(kPrefix) + choice->name + "/versions/" + std::to_string(saved->version)
    );
    co_await answer(call, std::move(response));
}

// What the path and the query choose.
Task<Result<Loaded>> load_chosen(const Call& call, const Services& services) {
    auto choice = decode_choice(call);
    if (!choice) {
        co_return fail(std::move(choice.error()));
    }
    auto loaded = co_await load(services, call.caller.tenant, std::move(*choice));
    co_return loaded;
}

Task<> get(Call& call, const Services& services) {
    auto loaded = co_await load_chosen(call, services);
    const auto body = loaded ? encode_whole(*loaded) : fail(loaded.error());
    if (!body) {
        co_await refuse(call, services, body.error());
        co_return;
    }
    net::Response response = tagged(200, *body, loaded->workflow);
    if (net::matches_etag(call.request.headers.get("If-None-Match"), etag_of(loaded->workflow))) {
        response.status = 304;
        response.body.clear();
    }
    co_await answer(call, std::move(response));
}

Task<> get_schema(Call& call, const Services& services) {
    auto loaded = co_await load_chosen(call, services);
    const auto catalogue = services.catalogue();
    auto schema = loaded ? encode_schema(*loaded, *catalogue) : fail(loaded.error());
    if (!schema) {
        co_await refuse(call, services, std::move(schema.error()));
        co_return;
    }
    json::object body;
    body["$schema"] = "https://json-schema.org/draft/2020-12/schema";
    body["title"] = loaded->workflow.name;
    body["description"] = loaded->version.description;
    for (auto& member : *schema) {
        body[member.key()] = std::move(member.value());
    }
    body["x-version"] = loaded->version.version;
    net::Response response = json_response(200, body);
    co_await answer(call, std::move(response));
}

Task<> remove(Call& call, const Services& services) {
    const auto choice = decode_choice(call);
    if (!choice) {
        co_await refuse(call, services, choice.error());
        co_return;
    }
    auto expected = co_await read_condition(call, services, name_of(call, *choice));
    Result<> removed;
    if (expected) {
        removed = co_await services.workflows.remove_workflow(
            name_of(call, *choice), std::move(*expected)
        );
    } else {
        removed = fail(std::move(expected.error()));
    }
    if (!removed) {
        co_await refuse(call, services, std::move(removed.error()));
        co_return;
    }
    net::Response response;
    response.status = 204;
    co_await answer(call, std::move(response));
}

Task<> list(Call& call, const Services& services) {
    auto paging = decode_paging(call);
    if (!paging) {
        co_await refuse(call, services, std::move(paging.error()));
        co_return;
    }
    auto page = co_await services.workflows.list_workflows(
        call.caller.tenant, std::move(paging->cursor), paging->limit
    );
    if (!page) {
        co_await refuse(call, services, std::move(page.error()));
        co_return;
    }
    json::array listed;
    for (const jobs::NamedWorkflow& workflow : page->workflows) {
        listed.emplace_back(encode_workflow(workflow));
    }
    json::object body;
    body["count"] = listed.size();
    body["workflows"] = std::move(listed);
    body["next_cursor"] =
        page->next_cursor ? json::value(*page->next_cursor) : json::value(nullptr);
    co_await answer(call, json_response(200, body));
}

}  // namespace

net::Response refusal(const Error& error, const Services& services, const Call& call) {
    net::Response response =
        workflows::error_response(error, services.clock.now(), kV2, call.request.path);
    // A condition of the request that does not hold, as HTTP has it.
    if (error.code == Code::conflict && error.details.contains("current_tag")) {
        response.status = 412;
    }
    return response;
}

Task<> refuse(Call& call, const Services& services, Error error) {
    return send(call, refusal(error, services, call));
}

Task<> answer(Call& call, net::Response response) {
    workflows::add_version_headers(response.headers, kV2, call.request.path);
    return send(call, std::move(response));
}

std::string etag_of(const jobs::NamedWorkflow& workflow) {
    return "\"" + workflow.tag + "\"";
}

net::Response tagged(int status, const json::value& body, const jobs::NamedWorkflow& workflow) {
    net::Response response = json_response(status, body);
    response.headers.set("ETag", etag_of(workflow));
    return response;
}

jobs::WorkflowName name_of(const Call& call, const Choice& choice) {
    return {call.caller.tenant, choice.name};
}

Task<Result<std::optional<std::string>>> read_condition(
    const Call& call, const Services& services, jobs::WorkflowName of
) {
    const std::string_view match = call.request.headers.get("If-Match");
    const std::string_view none_match = call.request.headers.get("If-None-Match");
    if (match.empty() && none_match.empty()) {
        co_return std::nullopt;
    }
    auto found = co_await services.workflows.find_workflow(of);
    if (!found) {
        co_return fail(std::move(found.error()));
    }
    const std::string tag = *found ? (*found)->tag : std::string();
    const bool holds =
        (match.empty() || (*found && net::matches_etag(match, etag_of(**found)))) &&
        (none_match.empty() || !*found || !net::matches_etag(none_match, etag_of(**found)));
    if (!holds) {
        co_return fail(
            Code::conflict,
            *found ? "the workflow '" + of.name + "' is there in another state than the request " +
                         "says: read it and change it again"
                   : "there is no workflow named '" + of.name + "' yet",
            json::object{{"current_tag", tag}}
        );
    }
    co_return std::optional(tag);
}

Result<Paging> decode_paging(const Call& call) {
    // The same rules as for executions, whose cursors are ids.
    Paging paging;
    paging.cursor = call.query_value("cursor");
    if (const auto text = call.query_value("limit"); !text.empty()) {
        const auto limit = json::parse(text);
        if (!limit || !limit->is_int64() || limit->get_int64() < 1 ||
            limit->get_int64() > jobs::kWorkflowPageMax) {
            return fail(
                Code::invalid_argument,
                "'limit' must be a whole number from 1 to 1000",
                {{"field", "limit"}}
            );
        }
        paging.limit = static_cast<int>(limit->get_int64());
    }
    return paging;
}

}  // namespace named

void add_named_workflows(Router& router, const Services& services) {
    using namespace named;
    using Function = Task<> (*)(Call&, const Services&);
    const auto add =
        [&](net::Method method, std::string_view path, Function function, json::object operation) {
            Route route;
            route.method = method;
            route.pattern = "/v2/workflows" + std::string(path);
            route.handler = [&services, function](Call& call) { return function(call, services); };
            route.encode_error = [&services](const Error& error) {
                return workflows::error_response(error, services.clock.now(), workflows::kV2, "");
            };
            route.operation = std::move(operation);
            route.access = function == run ? Access::jobs : Access::workflows;
            router.add(std::move(route));
        };
    using net::Method;
    add(Method::get, "", list, operation_list());
    add(Method::put, "/{name}", put, operation_put());
    add(Method::get, "/{name}", get, operation_get());
    add(Method::del, "/{name}", remove, operation_delete());
    add(Method::get, "/{name}/versions", list_versions, operation_versions());
    add(Method::get, "/{name}/versions/{version}", get_version, operation_version());
    add(Method::del, "/{name}/versions/{version}", remove_version, operation_delete_version());
    add(Method::put, "/{name}/labels/{label}", set_label, operation_set_label());
    add(Method::del, "/{name}/labels/{label}", remove_label, operation_delete_label());
    add(Method::get, "/{name}/schema", get_schema, operation_schema());
    add(Method::post, "/{name}/run", run, operation_run());
    router.add_schemas(schemas());
}

}  // namespace comfyd::api
