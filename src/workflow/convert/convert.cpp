#include "workflow/convert/convert.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "workflow/convert/ui/instances.hpp"
#include "workflow/convert/ui/primitive.hpp"
#include "workflow/convert/ui/reading.hpp"
#include "workflow/convert/ui/resolve.hpp"
#include "workflow/convert/ui/text.hpp"
#include "workflow/rules/check.hpp"
#include "workflow/rules/issue.hpp"

namespace comfyd::workflow {
namespace {

constexpr std::size_t kFindingsMax = 100;

// Classes whose file name may hold "%node.widget%".
constexpr std::array<std::string_view, 20> kSavers = {
    "SaveImage",        "SaveImageAdvanced", "SaveSVGNode",       "SaveVideo",
    "SaveAnimatedWEBP", "SaveAnimatedPNG",   "SaveWEBM",          "SaveAudio",
    "SaveAudioMP3",     "SaveAudioOpus",     "SaveAudioAdvanced", "SaveGLB",
    "Save3DAdvanced",   "SaveGaussianSplat", "SavePointCloud",    "CLIPSave",
    "VAESave",          "ModelSave",         "LoraSave",          "SaveLatent",
};

// A list is what a link looks like, so lists that are values are marked.
json::value sent_value(json::value value) {
    if (value.is_array()) {
        return json::object{{"__value__", std::move(value)}};
    }
    return value;
}

class Converter {
public:
    Converter(
        const ui::Document& document, const ui::Instances& instances, const ConvertOptions& options
    )
        : instances_(instances), resolver_(document, instances), options_(options) {}

    Result<json::object> run() {
        for (std::size_t at = 0; at < instances_.all().size(); ++at) {
            if (!instances_[at].is_sent) {
                continue;
            }
            const std::vector<ui::Node>& nodes = instances_[at].graph->nodes;
            for (std::size_t i = 0; i < nodes.size(); ++i) {
                if (nodes[i].is_active()) {
                    emit(at, i);
                }
            }
        }
        if (!findings_.empty()) {
            return fail(issues_error(findings_));
        }
        drop_dead_links();
        return std::move(prompt_);
    }

private:
    void add(
        std::string_view reason,
        std::string message,
        const std::string& node_id,
        const std::string& class_type,
        std::string_view input
    ) {
        if (findings_.size() < kFindingsMax) {
            Issue finding;
            finding.code = issue_code(reason);
            finding.reason = reason;
            finding.message = std::move(message);
            finding.node_id = node_id;
            finding.class_type = class_type;
            finding.input = input;
            findings_.push_back(std::move(finding));
        }
    }

    void emit(std::size_t at, std::size_t place) {
        const ui::Node& node = instances_[at].graph->nodes[place];
        const std::string id = instances_[at].prefix + node.id;
        if (node.kind == ui::NodeKind::unknown) {
            const bool is_group =
                node.type.starts_with("workflow>") || node.type.starts_with("workflow/");
            add("missing_node_type",
                "no worker has the node class '" + node.type + "' (node " + id + ")" +
                    (is_group ? ", a group node of older editors: open and save the workflow in a "
                                "current one"
                              : ""),
                id,
                node.type,
                "class_type");
            return;
        }
        if (node.kind != ui::NodeKind::runs) {
            return;
        }
        json::object inputs;
        for (std::size_t i = 0; i < node.widgets.size(); ++i) {
            const json::value* value = instances_.value_of(at, place, i);
            if (node.widgets[i].sent && value != nullptr) {
                inputs[node.widgets[i].name] = widget_value(node, node.widgets[i], *value);
            }
        }
        for (std::size_t i = 0; i < node.inputs.size(); ++i) {
            if (node.inputs[i].link) {
                set_linked(inputs, at, place, i, id);
            }
        }
        json::object& made = prompt_[id].emplace_object();
        made["inputs"] = std::move(inputs);
        made["class_type"] = node.type;
        made["_meta"] = json::object{{"title", node.title}};
    }

    json::value widget_value(
        const ui::Node& node, const ui::Widget& widget, const json::value& value
    ) {
        if (!value.is_string()) {
            return sent_value(value);
        }
        const std::string_view text = view(value.get_string());
        const bool names_file = widget.name == "filename_prefix" &&
                                std::ranges::find(kSavers, node.type) != kSavers.end();
        std::string made(text);
        if (widget.replaces_names || names_file) {
            made = ui::replace_names(
                made,
                [this](std::string_view of, std::string_view name) {
                    return find_widget(of, name);
                },
                options_.now
            );
        }
        if (widget.has_option("dynamicPrompts")) {
            made = ui::resolve_choices(made, options_.choose);
        }
        return json::value(made);
    }

