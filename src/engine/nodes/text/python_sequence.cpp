#include "engine/nodes/text/python_sequence.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "engine/nodes/text/python_value.hpp"
#include "engine/nodes/text/unicode.hpp"

namespace comfyd::engine::nodes {
namespace {

// As deep as Python shows lists within lists, with room for what is around them.
constexpr std::size_t kDepthMax = 900;

const json::array* list_in(const Value& value) {
    const auto* data = std::get_if<Data>(&value);
    return data != nullptr ? data->content().if_array() : nullptr;
}

std::string type_of(const Value& value) {
    return std::string(python_type(value));
}

struct Extent {
    std::size_t bytes = 0;
    std::size_t depth = 0;
};

void measure(const json::value& value, std::size_t depth, Extent& extent) {
    extent.depth = std::max(extent.depth, depth);
    extent.bytes += sizeof(json::value);
    if (value.is_string()) {
        extent.bytes += value.get_string().size();
    }
    if (value.is_array()) {
        for (const json::value& item : value.get_array()) {
            measure(item, depth + 1, extent);
        }
    }
}

Result<Value> as_list(json::array list) {
    json::value content(std::move(list));
    Extent extent;
    measure(content, 0, extent);
    if (extent.bytes > kTextBytesMax) {
        return text_too_long();
    }
    if (extent.depth > kDepthMax) {
        return node_error("RecursionError", "maximum recursion depth exceeded");
    }
    return Value(Data(std::move(content)));
}

struct Range {
    std::size_t first;
    std::size_t last;
};

Range range_of(std::int64_t start, std::int64_t stop, std::size_t size) {
    const auto length = static_cast<std::int64_t>(size);
    const auto place = [length](std::int64_t at) {
        return std::clamp<std::int64_t>(at < 0 ? at + length : at, 0, length);
    };
    const std::int64_t first = place(start);
    return {
        static_cast<std::size_t>(first), static_cast<std::size_t>(std::max(first, place(stop)))
    };
}

}  // namespace

Result<std::int64_t> python_length(const Value& value) {
    if (const auto* text = std::get_if<std::string>(&value)) {
        return static_cast<std::int64_t>(count_points(*text));
    }
    if (const json::array* list = list_in(value)) {
        return static_cast<std::int64_t>(list->size());
    }
    return node_error("TypeError", "object of type '" + type_of(value) + "' has no len()");
}

Result<Value> python_part(const Value& value, std::int64_t start, std::int64_t stop) {
    if (const auto* text = std::get_if<std::string>(&value)) {
        const std::u32string points = to_points(*text);
        const Range range = range_of(start, stop, points.size());
        return Value(
            to_utf8(std::u32string_view(points).substr(range.first, range.last - range.first))
        );
    }
    if (const json::array* list = list_in(value)) {
        const Range range = range_of(start, stop, list->size());
        return Value(Data(json::array(list->begin() + range.first, list->begin() + range.last)));
    }
    return node_error("TypeError", "'" + type_of(value) + "' object is not subscriptable");
}

Result<Value> python_sum(const Value& a, const Value& b) {
    const auto* text = std::get_if<std::string>(&a);
    const auto* more = std::get_if<std::string>(&b);
    if (text != nullptr && more != nullptr) {
        if (text->size() + more->size() > kTextBytesMax) {
            return text_too_long();
        }
        return Value(*text + *more);
    }
    const json::array* list = list_in(a);
    const json::array* items = list_in(b);
    if (list != nullptr && items != nullptr) {
        json::array joined = *list;
        joined.insert(joined.end(), items->begin(), items->end());
        return as_list(std::move(joined));
    }
    if (text != nullptr || list != nullptr) {
        const std::string type = type_of(a);
        return node_error(
            "TypeError", "can only concatenate " + type + " (not \"" + type_of(b) + "\") to " + type
        );
    }
    return node_error(
        "TypeError",
        "unsupported operand type(s) for +: '" + type_of(a) + "' and '" + type_of(b) + "'"
    );
}

Result<bool> python_contains(const Value& whole, const Value& part) {
    if (const json::array* list = list_in(whole)) {
        const auto wanted = to_json(part);
        return wanted && std::ranges::find(*list, *wanted) != list->end();
    }
    const auto* text = std::get_if<std::string>(&whole);
    const auto* wanted = std::get_if<std::string>(&part);
    if (text == nullptr) {
        return node_error(
            "TypeError", "argument of type '" + type_of(whole) + "' is not a container or iterable"
        );
    }
    if (wanted == nullptr) {
        return node_error(
            "TypeError", "'in <string>' requires string as left operand, not " + type_of(part)
        );
    }
    return text->find(*wanted) != text->npos;
}

bool python_equal(const Value& a, const Value& b) {
    const auto first = to_json(a);
    return first && first == to_json(b);
}

Result<Value> python_list_of(const Value& value) {
    json::array list;
    list.push_back(to_json(value).value_or(nullptr));
    return as_list(std::move(list));
}

}  // namespace comfyd::engine::nodes
