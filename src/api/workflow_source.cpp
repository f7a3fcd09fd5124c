#include "api/workflow_source.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "admission/workflow_file.hpp"
#include "workflow/files/embedded.hpp"
#include "workflow/files/file_inputs.hpp"
#include "workflow/graph/node_links.hpp"

namespace comfyd::api {
namespace {

constexpr std::string_view kWorkflow = "workflow";
constexpr std::size_t kSourceShown = 64;

// What a request whose body is a file says in its query.
constexpr std::array<std::string_view, 11> kQueryOptions{
    "priority",
    "timeout",
    "deadline",
    "max_attempts",
    "max_retries",
    "callback_url",
    "webhook_url",
    "pool",
    "auto_fix",
    "check_urls",
    "plan",
};

std::string_view text_of(const json::value& value) {
    const boost::json::string& text = value.get_string();
    return {text.data(), text.size()};
}

Error in_field(Error error, std::string_view field) {
    if (!error.details.contains("field")) {
        error.details["field"] = boost::json::string_view(field.data(), field.size());
    }
    return error;
}

tl::unexpected<Error> wrong(std::string_view field, std::string message) {
    return fail(in_field(Error(Code::invalid_argument, std::move(message)), field));
}

// Values that are no JSON are texts.
json::value value_of(std::string_view text) {
    auto parsed = json::parse(text);
    return parsed ? std::move(*parsed)
                  : json::value(boost::json::string_view(text.data(), text.size()));
}

Result<json::value> workflow_part(const net::FormPart& part) {
    if (workflow::is_file_source(part.data)) {
        return json::value(part.data);
    }
    auto workflow = workflow::read_workflow_file(part.data);
    if (!workflow) {
        return fail(in_field(std::move(workflow.error()), kWorkflow));
    }
    return json::value(std::move(*workflow));
}

Result<json::object> parse_form(std::string_view content_type, const std::string& bytes) {
    auto parts = net::parse_multipart(content_type, bytes);
    if (!parts) {
        return fail(std::move(parts.error()));
    }
    json::object body;
    for (const net::FormPart& part : *parts) {
        if (part.name != kWorkflow) {
            body[part.name] = value_of(part.data);
            continue;
        }
        auto workflow = workflow_part(part);
        if (!workflow) {
            return fail(std::move(workflow.error()));
        }
        body[kWorkflow] = std::move(*workflow);
    }
    return body;
}

Task<Result<json::object>> read_form(Call& call, const Services& services) {
    auto bytes = co_await call.exchange.read_body(admission::kWorkflowFileBytesMax);
    if (!bytes) {
        co_return fail(std::move(bytes.error()));
    }
    co_return parse_form(call.request.headers.get("Content-Type"), *bytes);
}

}  // namespace

bool is_workflow_file(const net::Request& request) {
    const std::string_view type = request.headers.get("Content-Type");
    return std::ranges::any_of(
        std::array<std::string_view, 2>{"image/", "application/octet-stream"},
        [type](std::string_view known) {
            return net::equal_ignoring_case(type.substr(0, known.size()), known);
        }
    );
}

Task<Result<json::object>> read_workflow_body(Call& call, const Services& services) {
    if (is_workflow_file(call.request)) {
        auto bytes = co_await call.exchange.read_body(admission::kWorkflowFileBytesMax);
        if (!bytes) {
            co_return fail(std::move(bytes.error()));
        }
        auto workflow = workflow::read_workflow_file(*bytes);
        if (!workflow) {
            co_return fail(std::move(workflow.error()));
        }
        json::object body;
        for (const auto& [name, value] : call.query) {
            if (std::ranges::find(kQueryOptions, name) != kQueryOptions.end()) {
                body[name] = value_of(value);
            }
        }
        body[kWorkflow] = std::move(*workflow);
        co_return body;
    }
    constexpr std::string_view kForm = "multipart/form-data";
    const std::string_view type = call.request.headers.get("Content-Type");
    if (net::equal_ignoring_case(type.substr(0, kForm.size()), kForm)) {
        auto body = co_await read_form(call, services);
        co_return body;
    }
    auto body = co_await read_json_body(call, services);
    co_return body;
}

Result<> take_workflow(
    json::object& body, std::string_view member, std::string_view field, Submission& into
) {
    json::value* given = body.if_contains(member);
    const std::string name = "'" + std::string(field) + "'";
    if (given == nullptr || given->is_null()) {
        return wrong(
            field,
            name +
                " is missing: send a workflow in ComfyUI's API format or as the editor saves it, "
                "or say where it is to be had (https://…, data:…, asset:<id>)"
        );
    }
    if (given->is_string()) {
        if (!workflow::is_file_source(text_of(*given))) {
            return wrong(
                field,
                name +
                    " is a text, but neither https://…, data:<type>;base64,…, asset:<id> nor "
                    "blake3:<hash>: '" +
                    std::string(text_of(*given).substr(0, kSourceShown)) + "'"
            );
        }
        into.workflow_source = text_of(*given);
        into.workflow_field = field;
        return {};
    }
    if (!given->is_object()) {
        return wrong(field, name + " must be an object, or a text that says where it is to be had");
    }
    auto workflow = workflow::merge_links(std::move(given->get_object()));
    if (!workflow) {
        return fail(std::move(workflow.error()));
    }
    json::put(into.workflow, std::move(*workflow));
    return {};
}

Task<Result<>> open_workflow(
    const Call& call, const Services& services, json::object& body, std::string member
) {
    const json::value* given = body.if_contains(member);
    if (given == nullptr || !given->is_string() || !workflow::is_file_source(text_of(*given))) {
        co_return Result<>();
    }
    auto workflow = co_await admission::fetch_workflow(
        services, call.caller.tenant, std::string(text_of(*given)), member
    );
    if (!workflow) {
        co_return fail(std::move(workflow.error()));
    }
    body[member] = std::move(*workflow);
    co_return Result<>();
}

}  // namespace comfyd::api
