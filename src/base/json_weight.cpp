#include "base/json_weight.hpp"

namespace comfyd::json {

std::size_t weight(const object& of) {
    std::size_t sum = 0;
    for (const auto& [key, element] : of) {
        sum += key.size() + weight(element);
    }
    return sum;
}

std::size_t weight(const value& of) {
    constexpr std::size_t kSmall = 8;
    std::size_t sum = kSmall;
    if (const auto* text = of.if_string()) {
        sum += text->size();
    } else if (const auto* list = of.if_array()) {
        for (const value& element : *list) {
            sum += weight(element);
        }
    } else if (const auto* object = of.if_object()) {
        sum += weight(*object);
    }
    return sum;
}

}  // namespace comfyd::json
