#include "api/dialects/native/request.hpp"

#include <utility>

#include "admission/form.hpp"
#include "admission/workflow_file.hpp"
#include "api/dialects/native/names.hpp"
#include "api/workflow_source.hpp"
#include "comfy/jobs_list.hpp"
#include "comfy/members.hpp"
#include "workflow/files/embedded.hpp"
#include "workflow/rules/check.hpp"

namespace comfyd::api::native {
namespace {

// nullptr: there is nothing in the editor's save format.
const json::object* editor_format_in(const json::object& body) {
    const json::value* prompt = body.if_contains("prompt");
    if (prompt == nullptr) {
        return workflow::is_ui_format(body) ? &body : nullptr;
    }
    return prompt->is_object() && workflow::is_ui_format(prompt->get_object())
               ? &prompt->get_object()
               : nullptr;
}

json::object prompt_error(const Error& error) {
    return workflow::make_prompt_error("invalid_prompt", error.message, "", error.details);
}

}  // namespace

std::uint64_t prompt_bytes_max(const Call& call, const Services& services) {
    return is_workflow_file(call.request) ? admission::kWorkflowFileBytesMax
                                          : services.options.json_body_bytes_max;
}

Task<tl::expected<json::value, json::object>> decode_body(
    Call& call, const Services& services, std::string text
) {
    if (is_workflow_file(call.request)) {
        auto prompt = workflow::read_workflow_file(text);
        if (!prompt) {
            co_return tl::unexpected(prompt_error(prompt.error()));
        }
        co_return json::object{{"prompt", std::move(*prompt)}};
    }
    auto body = workflow::read_prompt_body(text);
    if (body && body->is_object()) {
        auto opened = co_await open_workflow(call, services, body->get_object(), "prompt");
        if (!opened) {
            co_return tl::unexpected(prompt_error(opened.error()));
        }
    }
    co_return body;
}

const json::object& own_options(const json::object& extra_data) {
    static const json::object kNothing;
    const json::object* own = comfy::object_of(extra_data, "comfyd");
    return own == nullptr ? kNothing : *own;
}

tl::expected<workflow::PromptRequest, json::object> read_request(
    json::value body, const workflow::Catalogue& catalogue, Time now
) {
    json::object* members = body.if_object();
    const json::object* graph = members != nullptr ? editor_format_in(*members) : nullptr;
    if (graph != nullptr && catalogue.knows_workers()) {
        auto converted = admission::convert_editor_format(*graph, catalogue, now);
        if (!converted) {
            return tl::unexpected(workflow::make_prompt_error(
                "invalid_prompt",
                "Cannot turn the editor's workflow into a prompt",
                converted.error().message
            ));
        }
        (*members)["prompt"] = std::move(*converted);
    }
    return workflow::parse_prompt_request(std::move(body));
}

admission::Submission make_submission(
    const Call& call,
    workflow::PromptRequest request,
    std::shared_ptr<const workflow::Catalogue> catalogue
) {
    admission::Submission made{.spec = {}, .workflow = std::move(request.prompt)};
    made.manner = admission::Manner::comfyui;
    made.targets = std::move(request.targets);
    made.catalogue = std::move(catalogue);
    jobs::Spec& spec = made.spec;
    spec.tenant = call.caller.tenant;
    spec.dialect = kDialect;
    spec.extra_data = std::move(request.extra_data);
    spec.extra_data.erase("client_id");
    if (const auto source = call.request.headers.get("Comfy-Usage-Source"); !source.empty()) {
        spec.extra_data["comfy_usage_source"] = std::string(source);
    }
    spec.workflow_id = comfy::workflow_id_of(spec.extra_data);
    if (!request.client_id.empty()) {
        spec.dialect_data["client_id"] = request.client_id;
    }
    if (request.prompt_id) {
        spec.dialect_data["prompt_id"] = *request.prompt_id;
    }
    return made;
}

}  // namespace comfyd::api::native
