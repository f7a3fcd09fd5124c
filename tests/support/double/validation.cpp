#include "support/double/validation.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "support/double/catalogue.hpp"
#include "support/double/files.hpp"
#include "support/double/prompt.hpp"

namespace comfyd::support {
namespace {

std::string text_of(const json::value& value) {
    return value.is_string() ? std::string(value.get_string()) : json::serialize_python(value);
}

std::string quoted(const json::value& value) {
    return value.is_string() ? "'" + std::string(value.get_string()) + "'"
                             : json::serialize_python(value);
}

class Checker {
public:
    Checker(
        const json::object& graph,
        const Catalogue& catalogue,
        const Files& files,
        const Behaviour& behaviour
    )
        : graph_(graph), catalogue_(catalogue), files_(files), behaviour_(behaviour) {}

    struct Node {
        bool valid = true;
        json::array errors;
        std::set<std::string> ancestors;  // with itself
        const json::object* own_check = nullptr;
    };

    const Node& check(const std::string& id) {
        const auto found = nodes_.find(id);
        if (found != nodes_.end()) {
            return found->second;
        }
        Node node;
        node.ancestors.insert(id);
        if (std::find(path_.begin(), path_.end(), id) != path_.end()) {
            node.valid = false;
            if (behaviour_.names_cycles) {
                node.errors.push_back(cycle_error(id));
            }
            // Not remembered here: the caller that is further up does, with the errors found below
            // it.
            return cycle_ = std::move(node);
        }
        path_.push_back(id);
        check_inputs(id, node);
        path_.pop_back();
        return nodes_[id] = std::move(node);
    }

private:
    void check_inputs(const std::string& id, Node& node) {
        const auto& own = graph_.at(id).get_object();
        if (!own.contains("inputs")) {
            add(node,
                "exception_during_validation",
                "Exception when validating node",
                "'inputs'",
                {{"exception_type", "KeyError"}, {"traceback", json::array{}}});
            return;
        }
        const auto* node_class = catalogue_.find(class_of(graph_, id));
        const auto& inputs = inputs_of(graph_, id);
        node.own_check = catalogue_.own_check(class_of(graph_, id));
        for (const char* group : {"required", "optional"}) {
            const auto* all = json::find(*node_class, "input");
            const auto* members =
                all && all->is_object() ? json::find(all->get_object(), group) : nullptr;
            if (!members || !members->is_object()) {
                continue;
            }
            for (const auto& [name, config] : members->get_object()) {
                const auto* value = inputs.if_contains(name);
                const bool required = std::string_view(group) == "required";
                if (value) {
                    check_value(name, config, *value, node);
                } else if (required && !is_autogrow(config)) {
                    add(node,
                        "required_input_missing",
                        "Required input is missing",
                        std::string(name),
                        {{"input_name", name}});
                }
            }
        }
        run_own_check(inputs, node);
    }

    // What the class does itself is left to it.
    static bool is_own(const Node& node, std::string_view input) {
        if (!node.own_check) {
            return false;
        }
        const auto* all = json::find(*node.own_check, "all_inputs");
        const auto* named = json::find(*node.own_check, "inputs");
        return (all && *all == json::value(true)) ||
               (named && named->is_array() &&
                std::ranges::count(named->get_array(), json::value(input)) > 0);
    }
    static bool judges_links(const Node& node) {
        const auto* types = node.own_check ? json::find(*node.own_check, "link_types") : nullptr;
        return types && *types == json::value(true);
    }

    static void run_own_check(const json::object& inputs, Node& node) {
        const auto* refused = node.own_check ? json::find(*node.own_check, "refuses") : nullptr;
        for (const auto& [name, value] : inputs) {
            if (refused && value == *refused && is_own(node, name)) {
                add(node,
                    "custom_validation_failed",
                    "Custom validation failed for node",
                    std::string(name) + " - refused: " + text_of(value),
                    {{"input_name", name}});
            }
        }
    }

