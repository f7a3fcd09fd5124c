// StringFormat: Python's str.format() over the connected values.
#include <optional>
#include <string>
#include <utility>

#include "engine/nodes/call.hpp"
#include "engine/nodes/text/format_spec.hpp"
#include "engine/nodes/text/python_value.hpp"
#include "engine/nodes/text/text.hpp"
#include "engine/nodes/text/unicode.hpp"
#include "workflow/graph/python_text.hpp"

namespace comfyd::engine::nodes {
namespace {

using Text = tl::expected<std::string, FormatProblem>;
using Found = tl::expected<json::value, FormatProblem>;

tl::unexpected<FormatProblem> refuse(std::string text, std::string type = "ValueError") {
    return tl::unexpected(FormatProblem{.exception_type = std::move(type), .text = std::move(text)}
    );
}

bool all_digits(std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}

Found item_of(const json::value& value, std::string_view key) {
    const std::string type(workflow::python_type(value));
    const bool is_index = all_digits(key);
    const std::size_t index = is_index && key.size() < 10 ? std::stoul(std::string(key)) : SIZE_MAX;
    if (const json::object* object = value.if_object()) {
        const json::value* found = is_index ? nullptr : object->if_contains(key);
        if (found == nullptr) {
            return refuse(
                is_index ? std::string(key) : workflow::python_repr(json::value(key)), "KeyError"
            );
        }
        return *found;
    }
    if (const json::array* array = value.if_array()) {
        if (!is_index) {
            return refuse("list indices must be integers or slices, not str", "TypeError");
        }
        if (index >= array->size()) {
            return refuse("list index out of range", "IndexError");
        }
        return (*array)[index];
    }
    if (value.is_string()) {
        if (!is_index) {
            return refuse("string indices must be integers, not 'str'", "TypeError");
        }
        const std::u32string points = to_points(workflow::python_str(value));
        if (index >= points.size()) {
            return refuse("string index out of range", "IndexError");
        }
        return json::value(to_utf8(points.substr(index, 1)));
    }
    return refuse("'" + type + "' object is not subscriptable", "TypeError");
}

Found attribute_of(const json::value& value, std::string_view name) {
    if (value.is_number()) {
        if (name == "real" || (name == "numerator" && !value.is_double())) {
            return value;
        }
        if (name == "imag") {
            return value.is_double() ? json::value(0.0) : json::value(0);
        }
        if (name == "denominator" && !value.is_double()) {
            return json::value(1);
        }
    }
    return refuse(
        "'" + std::string(workflow::python_type(value)) + "' object has no attribute '" +
            std::string(name) + "'",
        "AttributeError"
    );
}

// The parts of one {field}.
struct Field {
    std::string_view name;
    char conversion = 0;
    std::string_view spec;
};

class Formatter {
public:
    explicit Formatter(const Call& call) : call_(call) {}

    Text format(std::string_view text, int depth) {
        if (depth > 2) {
            return refuse("Max string recursion exceeded");
        }
        std::string out;
        for (std::size_t at = 0; at < text.size();) {
            const char c = text[at++];
            if (c != '{' && c != '}') {
                out += c;
                continue;
            }
            if (at < text.size() && text[at] == c) {
                out += c;
                ++at;
                continue;
            }
            if (c == '}') {
                return refuse("Single '}' encountered in format string");
            }
            if (at == text.size()) {
                return refuse("Single '{' encountered in format string");
            }
            if (call_.stopped()) {
                return refuse("The run was cancelled.", "InterruptedError");
            }
            auto field = read_field(text, at);
            if (!field) {
                return tl::unexpected(std::move(field.error()));
            }
            auto shown = show(*field, depth);
            if (!shown) {
                return shown;
            }
            if (out.size() + shown->size() > kTextBytesMax) {
                return refuse("The text would be too long.", "MemoryError");
            }
            out += *shown;
        }
        return out;
    }

private:
    static tl::expected<Field, FormatProblem> read_field(std::string_view text, std::size_t& at) {
        Field field;
        const std::size_t begin = at;
        bool in_brackets = false;
        while (at < text.size()) {
            const char c = text[at];
            if (c == '{') {
                return refuse("unexpected '{' in field name");
            }
            in_brackets = c == '[' || (in_brackets && c != ']');
            if (!in_brackets && (c == '}' || c == ':' || c == '!')) {
                break;
            }
            ++at;
        }
        if (at == text.size()) {
            return refuse("expected '}' before end of string");
        }
        field.name = text.substr(begin, at - begin);
        if (text[at] == '!') {
            if (at + 1 >= text.size()) {
                return refuse("end of string while looking for conversion specifier");
            }
            field.conversion = text[at + 1];
            at += 2;
            if (at >= text.size()) {
                return refuse("unmatched '{' in format spec");
            }
            if (text[at] != ':' && text[at] != '}') {
                return refuse("expected ':' after conversion specifier");
            }
        }
        if (text[at] == '}') {
            ++at;
            return field;
        }
        const std::size_t spec = ++at;
        for (int open = 1; at < text.size(); ++at) {
            open += text[at] == '{' ? 1 : text[at] == '}' ? -1 : 0;
            if (open == 0) {
                field.spec = text.substr(spec, at - spec);
                ++at;
                return field;
            }
        }
        return refuse("unmatched '{' in format spec");
    }

