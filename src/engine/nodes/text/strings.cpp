// The plain string nodes: Python's str methods.
#include <string>

#include "engine/nodes/call.hpp"
#include "engine/nodes/text/python_sequence.hpp"
#include "engine/nodes/text/python_value.hpp"
#include "engine/nodes/text/text.hpp"
#include "engine/nodes/text/unicode.hpp"
#include "engine/values/weight.hpp"

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

// For texts that are looked at or changed letter by letter.
Result<Charge> room_for_letters(const Call& call, std::uint64_t bytes) {
    return call.charge(bytes * kBytesPerChangedByte);
}
// Of a text, or of a list in its place.
std::uint64_t bytes_of(const Call& call, const char* name) {
    return weight_of(call.value(name));
}

Result<NodeResult> execute_substring(Call& call) {
    const auto room = room_for_letters(call, bytes_of(call, "string"));
    if (!room) {
        return fail(room.error());
    }
    return python_part(call.value("string"), call.place("start"), call.place("end")).map(one);
}

Result<NodeResult> execute_length(Call& call) {
    return python_length(call.value("string")).map(one);
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
        room_for_letters(call, bytes_of(call, "string") + bytes_of(call, "substring"));
    if (!room) {
        return fail(room.error());
    }
    if (call.flag("case_sensitive")) {
        return python_contains(call.value("string"), call.value("substring")).map(one);
    }
    const std::string text = to_lower(call.text("string"));
    return one(text.find(to_lower(call.text("substring"))) != text.npos);
}

Result<NodeResult> execute_compare(Call& call) {
    const auto room =
        room_for_letters(call, bytes_of(call, "string_a") + bytes_of(call, "string_b"));
    if (!room) {
        return fail(room.error());
    }
    const std::string& mode = call.text("mode");
    const bool as_they_are = call.flag("case_sensitive");
    if (as_they_are && mode == "Equal") {
        return one(python_equal(call.value("string_a"), call.value("string_b")));
    }
    const auto text = [&](const char* name) {
        return as_they_are ? call.text(name) : to_lower(call.text(name));
    };
    const std::string a = text("string_a");
    const std::string b = text("string_b");
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
