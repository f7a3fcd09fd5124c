// Parameters of strangers over workflows of strangers: {"workflow": {…}, "parameters": {…},
// "declared": {…}}. Whatever comes in, either all is bound and found where it was said to be, or
// nothing has changed and the answer says why.
#include <cstdint>
#include <cstdlib>

#include "workflow/parameters/parameters.hpp"
#include "workflow/plan/plan.hpp"
#include "workflow/rules/stages.hpp"

namespace {

using namespace comfyd;

json::object member(const json::object& of, std::string_view name) {
    const json::value* found = json::find(of, name);
    return found != nullptr && found->is_object() ? found->get_object() : json::object();
}

void require(bool holds) {
    if (!holds) {
        std::abort();
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto body = json::parse_object({reinterpret_cast<const char*>(data), size});
    if (!body) {
        return 0;
    }
    const json::object original = member(*body, "workflow");
    const json::object parameters = member(*body, "parameters");
    const json::object declared = member(*body, "declared");
    json::object workflow = original;
    workflow::BindOptions options;
    options.declared = &declared;
    options.random = [] { return std::uint64_t{4}; };
    const auto bound = workflow::bind_parameters(workflow, parameters, options);
    if (!bound) {
        require(bound.error().code == Code::invalid_argument && !bound.error().message.empty());
        require(workflow == original);
    } else {
        require(workflow.size() == original.size());
        for (const workflow::BoundInput& input : bound->inputs) {
            const json::value& inputs = workflow.at(input.node_id).at("inputs");
            require(inputs.as_object().contains(input.input));
        }
    }
    const workflow::Catalogue nothing({});
    const workflow::Validation validation = workflow::validate(workflow, nothing);
    require(!json::serialize(validation.to_json()).empty());
    return 0;
}
