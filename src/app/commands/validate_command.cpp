#include "app/commands/validate_command.hpp"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <utility>

#include "app/commands/cli.hpp"
#include "app/commands/convert_command.hpp"
#include "app/commands/object_info.hpp"
#include "app/commands/server_address.hpp"
#include "app/config/config.hpp"
#include "workflow/convert/convert.hpp"
#include "workflow/parameters/parameters.hpp"
#include "workflow/rules/autofix.hpp"
#include "workflow/rules/check.hpp"

namespace comfyd::app {
namespace {

using workflow::Catalogue;
using workflow::Issue;
using workflow::Severity;
using workflow::Validation;

// Of no classes where none were named.
Result<Catalogue> load_catalogue(const ValidateFlags& flags) {
    if (flags.object_info.empty() && flags.url.empty()) {
        return Catalogue({});
    }
    ObjectInfoSource source{flags.object_info, flags.url, flags.key};
    complete_address(source.url, source.key);
    auto object_info = load_object_info(source);
    if (!object_info) {
        return fail(std::move(object_info.error()));
    }
    const std::string& name = flags.object_info.empty() ? flags.url : flags.object_info;
    auto classes = workflow::NodeClasses::from_object_info(*object_info);
    if (!classes) {
        return fail(Code::invalid_argument, name + ": " + classes.error().message);
    }
    return Catalogue({{name, std::move(*classes)}});
}

Result<workflow::ValidationOptions> load_options(const std::string& file) {
    ConfigSources sources;
    if (!file.empty()) {
        sources.file = file;
    }
    sources.environment = [](const std::string& name) -> std::optional<std::string> {
        const char* value = std::getenv(name.c_str());
        return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
    };
    auto config = load_config(sources);
    if (!config) {
        return fail(std::move(config.error()));
    }
    workflow::ValidationOptions options;
    options.security = security_policy(*config);
    options.plan.gpu_second_usd = config->gpu_second_usd;
    options.plan.seconds_per_unit = config->gpu_seconds_per_unit;
    options.plan.model_sizes = workflow::known_sizes(config->models);
    options.gpu_memory_mb = static_cast<std::uint64_t>(config->gpu_memory_mb);
    return options;
}

Result<> set_parameters(json::object& graph, const std::vector<std::string>& parameters) {
    for (const std::string& parameter : parameters) {
        const auto equals = parameter.find('=');
        if (equals == std::string::npos) {
            return fail(
                Code::invalid_argument, "--param needs NAME=VALUE, not '" + parameter + "'"
            );
        }
        auto bound = workflow::bind_parameter(
            graph, parameter.substr(0, equals), parameter.substr(equals + 1)
        );
        if (!bound) {
            return fail(std::move(bound.error()));
        }
    }
    return {};
}

std::string counted(std::size_t count, const char* word) {
    return std::to_string(count) + " " + word + (count == 1 ? "" : "s");
}

std::string describe_stage(const workflow::StageReport& stage) {
    std::string text(to_string(stage.stage));
    text.resize(14, ' ');
    if (!stage.skipped.empty()) {
        return text + "not judged: " + stage.skipped + "\n";
    }
    text += stage.issues.empty() ? "ok\n" : counted(stage.issues.size(), "finding") + "\n";
    for (const Issue& issue : stage.issues) {
        text += "  " + std::string(to_string(issue.severity)) + " " + std::string(issue.code) +
                ": " + issue.message + "\n";
    }
    return text;
}

std::string decimal(double number) {
    char text[64];
    std::snprintf(text, sizeof text, "%.6g", number);
    return text;
}

std::string describe_plan(const workflow::Plan& plan) {
    std::string text = "plan\n";
    for (const workflow::ModelNeed& model : plan.models) {
        text += "  " + std::string(to_string(model.kind)) + " " + model.name + ", about " +
                std::to_string(model.estimated_bytes / 1'000'000) + " MB\n";
    }
    text += "  GPU memory about " + std::to_string(plan.vram_bytes / 1'000'000) + " MB\n";
    text += "  work " + decimal(plan.work_units) + " units, about " + decimal(plan.run_seconds) +
            " s and " + decimal(plan.cost_usd) + " USD, with loading " +
            decimal(plan.run_seconds + plan.load_seconds) + " s\n";
    text += "  " + counted(plan.stages.size(), "stage") + " one after another\n";
    text += "  batch key   " + plan.batch_key + "\n  fingerprint " + plan.fingerprint + "\n";
    return text;
}

// Without node classes little can be judged, so that comes first, and only findings after it.
std::string describe_verdict(
    const ValidateFlags& flags, const Validation& validation, bool classes_known
) {
    const std::string nodes = counted(static_cast<std::size_t>(validation.node_count), "node");
    if (classes_known) {
        return flags.file + ": " + (validation.valid() ? "valid, " : "not valid, ") + nodes + "\n";
    }
    return flags.file + ": " + (validation.valid() ? "no fault found in " : "not valid, ") + nodes +
           ", but node classes, inputs and values were not checked.\n"
           "Name a server by --url (comfyd or ComfyUI), or a file with its answer of /object_info "
           "by --object-info.\n";
}

std::string describe(
    const ValidateFlags& flags, const workflow::Fixed& fixed, const Catalogue& catalogue
) {
    const Validation& validation = fixed.validation;
    const bool classes_known = catalogue.knows_workers();
    std::string text = describe_verdict(flags, validation, classes_known);
    for (const workflow::Fix& fix : fixed.fixes) {
        text += "put right: " + fix.message + "\n";
    }
    for (const workflow::StageReport& stage : validation.stages) {
        text += classes_known || !stage.issues.empty() ? describe_stage(stage) : "";
    }
    if (flags.plan && validation.plan) {
        text += describe_plan(*validation.plan);
    }
    return text;
}

json::object to_json(
    const ValidateFlags& flags, const workflow::Fixed& fixed, const json::object& graph
) {
    json::object made = fixed.validation.to_json();
    json::array warnings;
    for (const workflow::Fix& fix : fixed.fixes) {
        warnings.emplace_back(fix.to_json());
    }
    made["warnings"] = std::move(warnings);
    if (!fixed.fixes.empty()) {
        made["workflow"] = graph;
    }
    if (flags.plan) {
        made["plan"] = fixed.validation.plan
                           ? json::value(fixed.validation.plan->to_json(workflow::Graph(graph)))
                           : json::value(nullptr);
    }
    return made;
}

}  // namespace

Result<ValidateOutcome> validate_file(const ValidateFlags& flags) {
    auto graph = load_workflow_file(flags.file);
    if (!graph) {
        return fail(std::move(graph.error()));
    }
    auto catalogue = load_catalogue(flags);
    if (!catalogue) {
        return fail(std::move(catalogue.error()));
    }
    auto options = load_options(flags.config);
    if (!options) {
        return fail(std::move(options.error()));
    }
    if (workflow::is_ui_format(*graph) && catalogue->knows_workers()) {
        graph = workflow::convert_ui(*graph, *catalogue);
        if (!graph) {
            return fail(std::move(graph.error()));
        }
    }
    if (auto set = set_parameters(*graph, flags.parameters); !set) {
        return fail(std::move(set.error()));
    }
    workflow::Fixed fixed;
    if (flags.fix) {
        fixed = workflow::validate_and_fix(*graph, *catalogue, *options);
    } else {
        fixed.validation = workflow::validate(*graph, *catalogue, *options);
    }
    ValidateOutcome outcome;
    outcome.valid = fixed.validation.valid();
    outcome.text = flags.json ? json::serialize(to_json(flags, fixed, *graph)) + "\n"
                              : describe(flags, fixed, *catalogue);
    return outcome;
}

int run_validate(const ValidateFlags& flags) {
    const auto outcome = validate_file(flags);
    if (!outcome) {
        std::fprintf(stderr, "comfyd: %s\n", outcome.error().message.c_str());
        const bool unreachable = outcome.error().code == Code::connection_failed ||
                                 outcome.error().code == Code::request_timeout;
        return unreachable ? kExitUnavailable : kExitUsage;
    }
    std::fputs(outcome->text.c_str(), stdout);
    return outcome->valid ? kExitOk : kExitUsage;
}

}  // namespace comfyd::app
