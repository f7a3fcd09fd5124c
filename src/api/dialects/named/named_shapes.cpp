// Decoding and encoding of named workflows.
#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "admission/form.hpp"
#include "api/dialects/named/named.hpp"
#include "api/wrong_field.hpp"
#include "base/crypto.hpp"
#include "workflow/convert/convert.hpp"
#include "workflow/graph/node_links.hpp"
#include "workflow/parameters/parameters.hpp"
#include "workflow/parameters/parameters_schema.hpp"
#include "workflow/rules/check.hpp"

namespace comfyd::api::named {
namespace {

constexpr std::size_t kNameBytesMax = 64;
// Paths below /v2/workflows that are no names, and words kept free for others.
constexpr std::array<std::string_view, 11> kReserved{
    "batch",
    "convert",
    "execute",
    "execution",
    "executions",
    "labels",
    "plan",
    "run",
    "schema",
    "validate",
    "versions",
};

bool has_pattern(std::string_view text) {
    const auto is_plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
    return !text.empty() && text.size() <= kNameBytesMax && is_plain(text.front()) &&
           std::ranges::all_of(text, [&](char c) {
               return is_plain(c) || c == '.' || c == '_' || c == '-';
           });
}

std::optional<int> parse_version(std::string_view text) {
    int number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size() || number < 1) {
        return std::nullopt;
    }
    return number;
}

// What a PUT brings, before anything is made of it.
struct Draft {
    json::object workflow;  // unwrapped
    std::optional<json::object> declared{};
    std::string description{};
    bool check = true;
};

Result<Draft> decode_draft(json::object body) {
    Draft draft;
    const auto given = json::find_object(body, "workflow");
    if (!given) {
        return fail(given.error());
    }
    if (*given == nullptr) {
        return wrong("workflow", "'workflow' is missing: send a workflow in any format");
    }
    const auto parameters = json::find_object(body, "parameters");
    if (!parameters) {
        return fail(parameters.error());
    }
    if (*parameters != nullptr) {
        draft.declared = **parameters;
    }
    auto description = json::find_string(body, "description");
    if (!description) {
        return fail(std::move(description.error()));
    }
    draft.description = std::move(*description).value_or("");
    if (draft.description.size() > kDescriptionBytesMax) {
        return wrong(
            "description",
            "'description' may have at most " + std::to_string(kDescriptionBytesMax) + " bytes"
        );
    }
    const auto check = json::find_bool(body, "check");
    if (!check) {
        return fail(check.error());
    }
    draft.check = check->value_or(true);
    auto merged = workflow::merge_links(std::move(body.at("workflow").get_object()));
    if (!merged) {
        return fail(std::move(merged.error()));
    }
    const json::object* inner = workflow::declared_parameters(*merged);
    if (!draft.declared && inner != nullptr) {
        draft.declared = *inner;
    }
    draft.workflow = workflow::unwrap(*merged);
    return draft;
}

// Equal content is no new version, whatever the workers make of it meanwhile.
std::string hash_of(const Draft& draft) {
    json::object all;
    all["workflow"] = draft.workflow;
    all["description"] = draft.description;
    all["parameters"] = draft.declared ? json::value(*draft.declared) : json::value(nullptr);
    return to_hex(sha256(json::serialize_canonical(all)));
}

Result<json::object> to_graph(const Draft& draft, const workflow::Catalogue& catalogue) {
    if (!workflow::is_ui_format(draft.workflow)) {
        return draft.workflow;
    }
    if (!catalogue.knows_workers()) {
        return fail(
            Code::workflow_format_ui,
            "this is the editor's save format, which cannot be read before a worker has said which "
            "node classes there are: try again when one is up, or export the workflow with "
            "\"Export (API)\""
        );
    }
    return workflow::convert_ui(draft.workflow, catalogue);
}

// As submit() would, with the defaults of the parameters set.
Result<> check_graph(
    json::object graph,
    const json::object& declared,
    const workflow::Catalogue& catalogue,
    const workflow::SecurityPolicy& security
) {
    admission::settle_nodes(graph, catalogue);
    workflow::BindOptions options;
    options.declared = &declared;
    if (auto bound = workflow::bind_parameters(graph, {}, options); !bound) {
        return fail(std::move(bound.error()));
    }
    if (auto secure = workflow::check_security(graph, security, catalogue); !secure) {
        return secure;
    }
    if (auto checked = workflow::check(graph, catalogue); !checked) {
        return fail(std::move(checked.error()));
    }
    return {};
}

// The parameters as they are stored.
Result<json::object> declare(
    const Draft& draft, const json::object& graph, const workflow::Catalogue& catalogue
) {
    if (!draft.declared) {
        return workflow::offer_parameters(graph, catalogue);
    }
    auto declared = workflow::read_declarations(*draft.declared, graph);
    if (!declared) {
        return declared;
    }
    const auto schema = workflow::ParameterSchema::make(*declared, graph, catalogue);
    if (!schema) {
        return fail(schema.error());
    }
    if (auto checked = schema->check_defaults(); !checked) {
        return fail(std::move(checked.error()));
    }
    return declared;
}

tl::unexpected<Error> damaged(const Loaded& loaded) {
    return fail(
        Code::internal,
        "the stored version " + std::to_string(loaded.version.version) + " of '" +
            loaded.workflow.name + "' is damaged"
    );
}

json::array labels_of(const jobs::NamedWorkflow& workflow, int version) {
    json::array labels;
    for (const auto& [label, number] : workflow.labels) {
        if (number == version) {
            labels.emplace_back(label);
        }
    }
    return labels;
}

}  // namespace

