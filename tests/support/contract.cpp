#include "support/contract.hpp"

#include <algorithm>
#include <regex>
#include <stdexcept>

#include "base/text.hpp"
#include "net/http.hpp"
#include "support/temp_dir.hpp"

namespace comfyd::support {
namespace {

std::string type_of(const json::value& value) {
    if (value.is_string()) {
        return "string";
    }
    if (value.is_int64() || value.is_uint64()) {
        return "integer";
    }
    if (value.is_double()) {
        return "number";
    }
    if (value.is_bool()) {
        return "boolean";
    }
    if (value.is_null()) {
        return "null";
    }
    return value.is_array() ? "array" : "object";
}

bool is_type(const json::value& value, const json::value& wanted) {
    const std::string type = type_of(value);
    const auto is_it = [&](const json::value& name) {
        return name.as_string() == type || (name.as_string() == "number" && type == "integer");
    };
    return wanted.is_array() ? std::ranges::any_of(wanted.get_array(), is_it) : is_it(wanted);
}

bool is_set(const json::object& shape, std::string_view name) {
    const json::value* found = json::find(shape, name);
    return found != nullptr && found->is_bool() && found->get_bool();
}

bool is_port(std::string_view text) {
    const std::size_t slash = text.find('/');
    const std::string_view protocol = text.substr(std::min(slash + 1, text.size()));
    return slash != std::string_view::npos && slash > 0 &&
           text.substr(0, slash).find_first_not_of("0123456789") == std::string_view::npos &&
           (protocol == "http" || protocol == "tcp");
}

}  // namespace

Contract::Contract(const std::string& file) {
    auto parsed = json::parse_object(read_file(file));
    if (!parsed) {
        throw std::runtime_error(file + ": " + parsed.error().message);
    }
    file_ = std::move(*parsed);
    for (const json::value& entry : file_.at("routes").as_array()) {
        const json::object& about = entry.as_object();
        routes_.push_back(
            {std::string(view(about.at("name").as_string())),
             std::string(view(about.at("method").as_string())),
             std::string(view(about.at("path").as_string())),
             static_cast<int>(about.at("status").as_int64()),
             about}
        );
    }
}

std::optional<Contract::Match> Contract::find(std::string_view method, std::string_view path)
    const {
    constexpr std::string_view kId = "{id}";
    for (const ContractRoute& route : routes_) {
        if (route.method != method) {
            continue;
        }
        const std::size_t at = route.path.find(kId);
        if (at == std::string::npos) {
            if (route.path == path) {
                return Match{&route};
            }
            continue;
        }
        const std::string_view before = std::string_view(route.path).substr(0, at);
        const std::string_view after = std::string_view(route.path).substr(at + kId.size());
        if (!path.starts_with(before) || !path.ends_with(after) ||
            path.size() <= before.size() + after.size()) {
            continue;
        }
        const std::string_view id =
            path.substr(before.size(), path.size() - before.size() - after.size());
        if (id.find('/') == std::string_view::npos) {
            return Match{&route, std::string(id)};
        }
    }
    return std::nullopt;
}

std::vector<std::string> Contract::check_query(const ContractRoute& route, std::string_view query)
    const {
    std::vector<std::string> wrong;
    const json::value* allowed = json::find(route.about, "query");
    for (const auto& [name, text] : net::parse_query(query)) {
        const json::value* kind =
            allowed != nullptr ? json::find(allowed->as_object(), name) : nullptr;
        const std::string value = text;
        if (kind == nullptr) {
            wrong.push_back("there is no parameter '" + name + "'");
        } else if (kind->is_array()) {
            const auto is_it = [&](const json::value& one) { return one.as_string() == value; };
            if (!std::ranges::any_of(kind->get_array(), is_it)) {
                wrong.push_back("'" + name + "' cannot be '" + value + "'");
            }
        } else if (kind->as_string() == "integer" &&
                   (value.empty() || value.find_first_not_of("0123456789") != std::string::npos)) {
            wrong.push_back("'" + name + "' must be a number");
        }
    }
    return wrong;
}

const json::object& Contract::shape_of(const json::value& named) const {
    const json::object& shape = named.as_object();
    const json::value* name = json::find(shape, "$");
    return name == nullptr ? shape
                           : file_.at("shapes").as_object().at(name->as_string()).as_object();
}

void Contract::check(
    const json::value& value,
    const json::object& shape,
    const std::string& where,
    std::vector<std::string>& wrong
) const {
    const auto say = [&](const std::string& what) { wrong.push_back(where + ": " + what); };
    const json::value* type = json::find(shape, "type");
    if (type != nullptr && !is_type(value, *type)) {
        say("it is of the type " + type_of(value));
        return;
    }
    if (const json::value* words = json::find(shape, "enum")) {
        if (std::ranges::find(words->as_array(), value) == words->as_array().end()) {
            say("it cannot be " + json::serialize(value));
        }
    }
    if (const json::value* least = json::find(shape, "minimum");
        least != nullptr && value.to_number<double>() < least->to_number<double>()) {
        say("it is too small");
    }
    if (value.is_string()) {
        if (shape.contains("minLength") && value.get_string().empty()) {
            say("it is empty");
        }
        const json::value* most = json::find(shape, "maxLength");
        if (most != nullptr && value.get_string().size() > most->to_number<std::size_t>()) {
            say("it is too long");
        }
        const json::value* pattern = json::find(shape, "pattern");
        if (pattern != nullptr &&
            !std::regex_match(
                std::string(value.get_string()), std::regex(std::string(pattern->as_string()))
            )) {
            say("it is not of the form " + std::string(pattern->as_string()));
        }
        if (shape.contains("form") && !is_port(view(value.get_string()))) {
            say("it must look like 8188/http");
        }
    }
    if (const json::array* list = value.if_array()) {
        const json::value* most = json::find(shape, "maxItems");
        if (most != nullptr && list->size() > most->to_number<std::size_t>()) {
            say("it has too many elements");
        }
        if (const json::value* items = json::find(shape, "items")) {
            for (const json::value& element : *list) {
                check(element, shape_of(*items), where + "[]", wrong);
            }
        }
    }
    const json::object* members = value.if_object();
    if (members == nullptr) {
        return;
    }
    const json::value* most = json::find(shape, "maxProperties");
    if (most != nullptr && members->size() > most->to_number<std::size_t>()) {
        say("it has too many members");
    }
    if (const json::value* required = json::find(shape, "required")) {
        for (const json::value& name : required->as_array()) {
            if (!members->contains(name.as_string())) {
                say("'" + std::string(view(name.as_string())) + "' is missing");
            }
        }
    }
    const json::value* properties = json::find(shape, "properties");
    const json::value* values = json::find(shape, "values");
    for (const auto& [key, member] : *members) {
        const std::string name(view(key));
        const json::value* known =
            properties != nullptr ? json::find(properties->as_object(), name) : nullptr;
        if (known != nullptr || values != nullptr) {
            check(member, shape_of(known != nullptr ? *known : *values), where + "." + name, wrong);
        } else if (!is_set(shape, "open")) {
            say("additional properties '" + name + "' not allowed");
        }
        if (is_set(shape, "no_empty_texts") && member.is_string() && member.get_string().empty()) {
            say("'" + name + "' is empty: leave it out");
        }
    }
}

std::vector<std::string> Contract::check_body(const ContractRoute& route, std::string_view body)
    const {
    const json::value* shape = json::find(route.about, "body");
    if (shape == nullptr) {
        return body.empty() ? std::vector<std::string>()
                            : std::vector<std::string>{"a body is not taken"};
    }
    const auto parsed = json::parse(body.empty() ? "{}" : body);
    if (!parsed) {
        return {"the body is not JSON"};
    }
    std::vector<std::string> wrong;
    check(*parsed, shape_of(*shape), "$", wrong);
    return wrong;
}

std::vector<std::string> Contract::check_answer(const ContractRoute& route, std::string_view body)
    const {
    const json::value* shape = json::find(route.about, "answer");
    if (shape == nullptr) {
        return {};
    }
    const auto parsed = json::parse(body);
    if (!parsed) {
        return {"the answer is not JSON"};
    }
    std::vector<std::string> wrong;
    check(*parsed, shape_of(*shape), "$", wrong);
    return wrong;
}

}  // namespace comfyd::support
