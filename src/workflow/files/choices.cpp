#include "workflow/files/choices.hpp"

#include <algorithm>

namespace comfyd::workflow {
namespace {

using Hidden = std::function<bool(std::string_view)>;

constexpr int kDepthMax = 64;

bool is_hidden(const json::value& value, const Hidden& hidden) {
    return value.is_string() && hidden(view(value.get_string()));
}

bool holds_hidden(const json::value& value, const Hidden& hidden, int depth) {
    const auto inner = [&hidden, depth](const json::value& item) {
        return depth < kDepthMax && holds_hidden(item, hidden, depth + 1);
    };
    if (const json::array* list = value.if_array()) {
        return std::ranges::any_of(*list, inner);
    }
    if (const json::object* members = value.if_object()) {
        return std::ranges::any_of(*members, [&](const auto& member) {
            return inner(member.value());
        });
    }
    return is_hidden(value, hidden);
}

void drop(json::value& value, const Hidden& hidden, int depth) {
    if (json::array* list = value.if_array()) {
        const auto last = std::remove_if(list->begin(), list->end(), [&hidden](const auto& item) {
            return is_hidden(item, hidden);
        });
        list->erase(last, list->end());
        for (json::value& item : *list) {
            if (depth < kDepthMax) {
                drop(item, hidden, depth + 1);
            }
        }
    } else if (json::object* members = value.if_object(); members != nullptr && depth < kDepthMax) {
        for (auto& member : *members) {
            drop(member.value(), hidden, depth + 1);
        }
    }
}

}  // namespace

std::optional<json::object> without_choices(const json::object& info, const Hidden& hidden) {
    const json::value* input = info.if_contains("input");
    if (input == nullptr || !holds_hidden(*input, hidden, 0)) {
        return std::nullopt;
    }
    json::object plain = info;
    drop(plain.at("input"), hidden, 0);
    return plain;
}

}  // namespace comfyd::workflow
