#include "admission/workflow_file.hpp"

#include <utility>

#include "admission/inputs.hpp"
#include "admission/parse_apart.hpp"
#include "workflow/files/embedded.hpp"

namespace comfyd::admission {

Task<Result<json::object>> fetch_workflow(
    const Desk& desk, std::string tenant, std::string source, std::string field
) {
    auto bytes = co_await fetch_bytes(
        desk, std::move(tenant), std::move(source), field, kWorkflowFileBytesMax
    );
    if (!bytes) {
        co_return fail(std::move(bytes.error()));
    }
    auto workflow = co_await parse_apart(desk, std::move(*bytes), [](const std::string& file) {
        return workflow::read_workflow_file(file);
    });
    if (!workflow) {
        Error error = std::move(workflow.error());
        if (!error.details.contains("field")) {
            error.details["field"] = field;
        }
        error.message = "'" + field + "': " + error.message;
        co_return fail(std::move(error));
    }
    co_return workflow;
}

}  // namespace comfyd::admission
