// Versions and labels of named workflows.
#include <algorithm>
#include <utility>

#include "api/dialects/named/named_parts.hpp"

namespace comfyd::api::named {
namespace {

Task<Result<json::object>> list_versions_of(
    const Services& services, jobs::WorkflowName of, Paging paging
) {
    std::optional<int> before;
    if (!paging.cursor.empty()) {
        const auto cursor = json::parse(paging.cursor);
        if (!cursor || !cursor->is_int64() || cursor->get_int64() < 1) {
            co_return fail(
                Code::invalid_argument, "cursor: must be the next_cursor of an earlier page"
            );
        }
        before = static_cast<int>(std::min<std::int64_t>(cursor->get_int64(), 1 << 30));
    }
    auto workflow = co_await services.workflows.find_workflow(of);
    if (!workflow) {
        co_return fail(std::move(workflow.error()));
    }
    if (!*workflow) {
        co_return fail(no_workflow(of.name));
    }
    auto page = co_await services.workflows.list_workflow_versions(of, before, paging.limit);
    if (!page) {
        co_return fail(std::move(page.error()));
    }
    json::array listed;
    Loaded loaded{std::move(**workflow), {}};
    for (jobs::WorkflowVersion& version : page->versions) {
        loaded.version = std::move(version);
        auto encoded = encode_version(loaded, false);
        if (!encoded) {
            co_return fail(std::move(encoded.error()));
        }
        listed.emplace_back(std::move(*encoded));
    }
    json::object body;
    body["count"] = listed.size();
    body["versions"] = std::move(listed);
    body["next_cursor"] =
        page->next_cursor ? json::value(std::to_string(*page->next_cursor)) : json::value(nullptr);
    co_return body;
}

// The version in the path.
Result<Choice> decode_version(const Call& call) {
    auto choice = decode_choice(call);
    if (!choice) {
        return choice;
    }
    const auto named = parse_reference(choice->name + "@" + call.path_parameters.at(1));
    if (!named || !named->version) {
        return fail(Code::not_found, "there is no such version: versions are numbered from 1");
    }
    return *named;
}

Result<int> decode_label_target(const json::object& body) {
    const auto version = json::find_int(body, "version");
    if (!version) {
        return fail(version.error());
    }
    if (!*version || **version < 1 || **version > (1 << 30)) {
        return fail(
            Code::invalid_argument,
            "'version' must be the number of a version",
            {{"field", "version"}}
        );
    }
    return static_cast<int>(**version);
}

Task<Result<jobs::NamedWorkflow>> move_label(
    Call& call, const Services& services, Choice choice, std::optional<int> version
) {
    const std::string& label = call.path_parameters.at(1);
    if (!is_label(label)) {
        co_return fail(
            Code::invalid_argument,
            "a label is [a-z0-9][a-z0-9._-]{0,63}, and not a number",
            json::object{{"field", "label"}}
        );
    }
    auto expected = co_await read_condition(call, services, name_of(call, choice));
    if (!expected) {
        co_return fail(std::move(expected.error()));
    }
    auto changed = co_await services.workflows.set_workflow_label(
        name_of(call, choice), label, version, std::move(*expected)
    );
    co_return changed;
}

}  // namespace

Task<> list_versions(Call& call, const Services& services) {
    const auto choice = decode_choice(call);
    auto paging = choice ? decode_paging(call) : fail(choice.error());
    if (!paging) {
        co_await refuse(call, services, std::move(paging.error()));
        co_return;
    }
    auto body = co_await list_versions_of(services, name_of(call, *choice), std::move(*paging));
    if (!body) {
        co_await refuse(call, services, std::move(body.error()));
        co_return;
    }
    co_await answer(call, json_response(200, *body));
}

Task<> get_version(Call& call, const Services& services) {
    auto choice = decode_version(call);
    if (!choice) {
        co_await refuse(call, services, std::move(choice.error()));
        co_return;
    }
    auto loaded = co_await load(services, call.caller.tenant, std::move(*choice));
    const auto body = loaded ? encode_version(*loaded, true) : fail(loaded.error());
    if (!body) {
        co_await refuse(call, services, body.error());
        co_return;
    }
    co_await answer(call, json_response(200, *body));
}

Task<> remove_version(Call& call, const Services& services) {
    const auto choice = decode_version(call);
    if (!choice) {
        co_await refuse(call, services, choice.error());
        co_return;
    }
    auto expected = co_await read_condition(call, services, name_of(call, *choice));
    if (!expected) {
        co_await refuse(call, services, std::move(expected.error()));
        co_return;
    }
    auto left = co_await services.workflows.remove_workflow_version(
        name_of(call, *choice), *choice->version, std::move(*expected)
    );
    if (!left) {
        co_await refuse(call, services, std::move(left.error()));
        co_return;
    }
    net::Response response;
    response.status = 204;
    response.headers.set("ETag", etag_of(*left));
    co_await answer(call, std::move(response));
}

Task<> set_label(Call& call, const Services& services) {
    const auto choice = decode_choice(call);
    if (!choice) {
        co_await refuse(call, services, choice.error());
        co_return;
    }
    auto body = co_await read_json_body(call, services);
    const auto version = body ? decode_label_target(*body) : fail(body.error());
    if (!version) {
        co_await refuse(call, services, version.error());
        co_return;
    }
    auto changed = co_await move_label(call, services, *choice, *version);
    if (!changed) {
        co_await refuse(call, services, std::move(changed.error()));
        co_return;
    }
    co_await answer(call, tagged(200, encode_workflow(*changed), *changed));
}

Task<> remove_label(Call& call, const Services& services) {
    const auto choice = decode_choice(call);
    if (!choice) {
        co_await refuse(call, services, choice.error());
        co_return;
    }
    auto changed = co_await move_label(call, services, *choice, std::nullopt);
    if (!changed) {
        co_await refuse(call, services, std::move(changed.error()));
        co_return;
    }
    co_await answer(call, tagged(200, encode_workflow(*changed), *changed));
}

}  // namespace comfyd::api::named
