#include "workflow/parameters/parameters_names.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/text.hpp"
#include "workflow/catalogue/nearest.hpp"

namespace comfyd::workflow {
namespace {

constexpr std::size_t kNamesListed = 30;
constexpr std::size_t kTargetsMax = 100;  // of one declared parameter
constexpr std::size_t kNameBytesMax = 1'000;

boost::json::string_view key(std::string_view text) {
    return {text.data(), text.size()};
}

// Lists names for a message, not too many.
class NameList {
public:
    void add(std::string name) {
        if (names_++ < kNamesListed && text_.size() < 1'000) {
            text_ += (text_.empty() ? "" : ", ") + std::move(name);
        } else {
            cut_ = true;
        }
    }
    std::string text() const { return text_.empty() ? "none" : text_ + (cut_ ? ", …" : ""); }

private:
    std::size_t names_ = 0;
    bool cut_ = false;
    std::string text_;
};

tl::unexpected<Error> wrong(std::string_view name, std::string message) {
    return fail(
        Code::invalid_argument,
        "parameter '" + std::string(name.substr(0, 200)) + "': " + std::move(message),
        {{"field", name}}
    );
}

tl::unexpected<Error> wrong_declaration(std::string_view name) {
    return wrong(
        name,
        "its declaration must be \"node.input\", a list of those, {\"target\": …} with either, or "
        "{\"node\", \"input\"}"
    );
}

}  // namespace

ParameterNames::ParameterNames(const json::object& workflow, const json::object* declared)
    : graph_(workflow), declared_(declared) {
    for (Position at = 0; at < graph_.size(); ++at) {
        const std::string_view title = title_of((workflow.begin() + at)->value());
        if (!title.empty()) {
            titles_[title].push_back(at);
        }
        if (!graph_[at].class_type.empty()) {
            classes_[graph_[at].class_type].push_back(at);
        }
    }
}

Result<ParameterNames::Targets> ParameterNames::find(std::string_view name) const {
    if (name.empty() || name.size() > kNameBytesMax) {
        return wrong(name, "a name has from 1 to " + std::to_string(kNameBytesMax) + " characters");
    }
    if (name.find('.') != std::string_view::npos) {
        auto dotted = find_dotted(name);
        if (dotted || !is_declared(name)) {
            return dotted;
        }
    }
    if (is_declared(name)) {
        return read_declaration(name, declared_->at(key(name)));
    }
    if (const auto titled = titles_.find(name); titled != titles_.end()) {
        return find_titled(name, titled->second);
    }
    if (const auto role = parse_role(name)) {
        return find_role(name, *role);
    }
    return wrong(name, "nothing in the workflow has this name; there are " + names(name));
}

bool ParameterNames::is_declared(std::string_view name) const {
    return declared_ != nullptr && declared_->contains(key(name));
}

// Titles and inputs may hold dots of their own, so each dot may be the one between them.
Result<ParameterNames::Targets> ParameterNames::find_dotted(std::string_view name) const {
    std::optional<Position> known;
    for (auto dot = name.find('.'); dot != std::string_view::npos; dot = name.find('.', dot + 1)) {
        auto node = find_node(name.substr(0, dot));
        if (!node) {
            return wrong(name, std::move(node.error().message));
        }
        if (!*node) {
            continue;
        }
        const std::string_view input = name.substr(dot + 1);
        if (graph_[**node].inputs->contains(key(input))) {
            return Targets{{**node, std::string(input)}};
        }
        known = known ? known : *node;
    }
    if (known) {
        return wrong(
            name,
            "node " + std::string(graph_[*known].id) + " has no such input; it has " +
                inputs_of(*known)
        );
    }
    return wrong(name, "no node has this id or title; there are " + nodes());
}

std::string ParameterNames::nodes() const {
    std::vector<std::string_view> titles(graph_.size());
    for (const auto& [title, nodes] : titles_) {
        for (const Position at : nodes) {
            titles[at] = title;
        }
    }
    NameList list;
    for (Position at = 0; at < graph_.size(); ++at) {
        list.add(
            std::string(graph_[at].id) +
            (titles[at].empty() ? "" : " ('" + std::string(titles[at]) + "')")
        );
    }
    return list.text();
}

// nullopt: none has this name.
Result<std::optional<Graph::Position>> ParameterNames::find_node(std::string_view name) const {
    if (const Position at = graph_.find(name); at != Graph::kNone) {
        return at;
    }
    for (const auto* index : {&titles_, &classes_}) {
        const auto found = index->find(name);
        if (found == index->end()) {
            continue;
        }
        if (found->second.size() > 1) {
            return fail(
                Code::invalid_argument,
                "several nodes have the " + std::string(index == &titles_ ? "title '" : "class '") +
                    std::string(name) + "': use the node's id, one of " + ids_of(found->second)
            );
        }
        return found->second.front();
    }
    return std::nullopt;
}

Result<ParameterNames::Targets> ParameterNames::read_declaration(
    std::string_view name, const json::value& declaration
) const {
    const json::object* members = declaration.if_object();
    const json::value* target = members != nullptr ? json::find(*members, "target") : nullptr;
    const json::value& places = target != nullptr ? *target : declaration;
    const json::array* several = places.if_array();
    const json::array one{several != nullptr ? json::value() : places};
    Targets targets;
    for (const json::value& place : several != nullptr ? *several : one) {
        if (auto added = add_declared(name, place, targets); !added) {
            return fail(std::move(added.error()));
        }
    }
    if (targets.empty()) {
        return wrong_declaration(name);
    }
    return targets;
}

Result<> ParameterNames::add_declared(std::string_view name, const json::value& from, Targets& to)
    const {
    std::string place;
    if (const auto* text = from.if_string()) {
        place = std::string(view(*text));
    } else if (const auto* members = from.if_object()) {
        const json::value* node = json::find(*members, "node");
        const json::value* input = json::find(*members, "input");
        if (node != nullptr && node->is_string() && input != nullptr && input->is_string()) {
            place = std::string(node->get_string()) + "." + std::string(input->get_string());
        }
    }
    if (place.find('.') == std::string::npos || place.size() > kNameBytesMax ||
        to.size() == kTargetsMax) {
        return wrong_declaration(name);
    }
    auto found = find_dotted(place);
    if (!found) {
        return wrong(name, "its declaration is wrong: " + found.error().message);
    }
    to.insert(to.end(), found->begin(), found->end());
    return {};
}

// The one value of the node, or the one that such nodes have for it.
Result<ParameterNames::Targets> ParameterNames::find_titled(
    std::string_view name, const std::vector<Position>& nodes
) const {
    if (nodes.size() > 1) {
        return wrong(name, "several nodes have this title: use the id, one of " + ids_of(nodes));
    }
    const Position at = nodes.front();
    std::vector<std::string_view> values;
    for (const auto& input : *graph_[at].inputs) {
        if (!input.value().is_array()) {
            values.push_back(view(input.key()));
        }
    }
    for (const std::string_view usual : {"value", "text", "string", "image"}) {
        if (std::ranges::find(values, usual) != values.end()) {
            return Targets{{at, std::string(usual)}};
        }
    }
    if (values.size() == 1) {
        return Targets{{at, std::string(values.front())}};
    }
    return wrong(
        name,
        "say which input of the node: '" + std::string(name) + ".input', where it has " +
            inputs_of(at)
    );
}

Result<ParameterNames::Targets> ParameterNames::find_role(std::string_view name, Role role) const {
    const std::vector<InputPlace> places = find_places(graph_, role);
    if (places.empty()) {
        return wrong(
            name, "the workflow has no input that this could be; there are " + names(name)
        );
    }
    Targets targets;
    bool is_one_node = true;
    bool is_one_value = true;
    for (const InputPlace& place : places) {
        targets.push_back({place.node, std::string(place.input)});
        is_one_node = is_one_node && place.node == places.front().node;
        is_one_value =
            is_one_value && *value_at(graph_, place) == *value_at(graph_, places.front());
    }
    // Inputs that hold the same now may be set together; others are different things.
    if (!is_one_node && !is_one_value) {
        NameList list;
        for (const Target& target : targets) {
            list.add(std::string(graph_[target.node].id) + "." + target.input);
        }
        return wrong(name, "it could be any of " + list.text() + ": name the one you mean");
    }
    return targets;
}

std::string ParameterNames::inputs_of(Position at) const {
    NameList list;
    for (const auto& input : *graph_[at].inputs) {
        list.add(std::string(view(input.key())));
    }
    return list.text();
}

std::string ParameterNames::ids_of(const std::vector<Position>& nodes) const {
    NameList list;
    for (const Position at : nodes) {
        list.add(std::string(graph_[at].id));
    }
    return list.text();
}

// What may be said instead, the nearest first.
std::string ParameterNames::names(std::string_view wanted) const {
    NameList list;
    std::vector<std::string> words;
    for (const Role role : kRoles) {
        if (!find_places(graph_, role).empty()) {
            words.emplace_back(to_string(role));
        }
    }
    if (declared_ != nullptr) {
        for (const auto& entry : *declared_) {
            words.emplace_back(view(entry.key()));
            if (words.size() > kNamesListed) {
                break;
            }
        }
    }
    for (const auto& [title, nodes] : titles_) {
        if (words.size() > 3 * kNamesListed) {
            break;
        }
        words.emplace_back(title);
    }
    Nearest nearest;
    nearest.seek(wanted);
    for (const std::string& word : words) {
        nearest.consider(word);
    }
    if (!nearest.best().empty()) {
        list.add("'" + nearest.best() + "' (is that meant?)");
    }
    for (const std::string& word : words) {
        list.add("'" + word + "'");
    }
    for (const Graph::Node& node : graph_.nodes()) {
        for (const auto& input : *node.inputs) {
            if (!input.value().is_array()) {
                list.add(std::string(node.id) + "." + std::string(view(input.key())));
            }
        }
        if (&node - graph_.nodes().data() > 30) {
            break;
        }
    }
    return list.text();
}

std::vector<std::string_view> ParameterNames::titles() const {
    std::vector<std::pair<Position, std::string_view>> found;
    for (const auto& [title, nodes] : titles_) {
        found.emplace_back(nodes.front(), title);
    }
    std::ranges::sort(found);
    std::vector<std::string_view> titles;
    for (const auto& [at, title] : found) {
        titles.push_back(title);
    }
    return titles;
}

bool ParameterNames::is_seed(const Target& target) const {
    if (target.input == "seed" || target.input.ends_with("_seed")) {
        return true;
    }
    const json::value* now = graph_[target.node].inputs->if_contains(target.input);
    return target.input == "value" && now != nullptr && now->is_number();
}

}  // namespace comfyd::workflow
