// Whether values may be set: the other half of parameters_schema.hpp.
#include <algorithm>
#include <cmath>
#include <utility>

#include "base/text.hpp"
#include "workflow/catalogue/nearest.hpp"
#include "workflow/graph/python_text.hpp"
#include "workflow/parameters/parameters_schema.hpp"
#include "workflow/rules/issue.hpp"

namespace comfyd::workflow {
namespace {

constexpr std::size_t kChoicesNamed = 20;
constexpr std::size_t kProblemsNamed = 10;
constexpr double kWholeMax = 9'007'199'254'740'992.0;  // 2^53

boost::json::string_view key(std::string_view text) {
    return {text.data(), text.size()};
}

std::string choices_text(const json::array& choices) {
    std::string text;
    for (std::size_t i = 0; i < choices.size() && i < kChoicesNamed; ++i) {
        text += (i == 0 ? "" : ", ") + json::serialize(shortened(choices[i]));
    }
    return text + (choices.size() > kChoicesNamed ? ", …" : "");
}

std::string nearest_choice(const json::array& choices, const json::value& to) {
    Nearest nearest;
    if (!to.is_string()) {
        return {};
    }
    nearest.seek(view(to.get_string()));
    for (const json::value& choice : choices) {
        if (choice.is_string()) {
            nearest.consider(view(choice.get_string()));
        }
    }
    return nearest.best();
}

std::string_view words_for(ParameterType type) {
    switch (type) {
        case ParameterType::string:
            return "a text";
        case ParameterType::integer:
            return "a whole number";
        case ParameterType::number:
            return "a number";
        case ParameterType::boolean:
            return "true or false";
        case ParameterType::file:
            return "the name of a file or a reference to one";
        case ParameterType::any:
            break;
    }
    return "a value";
}

// Also puts whole numbers that were written as 5.0 right.
bool has_type(ParameterType type, json::value& value) {
    switch (type) {
        case ParameterType::string:
            return value.is_string();
        case ParameterType::integer:
            if (value.is_double() && value.get_double() == std::trunc(value.get_double()) &&
                std::abs(value.get_double()) <= kWholeMax) {
                value = static_cast<std::int64_t>(value.get_double());
            }
            return value.is_int64() || value.is_uint64();
        case ParameterType::number:
            return value.is_number();
        case ParameterType::boolean:
            return value.is_bool();
        case ParameterType::file:
            return value.is_string() || value.is_object();
        case ParameterType::any:
            break;
    }
    return true;
}

}  // namespace

int compare_numbers(const json::value& left, const json::value& right) {
    if (left.is_int64() || left.is_uint64()) {
        return python_compare(*python_int(left), right);
    }
    const double a = left.to_number<double>();
    const double b = right.to_number<double>();
    return a < b ? -1 : a > b ? 1 : 0;
}

json::object ParameterSchema::Problem::to_json() const {
    json::object made;
    made["parameter"] = parameter;
    made["reason"] = key(reason);
    made["message"] = message;
    if (!expected.is_null()) {
        made["expected"] = expected;
    }
    if (!suggestion.empty()) {
        made["suggestion"] = suggestion;
    }
    return made;
}

std::optional<ParameterSchema::Problem> ParameterSchema::judge_range(
    const Parameter& parameter, const json::value& value
) {
    const bool is_below =
        !parameter.minimum.is_null() && compare_numbers(value, parameter.minimum) < 0;
    const bool is_above =
        !parameter.maximum.is_null() && compare_numbers(value, parameter.maximum) > 0;
    if (!is_below && !is_above) {
        return std::nullopt;
    }
    json::object expected;
    std::string bounds;
    if (!parameter.minimum.is_null()) {
        expected["minimum"] = parameter.minimum;
        bounds = "at least " + json::serialize(parameter.minimum);
    }
    if (!parameter.maximum.is_null()) {
        expected["maximum"] = parameter.maximum;
        bounds +=
            (bounds.empty() ? "at most " : " and at most ") + json::serialize(parameter.maximum);
    }
    return Problem{
        parameter.name,
        "out_of_range",
        "it is " + json::serialize(value) + ", but must be " + bounds,
        std::move(expected),
    };
}

std::optional<ParameterSchema::Problem> ParameterSchema::judge(
    const Parameter& parameter, json::value& value
) {
    if (parameter.may_be_random && value == "random") {
        return std::nullopt;
    }
    if (!has_type(parameter.type, value)) {
        return Problem{
            parameter.name,
            "wrong_type",
            "it must be " + std::string(words_for(parameter.type)) +
                (parameter.may_be_random && is_numeric(parameter.type) ? " or \"random\"" : "") +
                ", not " + json::serialize(shortened(value)),
            json::value(key(to_string(parameter.type))),
        };
    }
    if (is_numeric(parameter.type)) {
        if (auto problem = judge_range(parameter, value)) {
            return problem;
        }
    }
    if (parameter.choices == nullptr ||
        std::ranges::any_of(*parameter.choices, [&](const json::value& choice) {
            return python_equal(choice, value);
        })) {
        return std::nullopt;
    }
    Problem problem{
        parameter.name,
        "not_in_enum",
        "it is " + json::serialize(shortened(value)) + ", but must be one of " +
            choices_text(*parameter.choices),
    };
    if (parameter.choices->size() <= kParameterChoicesShown) {
        problem.expected = *parameter.choices;
    }
    problem.suggestion = nearest_choice(*parameter.choices, value);
    return problem;
}

ParameterSchema::Problem ParameterSchema::unknown(std::string_view name) const {
    Nearest nearest;
    nearest.seek(name);
    std::string known;
    for (const Parameter& parameter : parameters_) {
        nearest.consider(parameter.name);
        known += (known.empty() ? "" : ", ") + parameter.name;
    }
    return Problem{
        std::string(name.substr(0, kDeclaredNameBytesMax)),
        "unknown_parameter",
        known.empty() ? "the workflow has no parameters"
                      : "the workflow has no such parameter; it has " + known,
        nullptr,
        nearest.best(),
    };
}

json::value ParameterSchema::read_text(std::string_view name, std::string_view text) const {
    const Parameter* parameter = find(name);
    const ParameterType type = parameter != nullptr ? parameter->type : ParameterType::any;
    if (type == ParameterType::string || type == ParameterType::file) {
        return key(text);
    }
    const std::string word = lower(trim(text));
    if (type == ParameterType::boolean) {
        for (const std::string_view yes : {"true", "yes", "1"}) {
            if (word == yes) {
                return true;
            }
        }
        for (const std::string_view no : {"false", "no", "0"}) {
            if (word == no) {
                return false;
            }
        }
    } else if (auto parsed = json::parse(trim(text))) {
        if (type == ParameterType::any || parsed->is_number()) {
            return std::move(*parsed);
        }
    }
    return key(text);
}

Result<json::object> ParameterSchema::accept(const json::object& values) const {
    json::object accepted;
    std::vector<Problem> problems;
    for (const auto& entry : values) {
        if (problems.size() == kDeclaredMax) {
            break;
        }
        const Parameter* parameter = find(view(entry.key()));
        if (parameter == nullptr) {
            problems.push_back(unknown(view(entry.key())));
            continue;
        }
        if (entry.value().is_null()) {
            continue;
        }
        json::value value = entry.value();
        if (auto problem = judge(*parameter, value)) {
            problems.push_back(std::move(*problem));
        } else {
            accepted[entry.key()] = std::move(value);
        }
    }
    for (const Parameter& parameter : parameters_) {
        const json::value* given = json::find(values, parameter.name);
        if (parameter.required && given == nullptr) {
            problems.push_back({parameter.name, "missing_parameter", "it must be given"});
        }
    }
    if (problems.empty()) {
        return accepted;
    }
    std::string message;
    json::array all;
    for (const Problem& problem : problems) {
        if (all.size() < kProblemsNamed) {
            message += (message.empty() ? "" : "; ") + std::string("parameter '") +
                       problem.parameter + "': " + problem.message;
        }
        all.emplace_back(problem.to_json());
    }
    return fail(
        Code::invalid_argument,
        std::move(message),
        {{"field", "params." + problems.front().parameter}, {"parameters", std::move(all)}}
    );
}

Result<> ParameterSchema::check_defaults() const {
    for (const Parameter& parameter : parameters_) {
        const json::value* otherwise = json::find(*parameter.declared, "default");
        if (otherwise == nullptr) {
            continue;
        }
        json::value value = *otherwise;
        if (const auto problem = judge(parameter, value)) {
            return fail(
                Code::invalid_argument,
                "parameter '" + parameter.name + "': its default is wrong: " + problem->message,
                {{"field", "parameters." + parameter.name}, {"parameter", parameter.name}}
            );
        }
    }
    return {};
}

}  // namespace comfyd::workflow
