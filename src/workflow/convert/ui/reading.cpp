#include "workflow/convert/ui/reading.hpp"

#include <cmath>

namespace comfyd::workflow::ui {

std::optional<std::int64_t> integer(const json::value* from) {
    if (from == nullptr) {
        return std::nullopt;
    }
    if (from->is_int64()) {
        return from->get_int64();
    }
    if (from->is_double() && std::abs(from->get_double()) <= static_cast<double>(kNumericIdMax) &&
        from->get_double() == std::floor(from->get_double())) {
        return static_cast<std::int64_t>(from->get_double());
    }
    return std::nullopt;
}

std::string text(const json::object& in, std::string_view key) {
    const json::value* found = json::find(in, key);
    return found != nullptr && found->is_string() ? std::string(view(found->get_string()))
                                                  : std::string();
}

std::optional<std::string> id_text(const json::value* from) {
    if (const auto number = integer(from)) {
        return std::to_string(*number);
    }
    if (from != nullptr && from->is_string() && !from->get_string().empty() &&
        from->get_string().size() <= 256) {
        return std::string(view(from->get_string()));
    }
    return std::nullopt;
}

const json::array* array_at(const json::object& in, std::string_view key) {
    const json::value* found = json::find(in, key);
    return found != nullptr ? found->if_array() : nullptr;
}

const json::object* object_at(const json::object& in, std::string_view key) {
    const json::value* found = json::find(in, key);
    return found != nullptr ? found->if_object() : nullptr;
}

std::string type_text(const json::object& in) {
    const json::value* found = json::find(in, "type");
    if (found == nullptr || found->is_number()) {
        return "*";
    }
    return found->is_string() ? std::string(view(found->get_string())) : "COMBO";
}

const json::value* property(const json::object& node, std::string_view key) {
    const json::object* properties = object_at(node, "properties");
    return properties != nullptr ? json::find(*properties, key) : nullptr;
}

}  // namespace comfyd::workflow::ui
