#include "workflow/rules/input_rules.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "base/text.hpp"
#include "workflow/graph/python_text.hpp"

namespace comfyd::workflow {
namespace {

using MaybeError = std::optional<json::object>;

constexpr std::size_t kChoicesShown = 20;

// ComfyUI's own classes that check inputs which /object_info does not mark as uploads.
struct KnownCheck {
    std::string_view class_type;
    std::string_view input;  // empty: all of them
};
constexpr std::array<KnownCheck, 4> kKnownChecks{{
    {"CustomCombo", "choice"},
    {"KlingCameraControls", ""},
    {"LoadImageOutput", "image"},
    {"LoadLatent", "latent"},
}};

// Limits and choices are for ComfyUI to check, not for the class.
bool is_enforced(const InputSubject& subject) {
    if (subject.own_check != nullptr &&
        (subject.own_check->all_inputs ||
         std::ranges::find(subject.own_check->inputs, subject.input.name) !=
             subject.own_check->inputs.end())) {
        return false;
    }
    if (subject.options.own_checks_known) {
        return true;
    }
    if (subject.input.takes_upload()) {
        return false;
    }
    return subject.told || (!subject.node.is_custom() &&
                            std::ranges::none_of(kKnownChecks, [&](const KnownCheck& known) {
                                return known.class_type == subject.node.name() &&
                                       (known.input.empty() || known.input == subject.input.name);
                            }));
}

json::object value_error(
    const InputSubject& subject,
    std::string_view type,
    std::string_view message,
    const json::value& received
) {
    json::object extra = input_facts(subject);
    extra["received_value"] = json_safe(received);
    return make_prompt_error(type, message, subject.input.name, std::move(extra));
}

json::object conversion_error(const InputSubject& subject, const std::string& exception) {
    json::object extra = input_facts(subject);
    std::string details = subject.input.name;
    if (!subject.brief) {
        extra["received_value"] = json_safe(subject.value);
        details += ", " + python_str(subject.value) + ", " + exception;
    }
    extra["exception_message"] = exception;
    return make_prompt_error(
        "invalid_input_type",
        "Failed to convert an input value to a " + subject.input.type + " value",
        details,
        std::move(extra)
    );
}

// nullptr: none that can be compared with.
const json::value* limit_of(const InputSubject& subject, std::string_view name) {
    const json::value* limit =
        subject.input.options != nullptr ? json::find(*subject.input.options, name) : nullptr;
    return limit != nullptr && limit->is_number() ? limit : nullptr;
}

// `compare(limit)` is -1, 0 or 1; `received` the value as Python has it.
template <class Compare>
MaybeError judge_limits(
    const InputSubject& subject,
    Compare compare,
    const std::string& text,
    const json::value& received
) {
    const json::value* min = limit_of(subject, "min");
    if (min != nullptr && compare(*min) < 0) {
        return value_error(
            subject,
            "value_smaller_than_min",
            "Value " + text + " smaller than min of " + python_str(*min),
            received
        );
    }
    const json::value* max = limit_of(subject, "max");
    if (max != nullptr && compare(*max) > 0) {
        return value_error(
            subject,
            "value_bigger_than_max",
            "Value " + text + " bigger than max of " + python_str(*max),
            received
        );
    }
    return std::nullopt;
}

MaybeError judge_float_limits(const InputSubject& subject, double number) {
    const auto compare = [&](const json::value& limit) { return python_compare(number, limit); };
    const json::value received(number);
    return judge_limits(subject, compare, python_str(received), received);
}

MaybeError judge_int(const InputSubject& subject) {
    const auto converted = python_int(subject.value);
    if (!converted) {
        return conversion_error(subject, converted.error());
    }
    // Beyond 64 bits the value stays as it came: the worker converts it once more.
    const bool fits = !converted->value.is_null();
    if (fits) {
        subject.value = converted->value;
    }
    if (is_enforced(subject)) {
        const auto compare = [&](const json::value& limit) {
            return python_compare(*converted, limit);
        };
        if (auto error = judge_limits(subject, compare, converted->text, subject.value)) {
            return error;
        }
    }
    if (!fits && subject.options.plain_numbers) {
        return conversion_error(subject, "the number does not fit into 64 bits");
    }
    return std::nullopt;
}

MaybeError judge_float(const InputSubject& subject) {
    const auto converted = python_float(subject.value);
    if (!converted) {
        return conversion_error(subject, converted.error());
    }
    if (is_enforced(subject)) {
        if (auto error = judge_float_limits(subject, *converted)) {
            return error;
        }
    }
    if (!std::isfinite(*converted) && subject.options.plain_numbers) {
        return conversion_error(subject, "the number must be finite");
    }
    subject.value = json_safe(json::value(*converted));
    return std::nullopt;
}

// Limits of an input of any other type, which Python compares with whatever it is given.
InputFinding judge_other_limits(const InputSubject& subject) {
    const json::value* min = limit_of(subject, "min");
    const json::value* max = limit_of(subject, "max");
    if (min == nullptr && max == nullptr) {
        return std::nullopt;
    }
    if (subject.value.is_double()) {
        return judge_float_limits(subject, subject.value.get_double());
    }
    if (subject.value.is_number() || subject.value.is_bool()) {
        const auto number = python_int(subject.value);
        const auto compare = [&](const json::value& limit) {
            return python_compare(*number, limit);
        };
        return judge_limits(subject, compare, python_str(subject.value), subject.value);
    }
    const json::value& limit = min != nullptr ? *min : *max;
    return tl::unexpected(Raised{
        "TypeError",
        std::string("'") + (min != nullptr ? "<" : ">") + "' not supported between instances of '" +
            std::string(python_type(subject.value)) + "' and '" + std::string(python_type(limit)) +
            "'"
    });
}

MaybeError choice_error(const InputSubject& subject, const std::string& chosen) {
    json::object extra = input_facts(subject);
    std::string list;
    if (subject.input.choices->size() > kChoicesShown || subject.brief) {
        extra["input_config"] = nullptr;
        list = "(list of length " + std::to_string(subject.input.choices->size()) + ")";
    } else {
        list = python_repr(*subject.input.choices);
    }
    if (!subject.brief) {
        extra["received_value"] = json_safe(subject.value);
    }
    return make_prompt_error(
        "value_not_in_list",
        "Value not in list",
        subject.input.name + ": " + (subject.brief ? "the value" : chosen) + " not in " + list,
        std::move(extra)
    );
}

MaybeError judge_choice(const InputSubject& subject) {
    const json::value* multiple = subject.input.options != nullptr
                                      ? json::find(*subject.input.options, "multiselect")
                                      : nullptr;
    const json::array* several = subject.value.if_array();
    if (several == nullptr || multiple == nullptr || !python_bool(*multiple)) {
        if (subject.input.offers(subject.value)) {
            return std::nullopt;
        }
        return choice_error(subject, subject.brief ? "" : python_repr(subject.value));
    }
    std::string wrong;
    for (const json::value& choice : *several) {
        if (!subject.input.offers(choice)) {
            wrong += (wrong.empty() ? "" : ", ") + python_repr(choice);
        }
    }
    return wrong.empty() ? std::nullopt : choice_error(subject, wrong);
}

// visit(type) for each of "T1,T2,…" until it says true.
template <class Visit>
bool any_type(std::string_view types, Visit visit) {
    while (true) {
        const std::size_t comma = types.find(',');
        if (visit(trim(types.substr(0, comma), " "))) {
            return true;
        }
        if (comma == std::string_view::npos) {
            return false;
        }
        types.remove_prefix(comma + 1);
    }
}

constexpr std::string_view kNoType = "\n";  // meets only what takes anything

bool names_meet(std::string_view received, std::string_view wanted) {
    constexpr std::string_view kMatching = "COMFY_MATCHTYPE_V3";
    if (received == wanted || received == kMatching || wanted == kMatching) {
        return true;
    }
    return any_type(received, [&](std::string_view one) {
        return one == "*" || any_type(wanted, [&](std::string_view other) {
                   return other == "*" || other == one;
               });
    });
}

bool types_meet(const InputSubject& subject, const json::value& received) {
    const InputDefinition& input = subject.input;
    if (received.is_string()) {
        return input.combo_v1 ? received.get_string() == "*"
                              : names_meet(view(received.get_string()), input.type);
    }
    if (!received.is_array()) {
        return true;
    }
    // A list of choices in the place of a type.
    if (!input.combo_v1) {
        return input.type == "COMBO" || names_meet(kNoType, input.type);
    }
    if (subject.options.own_checks_known) {
        return received.get_array() == *input.choices;
    }
    // The lists of a fleet are those of all its workers.
    return std::ranges::any_of(received.get_array(), [&](const json::value& choice) {
        return input.offers(choice);
    });
}

}  // namespace

json::object input_facts(const InputSubject& subject) {
    json::object facts;
    facts["input_name"] = subject.input.name;
    if (subject.brief) {
        facts["input_config"] = nullptr;
        return facts;
    }
    json::array config;
    const json::array* pair = subject.input.config->if_array();
    config.push_back(pair != nullptr && !pair->empty() ? pair->front() : *subject.input.config);
    // ComfyUI fills empty options in here, though not in /object_info.
    config.push_back(
        pair != nullptr && pair->size() > 1 ? (*pair)[1] : json::value(json::object())
    );
    facts["input_config"] = std::move(config);
    return facts;
}

json::value json_safe(const json::value& from) {
    if (from.is_double() && !std::isfinite(from.get_double())) {
        return json::value(python_str(from));
    }
    return from;
}

InputFinding judge_literal(const InputSubject& subject) {
    if (json::object* wrapper = subject.value.if_object()) {
        if (json::value* wrapped = wrapper->if_contains("__value__")) {
            json::value inner = std::move(*wrapped);
            subject.value = std::move(inner);
        }
    }
    const std::string& type = subject.input.type;
    if (type == "INT") {
        return judge_int(subject);
    }
    if (type == "FLOAT") {
        return judge_float(subject);
    }
    if (type == "STRING") {
        if (!subject.value.is_string()) {
            subject.value = json::value(python_str(subject.value));
        }
    } else if (type == "BOOLEAN") {
        subject.value = python_bool(subject.value);
    }
    if (!is_enforced(subject)) {
        return std::nullopt;
    }
    if (auto finding = judge_other_limits(subject); !finding || *finding) {
        return finding;
    }
    if (type == "COMBO" && subject.input.choices != nullptr) {
        return judge_choice(subject);
    }
    return std::nullopt;
}

std::string type_text(const json::value& type) {
    return python_str(type);
}

std::optional<json::object> judge_type(const InputSubject& subject, const json::value& received) {
    if ((subject.own_check != nullptr && subject.own_check->link_types) ||
        types_meet(subject, received)) {
        return std::nullopt;
    }
    const std::string wanted = !subject.input.combo_v1 ? subject.input.type
                               : subject.brief         ? "a list"
                                                       : python_repr(*subject.input.choices);
    json::object extra = input_facts(subject);
    extra["received_type"] = received;
    extra["linked_node"] = subject.value;
    return make_prompt_error(
        "return_type_mismatch",
        "Return type mismatch between linked nodes",
        subject.input.name + ", received_type(" + type_text(received) + ") mismatch input_type(" +
            wanted + ")",
        std::move(extra)
    );
}

}  // namespace comfyd::workflow