    static bool is_autogrow(const json::value& config) {
        const auto* type =
            config.is_array() && !config.get_array().empty() ? &config.get_array()[0] : nullptr;
        return type && type->is_string() && type->get_string().starts_with("COMFY_AUTOGROW");
    }

    void check_value(
        std::string_view name, const json::value& config, const json::value& value, Node& node
    ) {
        if (value.is_array()) {
            check_link(name, config, value.get_array(), node);
            return;
        }
        if (!config.is_array() || config.get_array().empty()) {
            return;
        }
        const auto& type = config.get_array()[0];
        const json::object* options =
            config.get_array().size() > 1 ? config.get_array()[1].if_object() : nullptr;
        if (options && options->contains("image_upload")) {
            if (!files_.find_annotated(text_of(value))) {
                add(node,
                    "custom_validation_failed",
                    "Custom validation failed for node",
                    std::string(name) + " - Invalid image file: " + text_of(value),
                    {{"input_name", name}});
            }
            return;
        }
        if (is_own(node, name)) {
            return;
        }
        const json::array* list = type.if_array();
        if (type == json::value("COMBO") && options) {
            const auto* choices = json::find(*options, "options");
            list = choices ? choices->if_array() : nullptr;
        }
        if (list) {
            check_choice(name, config, *list, value, node);
        } else if (type == json::value("INT") || type == json::value("FLOAT")) {
            check_number(name, config, options, std::string(type.get_string()), value, node);
        }
    }

    void check_link(
        std::string_view name, const json::value& config, const json::array& link, Node& node
    ) {
        if (link.size() != 2) {
            add(node,
                "bad_linked_input",
                "Bad linked input, must be a length-2 list of [node_id, slot_index]",
                std::string(name),
                {{"input_name", name}, {"input_config", config}, {"received_value", link}});
            return;
        }
        const std::string from(linked_node(json::value(link)));
        const auto* from_class = catalogue_.find(class_of(graph_, from));
        const auto* types = from_class ? json::find(*from_class, "output") : nullptr;
        const std::int64_t slot = link[1].is_int64() ? link[1].get_int64() : 0;
        if (!types || !types->is_array() ||
            slot >= static_cast<std::int64_t>(types->get_array().size())) {
            add(node,
                "exception_during_validation",
                "Exception when validating node",
                "'" + from + "'",
                {{"exception_type", types ? "IndexError" : "KeyError"}, {"traceback", json::array{}}
                });
            return;
        }
        const auto& received =
            types->get_array()[static_cast<std::size_t>(std::max<std::int64_t>(slot, 0))];
        const auto& wanted = config.get_array()[0];
        if (wanted.is_string() && received.is_string() && !judges_links(node) &&
            !fits(received.get_string(), wanted.get_string())) {
            add(node,
                "return_type_mismatch",
                "Return type mismatch between linked nodes",
                std::string(name) + ", received_type(" + std::string(received.get_string()) +
                    ") mismatch input_type(" + std::string(wanted.get_string()) + ")",
                {{"input_name", name},
                 {"input_config", config},
                 {"received_type", received},
                 {"linked_node", link}});
            return;
        }
        const Node& linked = check(from);
        node.ancestors.insert(linked.ancestors.begin(), linked.ancestors.end());
        node.valid = node.valid && linked.valid;
        if (std::find(path_.begin(), path_.end(), from) != path_.end()) {
            for (const auto& error : linked.errors) {
                node.errors.push_back(error);
            }
        }
    }

    static bool fits(std::string_view received, std::string_view wanted) {
        if (received == wanted || received == "*" || wanted == "*" ||
            wanted.starts_with("COMFY_") || received.starts_with("COMFY_")) {
            return true;
        }
        const auto split = [](std::string_view text) {
            std::set<std::string_view> types;
            while (!text.empty()) {
                const auto comma = std::min(text.find(','), text.size());
                types.insert(text.substr(0, comma));
                text.remove_prefix(std::min(comma + 1, text.size()));
            }
            return types;
        };
        for (const auto type : split(received)) {
            if (split(wanted).contains(type)) {
                return true;
            }
        }
        return false;
    }

