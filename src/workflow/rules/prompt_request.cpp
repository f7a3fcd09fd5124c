#include "workflow/rules/prompt_request.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "base/text.hpp"
#include "workflow/graph/python_text.hpp"
#include "workflow/rules/prompt_rules.hpp"

namespace comfyd::workflow {
namespace {

// Stand for Python's number words while the text is read.
struct NumberWord {
    std::string_view word;
    std::string_view stand_in;
    double number;
};
constexpr std::array<NumberWord, 3> kNumberWords{{
    {"-Infinity", "\x7f-Infinity\x7f", -std::numeric_limits<double>::infinity()},
    {"Infinity", "\x7fInfinity\x7f", std::numeric_limits<double>::infinity()},
    {"NaN", "\x7fNaN\x7f", std::numeric_limits<double>::quiet_NaN()},
}};

const NumberWord* word_at(std::string_view text) {
    const auto* found = std::ranges::find_if(kNumberWords, [&](const NumberWord& candidate) {
        return text.starts_with(candidate.word);
    });
    return found == kNumberWords.end() ? nullptr : found;
}

// Outside of strings each word becomes its stand-in, a string.
std::string with_stand_ins(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    bool in_string = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (in_string && c == '\\' && i + 1 < text.size()) {
            out += c;
            out += text[++i];
            continue;
        }
        if (c == '"') {
            in_string = !in_string;
        }
        const NumberWord* word =
            !in_string && (c == '-' || c == 'I' || c == 'N') ? word_at(text.substr(i)) : nullptr;
        if (word == nullptr) {
            out += c;
            continue;
        }
        out += '"';
        out += word->stand_in;
        out += '"';
        i += word->word.size() - 1;
    }
    return out;
}

const NumberWord* stand_in_of(const json::value& value) {
    const boost::json::string* text = value.if_string();
    if (text == nullptr || text->empty() || text->front() != '\x7f') {
        return nullptr;
    }
    const auto* found = std::ranges::find_if(kNumberWords, [&](const NumberWord& candidate) {
        return candidate.stand_in == std::string_view(text->data(), text->size());
    });
    return found == kNumberWords.end() ? nullptr : found;
}

// The depth of what is parsed is limited.
void clear_stand_ins(json::value& value) {
    if (stand_in_of(value) != nullptr) {
        value = nullptr;
    } else if (json::array* items = value.if_array()) {
        for (json::value& item : *items) {
            clear_stand_ins(item);
        }
    } else if (json::object* members = value.if_object()) {
        for (auto& member : *members) {
            clear_stand_ins(member.value());
        }
    }
}

// Numbers at the places of inputs, null elsewhere.
void put_numbers(json::value& body) {
    json::object* fields = body.if_object();
    json::value* prompt = fields != nullptr ? fields->if_contains("prompt") : nullptr;
    if (prompt != nullptr && prompt->is_object()) {
        for (auto& node : prompt->get_object()) {
            json::value* inputs = node.value().is_object()
                                      ? node.value().get_object().if_contains("inputs")
                                      : nullptr;
            if (inputs == nullptr || !inputs->is_object()) {
                continue;
            }
            for (auto& input : inputs->get_object()) {
                if (const NumberWord* word = stand_in_of(input.value())) {
                    input.value() = word->number;
                }
            }
        }
    }
    clear_stand_ins(body);
}

json::object refuse(std::string_view field, std::string_view message) {
    json::object extra;
    extra["field"] = field;
    return make_prompt_error("invalid_request", message, field, std::move(extra));
}

std::optional<json::object> read_number(const json::object& fields, PromptRequest& into) {
    if (const json::value* number = fields.if_contains("number")) {
        const auto converted = python_float(*number);
        if (!converted || !std::isfinite(*converted)) {
            return refuse("number", "'number' must be a finite number; smaller ones run first");
        }
        into.number = *converted;
    } else if (const json::value* front = fields.if_contains("front")) {
        into.front = python_bool(*front);
    }
    return std::nullopt;
}

std::optional<json::object> read_prompt_id(const json::object& fields, PromptRequest& into) {
    const json::value* id = json::find(fields, "prompt_id");
    if (id == nullptr) {
        return std::nullopt;
    }
    if (!id->is_string() || !is_canonical_uuid(view(id->get_string()))) {
        return make_prompt_error(
            "invalid_prompt_id",
            "prompt_id must be a valid UUID",
            "prompt_id must be a UUID string in canonical lowercase hyphenated form; omit it to "
            "let the server generate one"
        );
    }
    into.prompt_id = std::string(view(id->get_string()));
    return std::nullopt;
}

// What Python's `in` would say for each node: a list, the keys of an object, or part of a text.
std::optional<json::object> read_targets(const json::object& fields, PromptRequest& into) {
    const json::value* targets = json::find(fields, "partial_execution_targets");
    if (targets == nullptr) {
        return std::nullopt;
    }
    std::vector<std::string> wanted;
    if (const json::array* list = targets->if_array()) {
        for (const json::value& item : *list) {
            if (item.is_string() && into.prompt.contains(item.get_string())) {
                wanted.emplace_back(view(item.get_string()));
            }
        }
    } else if (const json::object* keys = targets->if_object()) {
        for (const auto& key : *keys) {
            if (into.prompt.contains(key.key())) {
                wanted.emplace_back(view(key.key()));
            }
        }
    } else if (const boost::json::string* text = targets->if_string()) {
        constexpr std::size_t kTextMax = 4096;
        const std::string_view whole = std::string_view(text->data(), text->size());
        for (const auto& node : into.prompt) {
            if (whole.size() <= kTextMax && whole.find(view(node.key())) != whole.npos) {
                wanted.emplace_back(view(node.key()));
            }
        }
    } else {
        return refuse(
            "partial_execution_targets", "'partial_execution_targets' must be a list of node ids"
        );
    }
    into.targets = std::move(wanted);
    return std::nullopt;
}

std::optional<json::object> read_extra_data(json::object& fields, PromptRequest& into) {
    if (json::value* extra = fields.if_contains("extra_data")) {
        if (!extra->is_object()) {
            return refuse("extra_data", "'extra_data' must be an object");
        }
        into.extra_data = std::move(extra->get_object());
    }
    // With null in these places a worker's GET /api/jobs fails as long as it remembers the prompt.
    if (json::value* info = into.extra_data.if_contains("extra_pnginfo")) {
        if (info->is_null()) {
            into.extra_data.erase("extra_pnginfo");
        } else if (json::object* parts = info->if_object()) {
            const json::value* workflow = parts->if_contains("workflow");
            if (workflow != nullptr && workflow->is_null()) {
                parts->erase("workflow");
            }
        }
    }
    if (const json::value* client = fields.if_contains("client_id")) {
        into.extra_data["client_id"] = *client;
        into.client_id = client->is_null() ? "" : python_str(*client);
    }
    return std::nullopt;
}

}  // namespace

