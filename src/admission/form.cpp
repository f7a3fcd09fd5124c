#include "admission/form.hpp"

#include <random>
#include <utility>

#include "workflow/catalogue/node_replacement.hpp"
#include "workflow/convert/convert.hpp"
#include "workflow/files/file_inputs.hpp"
#include "workflow/files/private_names.hpp"
#include "workflow/rules/check.hpp"

namespace comfyd::admission {

Result<Form> put_in_form(
    json::object workflow,
    const json::object& parameters,
    const workflow::Catalogue& catalogue,
    Time now,
    bool converts_editor_format
) {
    const json::object& inner = workflow::unwrap(workflow);
    const bool is_wrapped = &inner != &workflow;
    // What is declared beside the nodes is needed once more.
    Form form{
        is_wrapped ? json::object(inner, workflow.storage()) : json::object(std::move(workflow))
    };
    const bool is_of_editor = workflow::is_ui_format(form.graph);
    if (is_of_editor && converts_editor_format && catalogue.knows_workers()) {
        auto converted = convert_editor_format(form.graph, catalogue, now);
        if (!converted) {
            return fail(std::move(converted.error()));
        }
        form.editor_format = std::exchange(form.graph, std::move(*converted));
    }
    settle_nodes(form.graph, catalogue);
    // The editor's format has nothing that could be bound; it is refused when it is judged.
    if (!workflow::is_ui_format(form.graph)) {
        workflow::BindOptions options;
        options.declared = is_wrapped ? workflow::declared_parameters(workflow) : nullptr;
        auto bound = workflow::bind_parameters(form.graph, parameters, options);
        if (!bound) {
            return fail(std::move(bound.error()));
        }
        form.bound = std::move(*bound);
    }
    return form;
}

void settle_nodes(json::object& graph, const workflow::Catalogue& catalogue) {
    workflow::apply_replacements(graph, catalogue.replacements(), catalogue);
    workflow::wrap_file_lists(graph, catalogue);
    workflow::forget_folders(graph);
}

Result<json::object> convert_editor_format(
    const json::object& graph, const workflow::Catalogue& catalogue, Time now
) {
    std::random_device device;
    workflow::ConvertOptions options;
    options.choose = [&device](std::size_t count) { return device() % count; };
    options.now = now;
    return workflow::convert_ui(graph, catalogue, options);
}

}  // namespace comfyd::admission