    static void check_choice(
        std::string_view name,
        const json::value& config,
        const json::array& list,
        const json::value& value,
        Node& node
    ) {
        if (std::find(list.begin(), list.end(), value) != list.end()) {
            return;
        }
        constexpr std::size_t kShownMax = 20;
        std::string shown = "(list of length " + std::to_string(list.size()) + ")";
        if (list.size() <= kShownMax) {
            shown = "[";
            for (const auto& item : list) {
                shown += (shown.size() > 1 ? ", " : "") + quoted(item);
            }
            shown += "]";
        }
        const json::value shown_config = list.size() <= kShownMax ? config : json::value(nullptr);
        add(node,
            "value_not_in_list",
            "Value not in list",
            std::string(name) + ": " + quoted(value) + " not in " + shown,
            {{"input_name", name}, {"input_config", shown_config}, {"received_value", value}});
    }

    static std::optional<double> to_number(const json::value& value) {
        if (value.is_number()) {
            return value.to_number<double>();
        }
        if (value.is_bool()) {
            return value.get_bool() ? 1 : 0;
        }
        if (value.is_string()) {
            const auto& text = value.get_string();
            double number = 0;
            const auto [end, error] =
                std::from_chars(text.data(), text.data() + text.size(), number);
            if (error == std::errc{} && end == text.data() + text.size()) {
                return number;
            }
        }
        return std::nullopt;
    }

    static void check_number(
        std::string_view name,
        const json::value& config,
        const json::object* options,
        const std::string& type,
        const json::value& value,
        Node& node
    ) {
        const auto number = to_number(value);
        if (!number) {
            const std::string why = type == "INT"
                                        ? "invalid literal for int() with base 10: " + quoted(value)
                                        : "could not convert string to float: " + quoted(value);
            add(node,
                "invalid_input_type",
                "Failed to convert an input value to a " + type + " value",
                std::string(name) + ", " + text_of(value) + ", " + why,
                {{"input_name", name},
                 {"input_config", config},
                 {"received_value", value},
                 {"exception_message", why}});
            return;
        }
        const auto* min = options ? json::find(*options, "min") : nullptr;
        const auto* max = options ? json::find(*options, "max") : nullptr;
        const json::object extra{
            {"input_name", name}, {"input_config", config}, {"received_value", value}
        };
        if (min && min->is_number() && *number < min->to_number<double>()) {
            add(node,
                "value_smaller_than_min",
                "Value " + text_of(value) + " smaller than min of " + text_of(*min),
                std::string(name),
                extra);
        } else if (max && max->is_number() && *number > max->to_number<double>()) {
            add(node,
                "value_bigger_than_max",
                "Value " + text_of(value) + " bigger than max of " + text_of(*max),
                std::string(name),
                extra);
        }
    }

    json::value cycle_error(const std::string& id) const {
        json::array nodes;
        std::string shown;
        for (auto it = std::find(path_.begin(), path_.end(), id); it != path_.end(); ++it) {
            nodes.emplace_back(*it);
            shown += *it + " (" + std::string(class_of(graph_, *it)) + ") -> ";
        }
        shown += id + " (" + std::string(class_of(graph_, id)) + ")";
        return make_prompt_error(
            "dependency_cycle",
            "Dependency cycle detected",
            shown,
            {{"node_id", id}, {"cycle_nodes", std::move(nodes)}}
        );
    }

    static void add(
        Node& node, std::string type, std::string message, std::string details, json::object extra
    ) {
        node.valid = false;
        node.errors.push_back(make_prompt_error(
            std::move(type), std::move(message), std::move(details), std::move(extra)
        ));
    }