tl::expected<json::value, json::object> read_prompt_body(std::string_view text) {
    auto body = json::parse(text);
    if (!body && (text.find("NaN") != text.npos || text.find("Infinity") != text.npos)) {
        auto retried = json::parse(with_stand_ins(text));
        if (retried) {
            put_numbers(*retried);
            body = std::move(retried);
        }
    }
    if (!body) {
        return tl::unexpected(
            make_prompt_error("invalid_json", "The body is not valid JSON", body.error().message)
        );
    }
    return std::move(*body);
}

tl::expected<PromptRequest, json::object> parse_prompt_request(json::value body) {
    json::object* fields = body.if_object();
    const bool empty_list = body.is_array() && body.get_array().empty();
    if (fields == nullptr && !empty_list) {
        return tl::unexpected(refuse("body", "The body must be an object with the member 'prompt'")
        );
    }
    json::value* prompt = fields != nullptr ? fields->if_contains("prompt") : nullptr;
    if (prompt == nullptr) {
        return tl::unexpected(
            make_prompt_error("no_prompt", "No prompt provided", "No prompt provided")
        );
    }
    if (!prompt->is_object()) {
        return tl::unexpected(refuse(
            "prompt", "'prompt' must be an object that maps node ids to {class_type, inputs}"
        ));
    }
    PromptRequest request;
    request.prompt = std::move(prompt->get_object());
    for (const auto read : {read_number, read_prompt_id, read_targets}) {
        if (auto error = read(*fields, request)) {
            return tl::unexpected(std::move(*error));
        }
    }
    if (auto error = read_extra_data(*fields, request)) {
        return tl::unexpected(std::move(*error));
    }
    return request;
}

bool is_canonical_uuid(std::string_view text) {
    constexpr std::string_view kForm = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
    if (text.size() != kForm.size()) {
        return false;
    }
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        const bool hex = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
        if (kForm[i] == '-' ? c != '-' : !hex) {
            return false;
        }
    }
    return true;
}

}  // namespace comfyd::workflow
