// Running a named workflow.
#include <algorithm>
#include <array>
#include <utility>

#include <boost/json/monotonic_resource.hpp>

#include "api/dialects/named/named_parts.hpp"
#include "api/dialects/workflows/workflows.hpp"
#include "workflow/parameters/parameters_schema.hpp"

namespace comfyd::api::named {
namespace {

using workflows::kV2;

constexpr auto kOptions = std::to_array<std::string_view>({
    "params",         "input_params",  "priority",         "class",
    "fairness_key",   "timeout",       "deadline",         "max_attempts",
    "pool",           "region",        "gpu_requirements", "gpu_memory_fraction",
    "max_retries",    "metadata",      "callback_url",     "webhook_url",
    "webhook_config", "output_config", "execution_config", "auto_fix",
    "reuse",
});

// Nothing at all is as good as no parameters.
Task<Result<json::object>> read_run_body(Call& call, const Services& services) {
    const net::Headers& headers = call.request.headers;
    const std::string_view length = headers.get("Content-Length");
    if (!headers.contains("Transfer-Encoding") && (length.empty() || length == "0")) {
        co_return json::object();
    }
    auto body = co_await read_json_body(call, services);
    co_return body;
}

// A parameter beside "params" would be lost without a word.
Result<> check_members(const json::object& body) {
    for (const auto& member : body) {
        const std::string_view name(member.key().data(), member.key().size());
        if (std::ranges::find(kOptions, name) == kOptions.end()) {
            const std::string shown(name.substr(0, 100));
            return fail(
                Code::invalid_argument,
                "'" + shown + "' is no option of a run: values of parameters stand in 'params'",
                {{"field", shown}}
            );
        }
    }
    return {};
}

Result<json::object> take_values(const json::object& body) {
    if (auto checked = check_members(body); !checked) {
        return fail(std::move(checked.error()));
    }
    const auto params = json::find_object(body, "params");
    if (!params) {
        return fail(params.error());
    }
    const auto inputs = json::find_object(body, "input_params");
    if (!inputs) {
        return fail(inputs.error());
    }
    if (*params != nullptr && *inputs != nullptr) {
        return fail(
            Code::invalid_argument,
            "give either 'params' or 'input_params', not both",
            {{"field", "params"}}
        );
    }
    const json::object* given = *params != nullptr ? *params : *inputs;
    return given != nullptr ? *given : json::object();
}

Result<workflows::Decoded> decode_run(
    const Call& call, const Services& services, const json::object& body, const Choice& choice
) {
    auto decoded = workflows::decode_options(body, kV2);
    if (!decoded) {
        return decoded;
    }
    Submission& submission = decoded->submission;
    if (auto common = decode_common(call, services, decoded->common, submission.spec); !common) {
        return fail(std::move(common.error()));
    }
    submission.request["run"] = choice.name;
    submission.request["version"] = choice.version.value_or(0);
    submission.request["label"] = choice.label;
    submission.request["body"] = body;
    return decoded;
}

}  // namespace

Task<Result<Loaded>> load(const Services& services, std::string tenant, Choice choice) {
    const jobs::WorkflowName of{std::move(tenant), choice.name};
    auto workflow = co_await services.workflows.find_workflow(of);
    if (!workflow) {
        co_return fail(std::move(workflow.error()));
    }
    if (!*workflow) {
        co_return fail(no_workflow(choice.name));
    }
    int number = choice.version.value_or(default_version(**workflow));
    if (!choice.label.empty()) {
        const auto label = (*workflow)->labels.find(choice.label);
        if (label == (*workflow)->labels.end()) {
            co_return fail(
                Code::not_found,
                "the workflow '" + choice.name + "' has no label '" + choice.label + "'"
            );
        }
        number = label->second;
    }
    auto version = co_await services.workflows.find_workflow_version(of, number);
    if (!version) {
        co_return fail(std::move(version.error()));
    }
    if (!*version) {
        co_return fail(
            Code::not_found,
            "the workflow '" + choice.name + "' has no version " + std::to_string(number) +
                "; the latest is " + std::to_string((*workflow)->latest)
        );
    }
    co_return Loaded{std::move(**workflow), std::move(**version)};
}

Task<Result<>> fill(
    const Services& services,
    std::string tenant,
    Choice choice,
    json::object values,
    Submission& into
) {
    auto loaded = co_await load(services, std::move(tenant), std::move(choice));
    if (!loaded) {
        co_return fail(std::move(loaded.error()));
    }
    const jobs::WorkflowVersion& version = loaded->version;
    const auto catalogue = services.catalogue();
    // Without classes the editor's format cannot be read; what was made of it then will do.
    const bool is_prompt = !version.prompt.empty() && !catalogue->knows_workers();
    const auto storage = boost::json::make_shared_resource<boost::json::monotonic_resource>(
        version.workflow.size() + version.prompt.size() + 1024
    );
    auto workflow = json::parse_object(is_prompt ? version.prompt : version.workflow, storage);
    auto declared = json::parse_object(version.parameters, storage);
    auto prompt = version.prompt.empty() || is_prompt ? Result<json::object>(json::object())
                                                      : json::parse_object(version.prompt, storage);
    if (!workflow || !declared || !prompt) {
        co_return fail(
            Code::internal, "the stored workflow '" + loaded->workflow.name + "' is damaged"
        );
    }
    const auto schema = workflow::ParameterSchema::make(
        *declared, prompt->empty() ? *workflow : *prompt, *catalogue
    );
    if (!schema) {
        co_return fail(schema.error());
    }
    auto accepted = schema->accept(values);
    if (!accepted) {
        co_return fail(std::move(accepted.error()));
    }
    json::object wrapped(storage);
    wrapped["prompt"] = std::move(*workflow);
    wrapped["parameters"] = std::move(*declared);
    into.workflow = std::move(wrapped);
    into.parameters = std::move(*accepted);
    into.spec.workflow_id = loaded->workflow.name;
    into.spec.dialect_data["workflow_version"] = version.version;
    co_return Result<>();
}

Task<> run(Call& call, const Services& services) {
    const auto choice = decode_choice(call);
    if (!choice) {
        co_await refuse(call, services, choice.error());
        co_return;
    }
    auto body = co_await read_run_body(call, services);
    auto values = body ? take_values(*body) : fail(body.error());
    auto decoded = values ? decode_run(call, services, *body, *choice) : fail(values.error());
    if (!decoded) {
        co_await refuse(call, services, std::move(decoded.error()));
        co_return;
    }
    auto filled = co_await fill(
        services, call.caller.tenant, *choice, std::move(*values), decoded->submission
    );
    if (!filled) {
        co_await refuse(call, services, std::move(filled.error()));
        co_return;
    }
    co_await workflows::submit_and_answer(call, services, kV2, std::move(decoded->submission));
}

}  // namespace comfyd::api::named