    const json::object& graph_;
    const Catalogue& catalogue_;
    const Files& files_;
    const Behaviour& behaviour_;
    std::map<std::string, Node> nodes_;
    Node cycle_;
    std::vector<std::string> path_;
};

// The first node whose class is not known.
std::optional<json::object> find_unknown_class(
    const json::object& graph, const Catalogue& catalogue, const Behaviour& behaviour
) {
    for (const auto& [id, node] : graph) {
        const auto name = class_of(graph, id);
        if (!name.empty() && catalogue.find(name)) {
            continue;
        }
        const std::string details = "Node ID '#" + std::string(id) + "'";
        if (!behaviour.names_missing_nodes) {
            return make_prompt_error(
                "invalid_prompt",
                name.empty()
                    ? "Cannot execute because a node is missing the class_type property."
                    : "Cannot execute because node " + std::string(name) + " does not exist.",
                details
            );
        }
        const auto* meta = node.get_object().if_contains("_meta");
        const auto* title =
            meta && meta->is_object() ? json::find(meta->get_object(), "title") : nullptr;
        const std::string shown = title && title->is_string() ? std::string(title->get_string())
                                  : name.empty()              ? "ID #" + std::string(id)
                                                              : std::string(name);
        const json::value class_type = name.empty() ? json::value(nullptr) : json::value(name);
        const json::object extra{
            {"node_id", id}, {"class_type", class_type}, {"node_title", title ? *title : class_type}
        };
        return make_prompt_error(
            "missing_node_type",
            name.empty() ? "Node '" + shown +
                               "' has no class_type. The workflow may be corrupted or a custom "
                               "node is missing."
                         : "Node '" + shown + "' not found. The custom node may not be installed.",
            details,
            extra
        );
    }
    return std::nullopt;
}

bool contains(const json::array* targets, std::string_view id) {
    return !targets ||
           std::find(targets->begin(), targets->end(), json::value(id)) != targets->end();
}

}  // namespace

json::object make_prompt_error(
    std::string type, std::string message, std::string details, json::object extra
) {
    return {
        {"type", std::move(type)},
        {"message", std::move(message)},
        {"details", std::move(details)},
        {"extra_info", std::move(extra)},
    };
}

Verdict validate(
    const json::object& graph,
    const json::array* targets,
    const Catalogue& catalogue,
    const Files& files,
    const Behaviour& behaviour
) {
    Verdict verdict;
    verdict.error = find_unknown_class(graph, catalogue, behaviour);
    if (verdict.error) {
        return verdict;
    }
    std::vector<std::string> outputs;
    for (const auto& [id, node] : graph) {
        if (catalogue.is_output(class_of(graph, id)) && contains(targets, id)) {
            outputs.emplace_back(id);
        }
    }
    if (outputs.empty()) {
        verdict.error = make_prompt_error("prompt_no_outputs", "Prompt has no outputs", "");
        return verdict;
    }
    Checker checker(graph, catalogue, files, behaviour);
    std::string details;
    for (const auto& output : outputs) {
        const auto node = checker.check(output);
        if (node.valid) {
            verdict.outputs.push_back(output);
            continue;
        }
        for (const auto& error : node.errors) {
            details += (details.empty() ? "" : "\n") +
                       std::string(error.at("message").get_string()) + ": " +
                       std::string(error.at("details").get_string());
        }
        for (const auto& id : node.ancestors) {
            const auto& errors = checker.check(id).errors;
            if (errors.empty()) {
                continue;
            }
            auto& entry = verdict.node_errors[id];
            if (!entry.is_object()) {
                entry = json::object{
                    {"errors", errors},
                    {"dependent_outputs", json::array{}},
                    {"class_type", class_of(graph, id)}
                };
            }
            entry.at("dependent_outputs").get_array().emplace_back(output);
        }
    }
    if (verdict.outputs.empty()) {
        verdict.error = make_prompt_error(
            "prompt_outputs_failed_validation", "Prompt outputs failed validation", details
        );
    }
    return verdict;
}

}  // namespace comfyd::support
