#include "support/double/prompt.hpp"

#include <array>
#include <cstdio>
#include <map>
#include <set>

#include "support/double/catalogue.hpp"

namespace comfyd::support {
namespace {

using Version = std::array<int, 3>;

Version parse_version(std::string_view text) {
    Version version{};
    std::sscanf(std::string(text).c_str(), "%d.%d.%d", &version[0], &version[1], &version[2]);
    return version;
}

}  // namespace

Behaviour::Behaviour(std::string_view version) {
    const Version v = parse_version(version);
    targeted_interrupt = v >= Version{0, 3, 57};
    create_time = v >= Version{0, 3, 69};
    jobs_route = v >= Version{0, 6, 0};
    replaces_nodes = v > Version{0, 13, 0};
    names_missing_nodes = v > Version{0, 11, 1};
    cached_needs_client = v <= Version{0, 18, 1};
    names_cycles = v > Version{0, 19, 3};
    uuid_only = v > Version{0, 24, 0};
    cancel_route = v > Version{0, 25, 0};
}

json::array Prompt::to_json() const {
    json::array ids(outputs.begin(), outputs.end());
    return {number, id, graph, extra_data, std::move(ids)};
}

std::string_view linked_node(const json::value& input) {
    if (!input.is_array() || input.get_array().size() != 2 || !input.get_array()[0].is_string()) {
        return {};
    }
    return input.get_array()[0].get_string();
}

const json::object& inputs_of(const json::object& graph, std::string_view node) {
    static const json::object kNone;
    const auto* found = graph.if_contains(node);
    const auto* inputs =
        found && found->is_object() ? found->get_object().if_contains("inputs") : nullptr;
    return inputs && inputs->is_object() ? inputs->get_object() : kNone;
}

std::string_view class_of(const json::object& graph, std::string_view node) {
    const auto* found = graph.if_contains(node);
    const auto* name =
        found && found->is_object() ? found->get_object().if_contains("class_type") : nullptr;
    return name && name->is_string() ? std::string_view(name->get_string()) : std::string_view{};
}

namespace {

struct Pending {
    std::vector<std::string> order;                        // as they were added
    std::map<std::string, std::set<std::string>> waits;    // node -> what it needs
    std::map<std::string, std::vector<std::string>> used;  // node -> who needs it
};

Pending collect(
    const json::object& graph, const std::vector<std::string>& outputs, const Catalogue& catalogue
) {
    Pending pending;
    std::vector<std::string> stack;
    for (const auto& output : outputs) {
        stack.push_back(output);
        while (!stack.empty()) {
            const std::string node = std::move(stack.back());
            stack.pop_back();
            if (pending.waits.contains(node)) {
                continue;
            }
            pending.order.push_back(node);
            auto& needs = pending.waits[node];
            const auto* node_class = catalogue.find(class_of(graph, node));
            for (const auto& [name, value] : inputs_of(graph, node)) {
                const std::string from(linked_node(value));
                const bool known =
                    node_class && (find_input(*node_class, name) || name.find('.') != name.npos);
                if (from.empty() || !known || !graph.contains(from)) {
                    continue;
                }
                if (needs.insert(from).second) {
                    pending.used[from].push_back(node);
                }
                stack.push_back(from);
            }
        }
    }
    return pending;
}

// Output nodes first, then what an output node waits for, then two levels up: so that results
// appear early.
std::string pick(
    const std::vector<std::string>& ready,
    const Pending& pending,
    const std::set<std::string>& outputs
) {
    for (const auto& node : ready) {
        if (outputs.contains(node)) {
            return node;
        }
    }
    const auto users = [&pending](const std::string& node) {
        const auto found = pending.used.find(node);
        return found == pending.used.end() ? std::vector<std::string>{} : found->second;
    };
    for (const auto& node : ready) {
        for (const auto& user : users(node)) {
            if (outputs.contains(user)) {
                return node;
            }
        }
    }
    for (const auto& node : ready) {
        for (const auto& user : users(node)) {
            for (const auto& second : users(user)) {
                if (outputs.contains(second)) {
                    return node;
                }
            }
        }
    }
    return ready.front();
}

}  // namespace

std::vector<std::string> execution_order(
    const json::object& graph, const std::vector<std::string>& outputs, const Catalogue& catalogue
) {
    Pending pending = collect(graph, outputs, catalogue);
    std::set<std::string> output_nodes;
    for (const auto& node : pending.order) {
        if (catalogue.is_output(class_of(graph, node))) {
            output_nodes.insert(node);
        }
    }
    std::vector<std::string> done;
    while (!pending.order.empty()) {
        std::vector<std::string> ready;
        for (const auto& node : pending.order) {
            if (pending.waits[node].empty()) {
                ready.push_back(node);
            }
        }
        if (ready.empty()) {
            break;  // a cycle; validation refuses those
        }
        const std::string next = pick(ready, pending, output_nodes);
        std::erase(pending.order, next);
        for (const auto& user : pending.used[next]) {
            pending.waits[user].erase(next);
        }
        done.push_back(next);
    }
    return done;
}

}  // namespace comfyd::support
