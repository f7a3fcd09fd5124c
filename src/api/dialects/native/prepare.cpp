#include "api/dialects/native/prepare.hpp"

#include <algorithm>
#include <utility>

#include "api/inputs.hpp"
#include "api/named_files.hpp"
#include "api/own_checks.hpp"
#include "api/submission.hpp"
#include "api/workflow_source.hpp"
#include "comfy/members.hpp"
#include "workflow/check.hpp"
#include "workflow/embedded.hpp"
#include "workflow/node_replacement.hpp"
#include "workflow/private_names.hpp"

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

// What a worker says counts for more: it knows all that we know and the checks of its classes.
void take_verdict(workflow::PromptVerdict heard, workflow::PromptVerdict& verdict) {
    verdict.accepted = heard.accepted;
    verdict.error = std::move(heard.error);
    verdict.node_errors = std::move(heard.node_errors);
    std::erase_if(verdict.outputs_to_execute, [&](const std::string& output) {
        return std::ranges::count(heard.outputs_to_execute, output) == 0;
    });
}

}  // namespace

Task<Result<tl::expected<json::value, json::object>>> read_body(
    Call& call, const Services& services
) {
    using Body = tl::expected<json::value, json::object>;
    const bool is_file = is_workflow_file(call.request);
    auto text = co_await call.exchange.read_body(
        is_file ? kWorkflowFileBytesMax : services.options.json_body_bytes_max
    );
    if (!text) {
        co_return fail(std::move(text.error()));
    }
    if (is_file) {
        auto prompt = workflow::read_workflow_file(*text);
        if (!prompt) {
            co_return Body(tl::unexpected(prompt_error(prompt.error())));
        }
        co_return Body(json::object{{"prompt", std::move(*prompt)}});
    }
    auto body = workflow::read_prompt_body(*text);
    if (body && body->is_object()) {
        auto opened = co_await open_workflow(call, services, body->get_object(), "prompt");
        if (!opened) {
            co_return Body(tl::unexpected(prompt_error(opened.error())));
        }
    }
    co_return Body(std::move(body));
}

const json::object& own_options(const json::object& extra_data) {
    static const json::object kNothing;
    const json::object* own = comfy::object_of(extra_data, "comfyd");
    return own == nullptr ? kNothing : *own;
}

tl::expected<workflow::PromptRequest, json::object> read_request(
    json::value body, const Services& services
) {
    json::object* members = body.if_object();
    const json::object* graph = members != nullptr ? editor_format_in(*members) : nullptr;
    const auto catalogue = services.catalogue();
    if (graph != nullptr && catalogue->knows_workers()) {
        auto converted = convert_editor_format(*graph, *catalogue, services.clock.now());
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

Task<Result<Judgement>> prepare(
    const Call& call, Context& context, workflow::PromptRequest& request
) {
    const Services& services = context.services;
    const auto catalogue = services.catalogue();
    workflow::apply_replacements(request.prompt, catalogue->replacements(), *catalogue);
    workflow::wrap_file_lists(request.prompt, *catalogue);
    workflow::forget_folders(request.prompt);
    auto files = co_await find_named_files(services, call.caller.tenant, request.prompt, catalogue);
    if (!files) {
        co_return fail(std::move(files.error()));
    }
    const auto sources = workflow::find_file_sources(request.prompt, *catalogue);
    auto pool = decode_pool(call, services, own_options(request.extra_data));
    if (!pool) {
        co_return fail(std::move(pool.error()));
    }
    Judgement judgement = judge(
        *catalogue,
        request.prompt,
        request.targets ? &*request.targets : nullptr,
        files->missing,
        security_of(services.options, call.caller.tenant),
        *pool
    );
    if (!judgement.verdict.accepted) {
        co_return judgement;
    }
    if (!files->foreign.empty()) {
        co_return refuse_for(
            files->foreign, "prompt_outputs_failed_validation", "Prompt outputs failed validation"
        );
    }
    place_own_files(request.prompt, files->own);
    if (!sources.empty()) {
        auto fetched = co_await fetch_inputs(call, services, sources);
        if (!fetched) {
            co_return fail(std::move(fetched.error()));
        }
        if (!fetched->issues.empty()) {
            co_return refuse_for(
                fetched->issues, "prompt_inputs_not_available", "Files of the prompt cannot be had"
            );
        }
        for (std::size_t i = 0; i < sources.size(); ++i) {
            workflow::place_file(request.prompt, sources[i], std::move(fetched->references[i]));
        }
    }
    auto heard = co_await ask_own_checks(
        services,
        *catalogue,
        request.prompt,
        request.targets.value_or(std::vector<std::string>()),
        judgement.requirement
    );
    if (heard) {
        take_verdict(std::move(*heard), judgement.verdict);
    }
    co_return judgement;
}

}  // namespace comfyd::api::native