Error no_workflow(const std::string& name) {
    return Error(Code::not_found, "there is no workflow named '" + name + "'");
}

bool is_name(std::string_view text) {
    return has_pattern(text) && std::ranges::find(kReserved, text) == kReserved.end();
}

bool is_label(std::string_view text) {
    return has_pattern(text) &&
           !std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

Result<Choice> decode_choice(const Call& call) {
    Choice choice;
    choice.name = call.path_parameters.at(0);
    if (!is_name(choice.name)) {
        return fail(
            Code::not_found,
            "no workflow can have this name: a name is [a-z0-9][a-z0-9._-]{0,63}, and not a word "
            "such as \"execute\" that is a path of its own"
        );
    }
    const std::string_view version = call.query_value("version");
    choice.label = call.query_value("label");
    if (!version.empty() && !choice.label.empty()) {
        return wrong("version", "give either 'version' or 'label', not both");
    }
    if (!version.empty()) {
        choice.version = parse_version(version);
        if (!choice.version) {
            return wrong("version", "'version' must be a whole number from 1");
        }
    }
    if (!choice.label.empty() && !is_label(choice.label)) {
        return wrong("label", "'label' must be [a-z0-9][a-z0-9._-]{0,63}, and not a number");
    }
    return choice;
}

std::optional<Choice> parse_reference(std::string_view text) {
    const std::size_t at = std::min(text.find('@'), text.size());
    Choice choice;
    choice.name = text.substr(0, at);
    if (!is_name(choice.name)) {
        return std::nullopt;
    }
    if (at == text.size()) {
        return choice;
    }
    const std::string_view which = text.substr(at + 1);
    choice.version = parse_version(which);
    if (!choice.version) {
        choice.label = which;
        if (!is_label(which)) {
            return std::nullopt;
        }
    }
    return choice;
}

Result<jobs::WorkflowVersion> make_version(
    json::object body,
    const workflow::Catalogue& catalogue,
    const workflow::SecurityPolicy& security
) {
    auto draft = decode_draft(std::move(body));
    if (!draft) {
        return fail(std::move(draft.error()));
    }
    jobs::WorkflowVersion version;
    version.workflow = json::serialize(draft->workflow);
    if (version.workflow.size() > kWorkflowBytesMax) {
        return fail(
            Code::payload_too_large,
            "the workflow has " + std::to_string(version.workflow.size()) +
                " bytes, but may have at most " + std::to_string(kWorkflowBytesMax)
        );
    }
    auto graph = to_graph(*draft, catalogue);
    if (!graph) {
        return fail(std::move(graph.error()));
    }
    auto declared = declare(*draft, *graph, catalogue);
    if (!declared) {
        return fail(std::move(declared.error()));
    }
    const workflow::Catalogue nothing({});
    auto checked = check_graph(*graph, *declared, draft->check ? catalogue : nothing, security);
    if (!checked) {
        return fail(std::move(checked.error()));
    }
    if (workflow::is_ui_format(draft->workflow)) {
        version.prompt = json::serialize(*graph);
    }
    version.node_count = static_cast<int>(graph->size());
    version.parameters = json::serialize(*declared);
    version.content_hash = hash_of(*draft);
    version.description = std::move(draft->description);
    return version;
}

int default_version(const jobs::NamedWorkflow& workflow) {
    const auto found = workflow.labels.find(std::string(kDefaultLabel));
    return found == workflow.labels.end() ? workflow.latest : found->second;
}

json::object encode_workflow(const jobs::NamedWorkflow& workflow) {
    json::object labels;
    for (const auto& [label, version] : workflow.labels) {
        labels[label] = version;
    }
    json::object body;
    body["name"] = workflow.name;
    body["description"] = workflow.description;
    body["latest_version"] = workflow.latest;
    body["default_version"] = default_version(workflow);
    body["version_count"] = workflow.version_count;
    body["labels"] = std::move(labels);
    body["created_at"] = to_rfc3339(workflow.created_at);
    body["updated_at"] = to_rfc3339(workflow.updated_at);
    return body;
}

Result<json::object> encode_version(const Loaded& loaded, bool with_workflow) {
    const jobs::WorkflowVersion& version = loaded.version;
    auto parameters = json::parse_object(version.parameters);
    if (!parameters) {
        return damaged(loaded);
    }
    json::object body;
    body["name"] = loaded.workflow.name;
    body["version"] = version.version;
    body["description"] = version.description;
    body["created_at"] = to_rfc3339(version.created_at);
    body["labels"] = labels_of(loaded.workflow, version.version);
    body["node_count"] = version.node_count;
    body["parameters"] = std::move(*parameters);
    if (!with_workflow) {
        return body;
    }
    auto workflow = json::parse_object(version.workflow);
    if (!workflow) {
        return damaged(loaded);
    }
    body["workflow"] = std::move(*workflow);
    if (!version.prompt.empty()) {
        auto prompt = json::parse_object(version.prompt);
        if (!prompt) {
            return damaged(loaded);
        }
        body["prompt"] = std::move(*prompt);
    }
    return body;
}

Result<json::object> encode_schema(const Loaded& loaded, const workflow::Catalogue& catalogue) {
    const jobs::WorkflowVersion& version = loaded.version;
    const auto declared = json::parse_object(version.parameters);
    const auto graph =
        json::parse_object(version.prompt.empty() ? version.workflow : version.prompt);
    if (!declared || !graph) {
        return damaged(loaded);
    }
    const auto schema = workflow::ParameterSchema::make(*declared, *graph, catalogue);
    if (!schema) {
        return fail(schema.error());
    }
    return schema->to_json();
}

}  // namespace comfyd::api::named
