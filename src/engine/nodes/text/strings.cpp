// The plain string nodes: Python's str methods.
#include <algorithm>
#include <cstdint>
#include <string>

#include "engine/call.hpp"
#include "engine/nodes/text/python_value.hpp"
#include "engine/nodes/text/text.hpp"
#include "engine/nodes/text/unicode.hpp"

namespace comfyd::engine::nodes {
namespace {

NodeResult one(Value value) {
    return NodeResult{.outputs = {std::move(value)}};
}

Result<NodeResult> execute_concatenate(Call& call) {
    const std::string& a = call.text("string_a");
    const std::string& b = call.text("string_b");
    const std::string& delimiter = call.text("delimiter");
    const auto room = room_for_text(call, a.size() + b.size() + delimiter.size());
    if (!room) {
        return fail(room.error());
    }
    return one(a + delimiter + b);
}

// For a text, or two, that are looked at or changed letter by letter.
Result<Charge> room_for_letters(const Call& call, std::size_t bytes) {
    return call.charge(bytes * kBytesPerChangedByte);
}

Result<NodeResult> execute_substring(Call& call) {
    const auto room = room_for_letters(call, call.text("string").size());
    if (!room) {
        return fail(room.error());
    }
    const std::u32string points = to_points(call.text("string"));
    const auto length = static_cast<std::int64_t>(points.size());
    const auto place = [length](std::int64_t at) {
        return std::clamp<std::int64_t>(at < 0 ? at + length : at, 0, length);
    };
    const std::int64_t start = place(call.integer("start"));
    const std::int64_t end = std::max(start, place(call.integer("end")));
    return one(to_utf8(std::u32string_view(points).substr(
        static_cast<std::size_t>(start), static_cast<std::size_t>(end - start)
    )));
}

Result<NodeResult> execute_length(Call& call) {
    return one(static_cast<std::int64_t>(count_points(call.text("string"))));
}

Result<NodeResult> execute_case(Call& call) {
    const std::string& text = call.text("string");
    const std::string& mode = call.text("mode");
    const auto room = room_for_letters(call, text.size());
    if (!room) {
        return fail(room.error());
    }
    if (mode == "UPPERCASE") {
        return one(to_upper(text));
    }
    if (mode == "lowercase") {
        return one(to_lower(text));
    }
    if (mode == "Capitalize") {
        return one(capitalize(text));
    }
    return one(mode == "Title Case" ? to_title(text) : text);
}

Result<NodeResult> execute_trim(Call& call) {
    const std::string& mode = call.text("mode");
    return one(std::string(strip(call.text("string"), mode != "Right", mode != "Left")));
}

Result<NodeResult> execute_replace(Call& call) {
    const std::string& text = call.text("string");
    const std::string& find = call.text("find");
    const std::string& with = call.text("replace");
    const auto room = room_for_text(call, replaced_size(text, find, with));
    if (!room) {
        return fail(room.error());
    }
    return one(replace_all(text, find, with));
}

Result<NodeResult> execute_contains(Call& call) {
    const auto room =
        room_for_letters(call, call.text("string").size() + call.text("substring").size());
    if (!room) {
        return fail(room.error());
    }
    std::string text = call.text("string");
    std::string part = call.text("substring");
    if (!call.flag("case_sensitive")) {
        text = to_lower(text);
        part = to_lower(part);
    }
    return one(text.find(part) != text.npos);
}

Result<NodeResult> execute_compare(Call& call) {
    const auto room =
        room_for_letters(call, call.text("string_a").size() + call.text("string_b").size());
    if (!room) {
        return fail(room.error());
    }
    std::string a = call.text("string_a");
    std::string b = call.text("string_b");
    if (!call.flag("case_sensitive")) {
        a = to_lower(a);
        b = to_lower(b);
    }
    const std::string& mode = call.text("mode");
    return one(
        mode == "Equal"         ? a == b
        : mode == "Starts With" ? a.starts_with(b)
                                : a.ends_with(b)
    );
}

}  // namespace

NodeClass string_concatenate() {
    return {
        .name = "StringConcatenate",
        .description = "Joins two texts with a delimiter between them.",
        .execute = &execute_concatenate
    };
}

NodeClass string_substring() {
    return {
        .name = "StringSubstring",
        .description =
            "The characters from start up to, but without, end. Negative positions count "
            "from the end.",
        .execute = &execute_substring
    };
}

NodeClass string_length() {
    return {
        .name = "StringLength",
        .description = "How many characters a text has.",
        .execute = &execute_length
    };
}

NodeClass case_converter() {
    return {
        .name = "CaseConverter",
        .description = "Changes a text to upper case, lower case or capital initials.",
        .execute = &execute_case
    };
}

NodeClass string_trim() {
    return {
        .name = "StringTrim",
        .description = "Removes white space at one end of a text, or at both.",
        .execute = &execute_trim
    };
}

NodeClass string_replace() {
    return {
        .name = "StringReplace",
        .description = "Replaces every occurrence of a text.",
        .execute = &execute_replace
    };
}

NodeClass string_contains() {
    return {
        .name = "StringContains",
        .description = "Whether a text contains another one.",
        .execute = &execute_contains
    };
}

NodeClass string_compare() {
    return {
        .name = "StringCompare",
        .description = "Whether a text equals another one, or begins or ends with it.",
        .execute = &execute_compare
    };
}

}  // namespace comfyd::engine::nodes
