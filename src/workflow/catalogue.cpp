#include "workflow/catalogue.hpp"

#include <utility>

namespace comfyd::workflow {
namespace {

template <class Visit>
bool each_line(std::string_view lines, Visit visit) {
    while (!lines.empty()) {
        const auto end = lines.find('\n');
        if (!visit(lines.substr(0, end))) {
            return false;
        }
        if (end == std::string_view::npos) {
            break;
        }
        lines.remove_prefix(end + 1);
    }
    return true;
}

NodeClass read_class(const json::object& from) {
    NodeClass node;
    if (const json::value* output = json::find(from, "output_node");
        output != nullptr && output->is_bool()) {
        node.output_node = output->get_bool();
    }
    if (const json::value* outputs = json::find(from, "output");
        outputs != nullptr && outputs->is_array()) {
        node.output_count = outputs->get_array().size();
    }
    const json::value* input = json::find(from, "input");
    if (input != nullptr && input->is_object()) {
        const json::value* required = json::find(input->get_object(), "required");
        if (required != nullptr && required->is_object()) {
            for (const auto& entry : required->get_object()) {
                // Dynamic inputs appear in prompts under other, dotted names.
                const auto* definition = entry.value().if_array();
                const bool dynamic = definition != nullptr && !definition->empty() &&
                                     definition->front().is_string() &&
                                     definition->front().get_string().starts_with("COMFY_");
                if (!dynamic) {
                    node.required_inputs.emplace_back(entry.key());
                }
            }
        }
    }
    return node;
}

}  // namespace

Result<std::shared_ptr<const NodeClasses>> NodeClasses::from_object_info(
    const json::value& object_info
) {
    if (!object_info.is_object()) {
        return fail(Code::protocol_error, "/object_info is not a JSON object");
    }
    auto classes = std::make_shared<NodeClasses>();
    for (const auto& entry : object_info.get_object()) {
        if (entry.value().is_object() && entry.key().find('\n') == std::string_view::npos) {
            classes->classes_.emplace(entry.key(), read_class(entry.value().get_object()));
        }
    }
    return classes;
}

const NodeClass* NodeClasses::find(std::string_view class_type) const {
    const auto found = classes_.find(class_type);
    return found == classes_.end() ? nullptr : &found->second;
}

bool NodeClasses::has_all(std::string_view requirement) const {
    return each_line(requirement, [this](std::string_view name) { return find(name) != nullptr; });
}

const NodeClass* Catalogue::find(std::string_view class_type) const {
    for (const Entry& worker : workers_) {
        if (const NodeClass* found = worker.classes->find(class_type)) {
            return found;
        }
    }
    return nullptr;
}

bool Catalogue::can_run(std::string_view requirement) const {
    for (const Entry& worker : workers_) {
        if (worker.classes->has_all(requirement)) {
            return true;
        }
    }
    return false;
}

std::optional<Catalogue::Nearest> Catalogue::nearest(std::string_view requirement) const {
    std::optional<Nearest> best;
    for (const Entry& worker : workers_) {
        Nearest candidate{worker.worker, {}};
        each_line(requirement, [&](std::string_view name) {
            if (worker.classes->find(name) == nullptr) {
                candidate.missing.emplace_back(name);
            }
            return true;
        });
        if (!best || candidate.missing.size() < best->missing.size()) {
            best = std::move(candidate);
        }
    }
    return best;
}

}  // namespace comfyd::workflow
