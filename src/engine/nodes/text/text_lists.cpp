// The nodes that prepare captions. ComfyUI hands their results on as a list in one value, not as
// several values; so do these.
#include <string>
#include <utility>

#include "engine/call.hpp"
#include "engine/nodes/text/python_value.hpp"
#include "engine/nodes/text/text.hpp"
#include "engine/nodes/text/unicode.hpp"

namespace comfyd::engine::nodes {
namespace {

NodeResult listed(std::string text) {
    return NodeResult{.outputs = {Data(json::array{json::value(std::move(text))})}};
}

Result<NodeResult> changed(const Call& call, std::string (*change)(std::string_view text)) {
    const std::string& text = call.text("texts");
    const auto room = call.charge(text.size() * kBytesPerChangedByte);
    if (!room) {
        return fail(room.error());
    }
    return listed(change(text));
}

Result<NodeResult> execute_lower(Call& call) {
    return changed(call, &to_lower);
}

Result<NodeResult> execute_upper(Call& call) {
    return changed(call, &to_upper);
}

Result<NodeResult> execute_truncate(Call& call) {
    const std::string& text = call.text("texts");
    std::int64_t left = call.place("max_length");
    if (left < 0) {  // counted from the end
        left = std::max<std::int64_t>(0, left + static_cast<std::int64_t>(count_points(text)));
    }
    std::size_t end = 0;
    for (; left > 0 && end < text.size(); --left) {
        next_point(text, end);
    }
    return listed(text.substr(0, end));
}

Result<NodeResult> joined(const Call& call, const std::string& a, const std::string& b) {
    const auto room = room_for_text(call, a.size() + b.size());
    if (!room) {
        return fail(room.error());
    }
    return listed(a + b);
}

Result<NodeResult> execute_prefix(Call& call) {
    return joined(call, call.text("prefix"), call.text("texts"));
}

Result<NodeResult> execute_suffix(Call& call) {
    return joined(call, call.text("texts"), call.text("suffix"));
}

Result<NodeResult> execute_replace(Call& call) {
    const std::string& text = call.text("texts");
    const std::string& find = call.text("find");
    const std::string& with = call.text("replace");
    const auto room = room_for_text(call, replaced_size(text, find, with));
    if (!room) {
        return fail(room.error());
    }
    return listed(replace_all(text, find, with));
}

Result<NodeResult> execute_strip(Call& call) {
    return listed(std::string(strip(call.text("texts"))));
}

Result<NodeResult> execute_merge(Call& call) {
    json::array texts;
    for (const Value& value : call.list("texts")) {
        texts.push_back(to_json(value).value_or(nullptr));
    }
    return NodeResult{.outputs = {Data(json::array{json::value(std::move(texts))})}};
}

}  // namespace

NodeClass text_to_lowercase() {
    return {
        .name = "TextToLowercase",
        .description = "Captions in lower case.",
        .execute = &execute_lower
    };
}

NodeClass text_to_uppercase() {
    return {
        .name = "TextToUppercase",
        .description = "Captions in upper case.",
        .execute = &execute_upper
    };
}

NodeClass truncate_text() {
    return {
        .name = "TruncateText",
        .description = "Captions cut to a number of characters.",
        .execute = &execute_truncate
    };
}

NodeClass add_text_prefix() {
    return {
        .name = "AddTextPrefix",
        .description = "Captions with a text before them.",
        .execute = &execute_prefix
    };
}

NodeClass add_text_suffix() {
    return {
        .name = "AddTextSuffix",
        .description = "Captions with a text after them.",
        .execute = &execute_suffix
    };
}

NodeClass replace_text() {
    return {
        .name = "ReplaceText",
        .description = "Captions with every occurrence of a text replaced.",
        .execute = &execute_replace
    };
}

NodeClass strip_whitespace() {
    return {
        .name = "StripWhitespace",
        .description = "Captions without white space at their ends.",
        .execute = &execute_strip
    };
}

NodeClass merge_text_lists() {
    return {
        .name = "MergeTextLists",
        .description = "Several lists of captions as one.",
        .execute = &execute_merge
    };
}

}  // namespace comfyd::engine::nodes