    void set_linked(
        json::object& inputs,
        std::size_t at,
        std::size_t place,
        std::size_t input,
        const std::string& id
    ) {
        const ui::Node& node = instances_[at].graph->nodes[place];
        const std::string& name = node.inputs[input].name;
        const ui::Resolved source = resolver_.resolve(at, place, input);
        const char* wrong = nullptr;
        switch (source.kind) {
            case ui::Resolved::Kind::nothing:
                return;
            case ui::Resolved::Kind::output: {
                const ui::Instance& from = instances_[source.instance];
                inputs[name] = json::array{
                    json::value(from.prefix + from.graph->nodes[source.node].id),
                    json::value(source.slot)
                };
                return;
            }
            case ui::Resolved::Kind::value:
                if (source.value != nullptr) {
                    inputs[name] = sent_value(*source.value);
                }
                return;
            case ui::Resolved::Kind::no_link:
                wrong = "names a link that does not exist";
                break;
            case ui::Resolved::Kind::no_origin:
                wrong = "is linked to a node that does not exist";
                break;
            case ui::Resolved::Kind::endless:
                wrong = "is linked in a circle or through too many nodes";
                break;
        }
        add("bad_linked_input",
            "input '" + name + "' of node " + id + " (" + node.type + ") " + wrong,
            id,
            node.type,
            name);
    }

    // By the name for search and replace, else by the title.
    const json::value* find_widget(std::string_view of, std::string_view name) {
        list_names();
        auto found = by_search_name_.find(std::string(of));
        if (found == by_search_name_.end()) {
            found = by_title_.find(std::string(of));
            if (found == by_title_.end()) {
                return nullptr;
            }
        }
        const auto [instance, place] = found->second;
        const std::vector<ui::Widget>& widgets = instances_[instance].graph->nodes[place].widgets;
        for (const ui::Widget& widget : widgets) {
            if (widget.name == name) {
                static const json::value kUndefined("");
                return widget.value ? &*widget.value : &kUndefined;
            }
        }
        return nullptr;
    }

    // In the order of the nodes, those inside a host just before it; the first of a name counts.
    void list_names() {
        if (has_names_) {
            return;
        }
        has_names_ = true;
        std::vector<std::pair<std::size_t, std::size_t>> stack{{0, 0}};
        while (!stack.empty()) {
            const auto [at, place] = stack.back();
            const ui::Instance& instance = instances_[at];
            if (place == instance.graph->nodes.size()) {
                stack.pop_back();
                if (!stack.empty()) {
                    name(stack.back().first, stack.back().second++);
                }
                continue;
            }
            const auto child = instance.children.find(place);
            if (child != instance.children.end()) {
                stack.emplace_back(child->second, 0);
                continue;
            }
            name(at, place);
            ++stack.back().second;
        }
    }

    void name(std::size_t at, std::size_t place) {
        const ui::Node& node = instances_[at].graph->nodes[place];
        std::string search_name = node.type;
        const json::value* given = ui::property(*node.source, "Node name for S&R");
        if (given != nullptr && given->is_string()) {
            search_name = std::string(view(given->get_string()));
        }
        by_search_name_.try_emplace(std::move(search_name), at, place);
        by_title_.try_emplace(node.title, at, place);
    }

    // A link to a node that is not sent.
    void drop_dead_links() {
        for (auto& node : prompt_) {
            json::object& inputs = node.value().get_object().at("inputs").get_object();
            std::vector<std::string> dead;
            for (const auto& input : inputs) {
                const json::array* link = input.value().if_array();
                if (link != nullptr && !prompt_.contains(link->front().get_string())) {
                    dead.emplace_back(view(input.key()));
                }
            }
            for (const std::string& name : dead) {
                inputs.erase(name);
            }
        }
    }

    const ui::Instances& instances_;
    ui::Resolver resolver_;
    const ConvertOptions& options_;
    json::object prompt_;
    std::vector<Issue> findings_;
    bool has_names_ = false;
    std::unordered_map<std::string, std::pair<std::size_t, std::size_t>> by_search_name_;
    std::unordered_map<std::string, std::pair<std::size_t, std::size_t>> by_title_;
};

}  // namespace

Result<json::object> convert_ui(
    const json::object& workflow, const PromptClasses& classes, const ConvertOptions& options
) {
    auto document = ui::read_document(workflow, classes);
    if (!document) {
        return fail(std::move(document.error()));
    }
    ui::apply_primitives(*document);
    auto instances = ui::Instances::make(*document);
    if (!instances) {
        return fail(std::move(instances.error()));
    }
    return Converter(*document, *instances, options).run();
}

}  // namespace comfyd::workflow
