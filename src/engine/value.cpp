#include "engine/value.hpp"

#include <array>

namespace comfyd::engine {

bool matches(const Value& value, std::string_view type) {
    if (type == "IMAGE") {
        return std::holds_alternative<Image>(value);
    }
    if (type == "MASK") {
        return std::holds_alternative<Mask>(value);
    }
    if (type == "INT") {
        return std::holds_alternative<std::int64_t>(value);
    }
    if (type == "FLOAT") {
        return std::holds_alternative<double>(value) || std::holds_alternative<std::int64_t>(value);
    }
    if (type == "BOOLEAN") {
        return std::holds_alternative<bool>(value);
    }
    if (type == "STRING" || type == "COMBO") {
        return std::holds_alternative<std::string>(value);
    }
    return true;
}

std::string_view kind_of(const Value& value) {
    static constexpr std::array<std::string_view, std::variant_size_v<Value>> kNames = {
        "IMAGE", "MASK", "INT", "FLOAT", "BOOLEAN", "STRING"
    };
    return kNames[value.index()];
}

}  // namespace comfyd::engine
