#include "base/json.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <vector>

#include <boost/json/src.hpp>

#include "base/json_escape.hpp"

namespace comfyd::json {
namespace {

std::string type_name(const value& of) {
    switch (of.kind()) {
        case boost::json::kind::null:
            return "null";
        case boost::json::kind::bool_:
            return "a boolean";
        case boost::json::kind::int64:
        case boost::json::kind::uint64:
            return "an integer";
        case boost::json::kind::double_:
            return "a number";
        case boost::json::kind::string:
            return "a string";
        case boost::json::kind::array:
            return "a list";
        case boost::json::kind::object:
            return "an object";
    }
    return "something else";
}

tl::unexpected<Error> wrong_type(
    std::string_view key, std::string_view expected, const value& got
) {
    return fail(
        Code::invalid_argument,
        "'" + std::string(key) + "' must be " + std::string(expected) + ", but is " +
            type_name(got),
        {{"field", boost::json::string_view(key.data(), key.size())}}
    );
}

void append_escaped_ascii(std::string& out, std::string_view text) {
    out += '"';
    for (std::size_t i = 0; i < text.size();) {
        const auto byte = static_cast<unsigned char>(text[i]);
        if (byte < 0x80) {
            ++i;
            append_escaped(out, byte);
            continue;
        }
        // The parser accepted only valid UTF-8, so the lead byte tells the length.
        const int extra = byte >= 0xF0 ? 3 : byte >= 0xE0 ? 2 : 1;
        std::uint32_t point = byte & (0x3FU >> extra);
        for (int k = 1; k <= extra && i + static_cast<std::size_t>(k) < text.size(); ++k) {
            point = point << 6 |
                    (static_cast<unsigned char>(text[i + static_cast<std::size_t>(k)]) & 0x3FU);
        }
        i += static_cast<std::size_t>(extra) + 1;
        if (point >= 0x10000) {
            point -= 0x10000;
            append_unit(out, 0xD800 + (point >> 10));
            append_unit(out, 0xDC00 + (point & 0x3FF));
        } else {
            append_unit(out, point);
        }
    }
    out += '"';
}

// Python's repr of a float: the shortest digits that read back, with ".0" where it looks like an
// int.
void append_python_double(std::string& out, double number) {
    char buffer[40];
    const double magnitude = std::abs(number);
    const bool scientific = magnitude != 0 && (magnitude < 1e-4 || magnitude >= 1e16);
    const auto end = std::to_chars(
                         buffer,
                         buffer + sizeof buffer,
                         number,
                         scientific ? std::chars_format::scientific : std::chars_format::fixed
    )
                         .ptr;
    const std::string_view text(buffer, static_cast<std::size_t>(end - buffer));
    out += text;
    if (!scientific && text.find('.') == std::string_view::npos) {
        out += ".0";
    }
}

void append_python(std::string& out, const value& from) {
    switch (from.kind()) {
        case boost::json::kind::object: {
            out += '{';
            bool first = true;
            for (const auto& member : from.get_object()) {
                if (!first) {
                    out += ", ";
                }
                first = false;
                append_escaped_ascii(out, member.key());
                out += ": ";
                append_python(out, member.value());
            }
            out += '}';
            return;
        }
        case boost::json::kind::array: {
            out += '[';
            bool first = true;
            for (const value& item : from.get_array()) {
                if (!first) {
                    out += ", ";
                }
                first = false;
                append_python(out, item);
            }
            out += ']';
            return;
        }
        case boost::json::kind::string:
            append_escaped_ascii(out, from.get_string());
            return;
        case boost::json::kind::double_:
            append_python_double(out, from.get_double());
            return;
        default:
            out += serialize(from);
    }
}

void append_canonical(std::string& out, const value& from) {
    if (const object* members = from.if_object()) {
        std::vector<const boost::json::key_value_pair*> sorted;
        sorted.reserve(members->size());
        for (const auto& member : *members) {
            sorted.push_back(&member);
        }
        std::sort(sorted.begin(), sorted.end(), [](const auto* a, const auto* b) {
            return a->key() < b->key();
        });
        out += '{';
        for (std::size_t i = 0; i < sorted.size(); ++i) {
            if (i > 0) {
                out += ',';
            }
            out += serialize(sorted[i]->key());
            out += ':';
            append_canonical(out, sorted[i]->value());
        }
        out += '}';
    } else if (const array* items = from.if_array()) {
        out += '[';
        for (std::size_t i = 0; i < items->size(); ++i) {
            if (i > 0) {
                out += ',';
            }
            append_canonical(out, (*items)[i]);
        }
        out += ']';
    } else {
        out += serialize(from);
    }
}

}  // namespace

Result<object> parse_object(std::string_view text, storage_ptr storage) {
    auto parsed = parse(text, std::move(storage));
    if (!parsed) {
        return fail(std::move(parsed.error()));
    }
    if (!parsed->is_object()) {
        return fail(Code::invalid_argument, "expected a JSON object, got " + type_name(*parsed));
    }
    return std::move(parsed->get_object());
}

const value* find(const object& in, std::string_view key) {
    const auto found = in.find(boost::json::string_view(key.data(), key.size()));
    return found == in.end() || found->value().is_null() ? nullptr : &found->value();
}

Result<std::optional<std::string>> find_string(const object& in, std::string_view key) {
    const value* found = find(in, key);
    if (found == nullptr) {
        return std::nullopt;
    }
    if (!found->is_string()) {
        return wrong_type(key, "a string", *found);
    }
    return std::string(found->get_string());
}

Result<std::optional<std::int64_t>> find_int(const object& in, std::string_view key) {
    const value* found = find(in, key);
    if (found == nullptr) {
        return std::nullopt;
    }
    if (found->is_int64()) {
        return found->get_int64();
    }
    if (found->is_double()) {
        const double number = found->get_double();
        if (std::abs(number) < 9e15 && std::trunc(number) == number) {
            return static_cast<std::int64_t>(number);
        }
    }
    return wrong_type(key, "an integer", *found);
}

Result<std::optional<double>> find_number(const object& in, std::string_view key) {
    const value* found = find(in, key);
    if (found == nullptr) {
        return std::nullopt;
    }
    if (!found->is_number()) {
        return wrong_type(key, "a number", *found);
    }
    return found->to_number<double>();
}

Result<std::optional<bool>> find_bool(const object& in, std::string_view key) {
    const value* found = find(in, key);
    if (found == nullptr) {
        return std::nullopt;
    }
    if (!found->is_bool()) {
        return wrong_type(key, "true or false", *found);
    }
    return found->get_bool();
}

Result<const object*> find_object(const object& in, std::string_view key) {
    const value* found = find(in, key);
    if (found == nullptr) {
        return nullptr;
    }
    if (!found->is_object()) {
        return wrong_type(key, "an object", *found);
    }
    return &found->get_object();
}

Result<const array*> find_array(const object& in, std::string_view key) {
    const value* found = find(in, key);
    if (found == nullptr) {
        return nullptr;
    }
    if (!found->is_array()) {
        return wrong_type(key, "a list", *found);
    }
    return &found->get_array();
}

std::string serialize_python(const value& from) {
    std::string out;
    append_python(out, from);
    return out;
}

std::string serialize_canonical(const value& from) {
    std::string out;
    append_canonical(out, from);
    return out;
}

}  // namespace comfyd::json
