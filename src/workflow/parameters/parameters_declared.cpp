#include "workflow/parameters/parameters_declared.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "base/text.hpp"
#include "workflow/parameters/parameters_names.hpp"

namespace comfyd::workflow {
namespace {

constexpr std::array<std::string_view, 6> kTypeNames{
    "any", "string", "integer", "number", "boolean", "file"
};
constexpr std::array<std::string_view, 11> kMembers{
    "target",
    "node",
    "input",
    "title",
    "description",
    "type",
    "default",
    "minimum",
    "maximum",
    "enum",
    "required",
};
constexpr std::size_t kTitleBytesMax = 200;
constexpr std::size_t kDescriptionBytesMax = 4'000;
constexpr std::size_t kChoicesMax = 1'000;

boost::json::string_view key(std::string_view text) {
    return {text.data(), text.size()};
}

tl::unexpected<Error> wrong(std::string_view name, const std::string& message) {
    const std::string shown(name.substr(0, kDeclaredNameBytesMax));
    return fail(
        Code::invalid_argument,
        "parameter '" + shown + "': " + message,
        {{"field", "parameters." + shown}, {"parameter", shown}}
    );
}

std::string joined(const auto& names) {
    std::string text;
    for (const std::string_view name : names) {
        text += (text.empty() ? "" : ", ") + std::string(name);
    }
    return text;
}

// A name without a dot never looks like "node.input".
bool is_name(std::string_view name) {
    return !name.empty() && name.size() <= kDeclaredNameBytesMax &&
           std::ranges::none_of(name, [](unsigned char c) { return c < 0x20 || c == '.'; });
}

json::array target_texts(const ParameterNames& names, const ParameterNames::Targets& targets) {
    json::array texts;
    for (const ParameterNames::Target& target : targets) {
        texts.emplace_back(std::string(names.graph()[target.node].id) + "." + target.input);
    }
    return texts;
}

Result<> copy_text(
    std::string_view name,
    const json::object& from,
    std::string_view member,
    std::size_t bytes_max,
    json::object& into
) {
    const json::value* found = json::find(from, member);
    if (found == nullptr) {
        return {};
    }
    if (!found->is_string() || found->get_string().size() > bytes_max) {
        return wrong(
            name,
            "'" + std::string(member) + "' must be a text of at most " + std::to_string(bytes_max) +
                " bytes"
        );
    }
    into[key(member)] = *found;
    return {};
}

bool is_scalar(const json::value& value) {
    return value.is_string() || value.is_number() || value.is_bool();
}

Result<> copy_type(std::string_view name, const json::object& from, json::object& into) {
    const json::value* type = json::find(from, "type");
    if (type == nullptr) {
        return {};
    }
    if (!type->is_string() || !parse_parameter_type(view(type->get_string()))) {
        return wrong(name, "'type' must be one of " + joined(kTypeNames));
    }
    into["type"] = *type;
    return {};
}

Result<> copy_limits(std::string_view name, const json::object& from, json::object& into) {
    for (const char* member : {"minimum", "maximum"}) {
        const json::value* limit = json::find(from, member);
        if (limit == nullptr) {
            continue;
        }
        if (!limit->is_number()) {
            return wrong(name, "'" + std::string(member) + "' must be a number");
        }
        const json::value* type = into.if_contains("type");
        if (type != nullptr && *type != "integer" && *type != "number") {
            return wrong(
                name,
                "'" + std::string(member) + "' is for numbers, but its type is " +
                    std::string(type->get_string())
            );
        }
        into[member] = *limit;
    }
    const json::value* minimum = into.if_contains("minimum");
    const json::value* maximum = into.if_contains("maximum");
    if (minimum != nullptr && maximum != nullptr &&
        minimum->to_number<double>() > maximum->to_number<double>()) {
        return wrong(name, "'minimum' is above 'maximum'");
    }
    return {};
}

Result<> copy_choices(std::string_view name, const json::object& from, json::object& into) {
    const json::value* choices = json::find(from, "enum");
    if (choices == nullptr) {
        return {};
    }
    const json::array* list = choices->if_array();
    if (list == nullptr || list->empty() || list->size() > kChoicesMax ||
        !std::ranges::all_of(*list, is_scalar)) {
        return wrong(
            name,
            "'enum' must be a list of 1 to " + std::to_string(kChoicesMax) +
                " texts, numbers, true or false"
        );
    }
    into["enum"] = *list;
    return {};
}

Result<> copy_default(std::string_view name, const json::object& from, json::object& into) {
    const json::value* required = json::find(from, "required");
    if (required != nullptr && !required->is_bool()) {
        return wrong(name, "'required' must be true or false");
    }
    const json::value* otherwise = json::find(from, "default");
    if (otherwise != nullptr) {
        into["default"] = *otherwise;
    }
    if (required != nullptr && required->get_bool()) {
        if (otherwise != nullptr) {
            return wrong(name, "it is required, so its default would never be used");
        }
        into["required"] = true;
    }
    return {};
}

Result<> copy_members(std::string_view name, const json::object& from, json::object& into) {
    for (const auto& member : from) {
        if (std::ranges::find(kMembers, view(member.key())) == kMembers.end()) {
            return wrong(
                name,
                "'" + std::string(view(member.key()).substr(0, 100)) +
                    "' means nothing here; there are " + joined(kMembers)
            );
        }
    }
    if (auto done = copy_text(name, from, "title", kTitleBytesMax, into); !done) {
        return done;
    }
    if (auto done = copy_text(name, from, "description", kDescriptionBytesMax, into); !done) {
        return done;
    }
    if (auto done = copy_type(name, from, into); !done) {
        return done;
    }
    if (auto done = copy_default(name, from, into); !done) {
        return done;
    }
    if (auto done = copy_limits(name, from, into); !done) {
        return done;
    }
    return copy_choices(name, from, into);
}

// The title that a person gave a node says more than its class.
bool is_own_title(
    const ParameterNames& names,
    std::string_view title,
    const ParameterNames::Targets& targets,
    const PromptClasses& classes
) {
    const std::string_view class_type = names.graph()[targets.front().node].class_type;
    if (title == class_type) {
        return false;
    }
    const NodeDefinition* definition = classes.find(class_type);
    const json::value* shown =
        definition != nullptr ? json::find(definition->info(), "display_name") : nullptr;
    return shown == nullptr || !shown->is_string() || view(shown->get_string()) != title;
}

}  // namespace

std::string_view to_string(ParameterType type) {
    return kTypeNames[static_cast<std::size_t>(type)];
}

std::optional<ParameterType> parse_parameter_type(std::string_view name) {
    const auto found = std::ranges::find(kTypeNames, name);
    if (found == kTypeNames.end()) {
        return std::nullopt;
    }
    return static_cast<ParameterType>(found - kTypeNames.begin());
}

Result<json::object> read_declarations(const json::object& declared, const json::object& graph) {
    if (declared.size() > kDeclaredMax) {
        return fail(
            Code::invalid_argument,
            "at most " + std::to_string(kDeclaredMax) + " parameters can be declared",
            {{"field", "parameters"}}
        );
    }
    const ParameterNames names(graph, nullptr);
    json::object read;
    for (const auto& entry : declared) {
        const std::string_view name = view(entry.key());
        if (!is_name(name)) {
            return wrong(
                name,
                "a name has from 1 to " + std::to_string(kDeclaredNameBytesMax) +
                    " bytes and no dots"
            );
        }
        auto targets = names.read_declaration(name, entry.value());
        if (!targets) {
            return fail(std::move(targets.error()));
        }
        json::object one;
        one["target"] = target_texts(names, *targets);
        if (const json::object* members = entry.value().if_object()) {
            if (auto copied = copy_members(name, *members, one); !copied) {
                return fail(std::move(copied.error()));
            }
        }
        read[entry.key()] = std::move(one);
    }
    if (json::serialize(read).size() > kDeclaredBytesMax) {
        return fail(
            Code::invalid_argument,
            "the declarations of parameters have more than " + std::to_string(kDeclaredBytesMax) +
                " bytes",
            {{"field", "parameters"}}
        );
    }
    return read;
}

json::object offer_parameters(const json::object& graph, const PromptClasses& classes) {
    const ParameterNames names(graph, nullptr);
    json::object offered;
    ParameterNames::Targets covered;
    const auto offer = [&](std::string_view name, const ParameterNames::Targets& targets) {
        offered[key(name)] = json::object{{"target", target_texts(names, targets)}};
        covered.insert(covered.end(), targets.begin(), targets.end());
    };
    for (const Role role : kRoles) {
        if (const auto targets = names.find(to_string(role))) {
            offer(to_string(role), *targets);
        }
    }
    for (const std::string_view title : names.titles()) {
        if (offered.size() == kDeclaredMax) {
            break;
        }
        if (!is_name(title) || offered.contains(key(title))) {
            continue;
        }
        const auto targets = names.find(title);
        const bool is_new =
            targets && std::ranges::none_of(*targets, [&](const ParameterNames::Target& target) {
                return std::ranges::find(covered, target) != covered.end();
            });
        if (is_new && is_own_title(names, title, *targets, classes)) {
            offer(title, *targets);
        }
    }
    return offered;
}

}  // namespace comfyd::workflow
