// Named workflows: /v2/workflows and /v2/workflows/{name}/… store a workflow under a name, with
// versions, labels and typed parameters, and run it by that name. Added by add_workflows(). The
// decoding and encoding are here as free functions, also for other dialects that take a name in the
// place of a workflow. A tenant sees its own names only. `services` outlives the router.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "api/router.hpp"
#include "api/services.hpp"
#include "api/submission.hpp"
#include "jobs/workflow_store.hpp"

namespace comfyd::api {

void add_named_workflows(Router& router, const Services& services);

namespace named {

inline constexpr std::size_t kWorkflowBytesMax = 8 * 1024 * 1024;  // as JSON
inline constexpr std::size_t kDescriptionBytesMax = 10'000;
inline constexpr std::size_t kDocumentedMax = 500;  // in /openapi.json
inline constexpr std::string_view kDefaultLabel = "production";

// [a-z0-9][a-z0-9._-]{0,63}, but no word that is a route of its own, such as "execute".
bool is_name(std::string_view text);
// The same pattern, but no number: "portrait@3" is a version.
bool is_label(std::string_view text);

// Which version of which workflow: a number, a label, or nothing, which is the label "production"
// and, where there is none, the latest.
struct Choice {
    std::string name;
    std::optional<int> version{};
    std::string label{};
};
// From a path and its query. Code::not_found for what cannot be a name.
Result<Choice> decode_choice(const Call& call);
// "portrait", "portrait@3", "portrait@staging". nullopt: it is none of these.
std::optional<Choice> parse_reference(std::string_view text);

Error no_workflow(const std::string& name);

struct Loaded {
    jobs::NamedWorkflow workflow;
    jobs::WorkflowVersion version;
};
// Code::not_found says what is not there.
Task<Result<Loaded>> load(const Services& services, std::string tenant, Choice choice);

// Makes a submission run a stored workflow with these values of its parameters; the job remembers
// name and version (dialect_data["workflow_version"]). Failures of load(), and
// workflow::ParameterSchema::accept()'s for the values.
Task<Result<>> fill(
    const Services& services,
    std::string tenant,
    Choice choice,
    json::object values,
    Submission& into
);

// A version from the body of a PUT: {"workflow", "description"?, "parameters"?, "check"?}. Where no
// parameters are declared, workflow::offer_parameters() says which there are. Without "check":
// false a workflow that could not run is refused as submit() would refuse it.
Result<jobs::WorkflowVersion> make_version(
    json::object body,
    const workflow::Catalogue& catalogue,
    const workflow::SecurityPolicy& security
);

// The version that runs where none is chosen.
int default_version(const jobs::NamedWorkflow& workflow);
json::object encode_workflow(const jobs::NamedWorkflow& workflow);
// `workflow`: with what it runs. Code::internal when what is stored is damaged.
Result<json::object> encode_version(const Loaded& loaded, bool with_workflow);
// The JSON schema of its parameters, from the node classes that there are now.
Result<json::object> encode_schema(const Loaded& loaded, const workflow::Catalogue& catalogue);

// Adds an operation for each of the tenant's workflows (at most kDocumentedMax) to an OpenAPI
// document.
Task<Result<>> document_workflows(
    const Services& services, std::string tenant, json::object& document
);

json::object operation_list();
json::object operation_put();
json::object operation_get();
json::object operation_delete();
json::object operation_versions();
json::object operation_version();
json::object operation_delete_version();
json::object operation_set_label();
json::object operation_delete_label();
json::object operation_schema();
json::object operation_run();
json::object schemas();

}  // namespace named
}  // namespace comfyd::api
