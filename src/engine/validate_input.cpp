#include "engine/validate_input.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "engine/python_text.hpp"

namespace comfyd::engine {
namespace {

using MaybeError = std::optional<json::object>;

json::value to_value(const std::vector<std::string>& texts) {
    json::array array;
    for (const std::string& text : texts) {
        array.emplace_back(text);
    }
    return array;
}

json::object value_error(
    const InputSubject& subject,
    std::string_view type,
    std::string_view message,
    json::value received
) {
    json::object extra = input_facts(subject);
    extra["received_value"] = std::move(received);
    return make_error(type, message, subject.input.name, std::move(extra));
}

json::object conversion_error(const InputSubject& subject, const std::string& exception) {
    json::object extra = input_facts(subject);
    extra["received_value"] = subject.value;
    extra["exception_message"] = exception;
    return make_error(
        "invalid_input_type",
        "Failed to convert an input value to a " + subject.input.type + " value",
        subject.input.name + ", " + python_str(subject.value) + ", " + exception,
        std::move(extra)
    );
}

bool checked_by_node(const InputSubject& subject) {
    return subject.node.checked_input == subject.input.name;
}

// `text` is how Python shows the number.
MaybeError check_limits(
    const InputSubject& subject, double number, const std::string& text, const json::value& received
) {
    if (!subject.input.options || checked_by_node(subject)) {
        return std::nullopt;
    }
    const json::value* min = json::find(*subject.input.options, "min");
    const json::value* max = json::find(*subject.input.options, "max");
    if (min != nullptr && number < min->to_number<double>()) {
        return value_error(
            subject,
            "value_smaller_than_min",
            "Value " + text + " smaller than min of " + python_str(*min),
            received
        );
    }
    if (max != nullptr && number > max->to_number<double>()) {
        return value_error(
            subject,
            "value_bigger_than_max",
            "Value " + text + " bigger than max of " + python_str(*max),
            received
        );
    }
    return std::nullopt;
}

MaybeError coerce_int(const InputSubject& subject) {
    const auto converted = python_int(subject.value);
    if (!converted) {
        return conversion_error(subject, converted.error());
    }
    if (converted->value) {
        subject.value = *converted->value;
        const auto number = static_cast<double>(*converted->value);
        return check_limits(subject, number, converted->text, subject.value);
    }
    // Beyond 64 bits: out of any limit that a node can have.
    const double beyond = converted->negative ? -HUGE_VAL : HUGE_VAL;
    if (auto error = check_limits(subject, beyond, converted->text, subject.value)) {
        return error;
    }
    return conversion_error(subject, "the number does not fit into 64 bits");
}

MaybeError coerce_float(const InputSubject& subject) {
    const auto converted = python_float(subject.value);
    if (!converted) {
        return conversion_error(subject, converted.error());
    }
    const json::value number(*converted);
    // JSON has no infinity, so the value is reported as it came.
    const json::value& received = std::isfinite(*converted) ? number : subject.value;
    if (auto error = check_limits(subject, *converted, python_str(number), received)) {
        return error;
    }
    if (!std::isfinite(*converted)) {
        return conversion_error(subject, python_str(number) + " is not a usable number");
    }
    subject.value = number;
    return std::nullopt;
}

MaybeError check_choice(const InputSubject& subject) {
    constexpr std::size_t kChoicesShown = 20;
    const std::vector<std::string> choices = choices_of(subject.input, subject.folders);
    const boost::json::string* chosen = subject.value.if_string();
    if (chosen != nullptr &&
        std::ranges::find(choices, std::string_view(chosen->data(), chosen->size())) !=
            choices.end()) {
        return std::nullopt;
    }
    json::object extra = input_facts(subject);
    std::string list;
    if (choices.size() > kChoicesShown) {
        extra["input_config"] = nullptr;
        list = "(list of length " + std::to_string(choices.size()) + ")";
    } else {
        list = python_repr(to_value(choices));
    }
    extra["received_value"] = subject.value;
    return make_error(
        "value_not_in_list",
        "Value not in list",
        subject.input.name + ": " + python_repr(subject.value) + " not in " + list,
        std::move(extra)
    );
}

}  // namespace

json::object make_error(
    std::string_view type,
    std::string_view message,
    std::string_view details,
    json::object extra_info
) {
    json::object error;
    error["type"] = type;
    error["message"] = message;
    error["details"] = details;
    error["extra_info"] = std::move(extra_info);
    return error;
}

json::object input_facts(const InputSubject& subject) {
    json::array config = describe(subject.input, subject.node.schema, subject.folders);
    // ComfyUI fills empty options in here, though not in /object_info.
    if (config.size() == 1) {
        config.emplace_back(json::object());
    }
    json::object facts;
    facts["input_name"] = subject.input.name;
    facts["input_config"] = std::move(config);
    return facts;
}

std::optional<json::object> judge_literal(const InputSubject& subject) {
    if (json::object* wrapper = subject.value.if_object()) {
        if (json::value* wrapped = wrapper->if_contains("__value__")) {
            json::value inner = std::move(*wrapped);
            subject.value = std::move(inner);
        }
    }
    const std::string& type = subject.input.type;
    if (type == "INT") {
        return coerce_int(subject);
    }
    if (type == "FLOAT") {
        return coerce_float(subject);
    }
    if (type == "STRING") {
        subject.value = json::value(python_str(subject.value));
    } else if (type == "BOOLEAN") {
        subject.value = python_bool(subject.value);
    } else if (type == "COMBO" && !checked_by_node(subject)) {
        return check_choice(subject);
    }
    return std::nullopt;
}

}  // namespace comfyd::engine
