// The nodes that prepare captions. ComfyUI hands their results on as a list in one value, not as
// several values; so do these.
#include <string>
#include <utility>

#include "engine/nodes/call.hpp"
#include "engine/nodes/text/python_sequence.hpp"
#include "engine/nodes/text/python_value.hpp"
#include "engine/nodes/text/text.hpp"
#include "engine/nodes/text/unicode.hpp"
#include "engine/values/weight.hpp"

namespace comfyd::engine::nodes {
namespace {

Result<NodeResult> listed(const Result<Value>& value) {
    if (!value) {
        return fail(value.error());
    }
    return python_list_of(*value).map([](Value list) {
        return NodeResult{.outputs = {std::move(list)}};
    });
}

// An input beside the texts. A list of one stands for what it holds.
Value parameter(const Call& call, const char* name) {
    const Value& value = call.value(name);
    const auto* data = std::get_if<Data>(&value);
    const json::array* list = data != nullptr ? data->content().if_array() : nullptr;
    return list != nullptr && list->size() == 1 ? from_json(list->front()) : value;
}

Result<NodeResult> changed(const Call& call, std::string (*change)(std::string_view text)) {
    const std::string& text = call.text("texts");
    const auto room = call.charge(text.size() * kBytesPerChangedByte);
    if (!room) {
        return fail(room.error());
    }
    return listed(Value(change(text)));
}

Result<NodeResult> execute_lower(Call& call) {
    return changed(call, &to_lower);
}

Result<NodeResult> execute_upper(Call& call) {
    return changed(call, &to_upper);
}

Result<NodeResult> execute_truncate(Call& call) {
    return listed(python_part(call.value("texts"), 0, call.place("max_length")));
}

Result<NodeResult> joined(const Call& call, const Value& first, const Value& second) {
    const auto room = call.charge(weight_of(first) + weight_of(second));
    if (!room) {
        return fail(room.error());
    }
    return listed(python_sum(first, second));
}

Result<NodeResult> execute_prefix(Call& call) {
    return joined(call, parameter(call, "prefix"), call.value("texts"));
}

Result<NodeResult> execute_suffix(Call& call) {
    return joined(call, call.value("texts"), parameter(call, "suffix"));
}

Result<NodeResult> execute_replace(Call& call) {
    const std::string& text = call.text("texts");
    const Value find = parameter(call, "find");
    const Value with = parameter(call, "replace");
    const auto* from = std::get_if<std::string>(&find);
    const auto* to = std::get_if<std::string>(&with);
    if (from == nullptr || to == nullptr) {
        return node_error(
            "TypeError",
            "replace() argument " + std::string(from == nullptr ? "1" : "2") +
                " must be str, not " + std::string(python_type(from == nullptr ? find : with))
        );
    }
    const auto room = room_for_text(call, replaced_size(text, *from, *to));
    if (!room) {
        return fail(room.error());
    }
    return listed(Value(replace_all(text, *from, *to)));
}

Result<NodeResult> execute_strip(Call& call) {
    return listed(Value(std::string(strip(call.text("texts")))));
}

Result<NodeResult> execute_merge(Call& call) {
    json::array texts;
    for (const Value& value : call.list("texts")) {
        texts.push_back(to_json(value).value_or(nullptr));
    }
    return listed(Value(Data(std::move(texts))));
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