    Found value_of(std::string_view name) {
        std::size_t at = std::min(name.find_first_of(".["), name.size());
        const std::string_view first = name.substr(0, at);
        if (first.empty() || all_digits(first)) {
            const std::string index =
                first.empty() ? std::to_string(next_index_++) : std::string(first);
            return refuse(
                "Replacement index " + index + " out of range for positional args tuple",
                "IndexError"
            );
        }
        const Value* value = nullptr;
        for (const Call::Grown& grown : call_.grown("values")) {
            if (grown.name == first) {
                value = &grown.value;
            }
        }
        if (value == nullptr) {
            return refuse(workflow::python_repr(json::value(first)), "KeyError");
        }
        Found current = to_json(*value).value_or(json::value(python_str(*value)));
        while (current && at < name.size()) {
            current = step(*current, name, at);
        }
        return current;
    }

    static Found step(const json::value& from, std::string_view name, std::size_t& at) {
        const char opening = name[at++];
        if (opening == '.') {
            const std::size_t end = std::min(name.find_first_of(".[", at), name.size());
            const std::string_view attribute = name.substr(at, end - at);
            at = end;
            if (attribute.empty()) {
                return refuse("Empty attribute in format string");
            }
            return attribute_of(from, attribute);
        }
        if (opening != '[') {
            return refuse("Only '.' or '[' may follow ']' in format field specifier");
        }
        const std::size_t end = name.find(']', at);
        if (end == name.npos) {
            return refuse("Missing ']' in format string");
        }
        const std::string_view key = name.substr(at, end - at);
        at = end + 1;
        if (key.empty()) {
            return refuse("Empty attribute in format string");
        }
        return item_of(from, key);
    }

    Text show(const Field& field, int depth) {
        auto value = value_of(field.name);
        if (!value) {
            return tl::unexpected(std::move(value.error()));
        }
        if (field.conversion == 's') {
            *value = json::value(workflow::python_str(*value));
        } else if (field.conversion == 'r' || field.conversion == 'a') {
            *value = json::value(workflow::python_repr(*value));
        } else if (field.conversion != 0) {
            return refuse(std::string("Unknown conversion specifier ") + field.conversion);
        }
        if (field.conversion == 'a') {
            *value = json::value(ascii_only(workflow::python_str(*value)));
        }
        if (field.spec.find('{') == field.spec.npos) {
            return python_format(*value, field.spec);
        }
        auto spec = format(field.spec, depth + 1);
        if (!spec) {
            return spec;
        }
        return python_format(*value, *spec);
    }

    static std::string ascii_only(const std::string& text) {
        std::string out;
        for (const char32_t point : to_points(text)) {
            char buffer[12] = {};
            if (point < 0x80) {
                out += static_cast<char>(point);
                continue;
            }
            const char* pattern = point < 0x100     ? "\\x%02x"
                                  : point < 0x10000 ? "\\u%04x"
                                                    : "\\U%08x";
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wformat-nonliteral"
            std::snprintf(buffer, sizeof buffer, pattern, static_cast<unsigned>(point));
#pragma clang diagnostic pop
            out += buffer;
        }
        return out;
    }

    const Call& call_;
    std::size_t next_index_ = 0;
};

Result<NodeResult> compute(Call& call) {
    auto text = Formatter(call).format(call.text("f_string"), 1);
    if (auto going = call.check_stopped(); !going) {
        return fail(std::move(going.error()));
    }
    if (!text) {
        return node_error(text.error().exception_type, text.error().text);
    }
    return NodeResult{.outputs = {std::move(*text)}};
}

}  // namespace

NodeClass string_format() {
    return {
        .name = "StringFormat",
        .description = "Fills {a}, {b:.2f} and the like in a text with connected values.",
        .execute = &compute
    };
}

}  // namespace comfyd::engine::nodes
