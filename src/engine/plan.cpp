#include "engine/plan.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "base/assert.hpp"
#include "engine/validate.hpp"

namespace comfyd::engine {
namespace {

class Planner {
public:
    Planner(const json::object& prompt, const Registry& registry, const Folders& folders)
        : prompt_(prompt), registry_(registry), folders_(folders) {}

    // Recursion is bounded by kChainMax, which validation enforces.
    std::size_t visit(const std::string& id);
    Plan take() { return std::move(plan_); }
    Plan& plan() { return plan_; }

private:
    void link_sources(PlannedNode& planned);
    void take_fingerprint(PlannedNode& planned) const;
    Digest key_of(const PlannedNode& planned) const;

    const json::object& prompt_;
    const Registry& registry_;
    const Folders& folders_;
    Plan plan_;
    std::unordered_map<std::string, std::size_t> places_;
};

std::size_t Planner::visit(const std::string& id) {
    if (const auto known = places_.find(id); known != places_.end()) {
        return known->second;
    }
    const json::object& entry = prompt_.at(id).as_object();
    const auto& class_type = entry.at("class_type").as_string();
    PlannedNode planned;
    planned.id = id;
    planned.node = registry_.find(std::string_view(class_type.data(), class_type.size()));
    planned.inputs = &entry.at("inputs").as_object();
    COMFYD_ASSERT(planned.node != nullptr);
    link_sources(planned);
    take_fingerprint(planned);
    planned.key = key_of(planned);
    const std::size_t place = plan_.nodes.size();
    plan_.nodes.push_back(std::move(planned));
    places_.emplace(id, place);
    return place;
}

void Planner::link_sources(PlannedNode& planned) {
    for (const Input& input : planned.node->inputs) {
        const json::value* value = planned.inputs->if_contains(input.name);
        if (value == nullptr || !value->is_array()) {
            continue;
        }
        const json::array& link = value->get_array();
        const std::size_t source = visit(std::string(link.at(0).as_string()));
        const auto slot = slot_index(link.at(1), plan_.nodes[source].node->outputs.size());
        COMFYD_ASSERT(slot.has_value());
        planned.links.push_back(PlannedLink{&input, source, *slot});
    }
}

void Planner::take_fingerprint(PlannedNode& planned) const {
    if (planned.node->fingerprint == nullptr) {
        return;
    }
    auto fingerprint = planned.node->fingerprint(*planned.inputs, folders_);
    if (fingerprint) {
        planned.fingerprint = std::move(*fingerprint);
        return;
    }
    std::array<char, 16> unlike_any_other{};
    random_bytes(unlike_any_other.data(), unlike_any_other.size());
    planned.fingerprint = to_hex(unlike_any_other.data(), unlike_any_other.size());
}

Digest Planner::key_of(const PlannedNode& planned) const {
    // Every part is preceded by its length, so that no two nodes can spell the same text.
    std::string text;
    const auto add = [&text](char kind, std::string_view part) {
        text += kind;
        text += std::to_string(part.size());
        text += ':';
        text += part;
    };
    add('c', planned.node->name);
    add('f', planned.fingerprint);
    const bool by_id = std::ranges::any_of(planned.node->hidden, [](const auto& hidden) {
        return hidden.second == "UNIQUE_ID";
    });
    if (by_id) {
        add('u', planned.id);
    }
    std::map<std::string_view, const json::value*> sorted;
    for (const auto& [name, value] : *planned.inputs) {
        sorted.emplace(std::string_view(name.data(), name.size()), &value);
    }
    for (const auto& [name, value] : sorted) {
        const auto link = std::ranges::find(planned.links, name, [](const PlannedLink& candidate) {
            return std::string_view(candidate.input->name);
        });
        add('n', name);
        if (link != planned.links.end()) {
            const Digest& source = plan_.nodes[link->source].key;
            add('l', to_hex(source) + '/' + std::to_string(link->slot));
        } else {
            // Inputs that the class does not know count too, as in ComfyUI.
            add('v', json::serialize_canonical(*value));
        }
    }
    return sha256(text);
}

}  // namespace

Plan make_plan(
    const json::object& prompt,
    const std::vector<std::string>& outputs,
    const Registry& registry,
    const Folders& folders
) {
    Planner planner(prompt, registry, folders);
    for (const std::string& output : outputs) {
        const std::size_t place = planner.visit(output);
        planner.plan().nodes[place].output = true;
    }
    return planner.take();
}

}  // namespace comfyd::engine
