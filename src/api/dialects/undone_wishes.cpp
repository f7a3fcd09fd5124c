#include "api/dialects/undone_wishes.hpp"

#include <string>
#include <string_view>

namespace comfyd::api::execution {
namespace {

struct Wish {
    std::string_view section;  // empty: the request itself
    std::string_view member;
    std::string_view instead;
};

constexpr std::string_view kByPool =
    "a worker is chosen by what the workflow needs; 'pool' names the workers that may run it";

constexpr Wish kWishes[] = {
    {"output_config", "storage", "outputs are kept in this server's store, each with a 'url'"},
    {"output_config", "quality", "it is that of 'format': jpeg, webp or avif; PNG keeps every pixel"
    },
    {"execution_config", "batch_size", "the workflow itself says how many pictures it makes"},
    {"execution_config", "gpu_memory_fraction", "workers divide the memory of their GPU themselves"
    },
    {"execution_config", "gpu_requirements", kByPool},
    {"", "gpu_requirements", kByPool},
};

// Formats but PNG have one; what is only made smaller keeps the format that it has.
bool has_quality(const json::object& config) {
    const json::value* format = json::find(config, "format");
    if (format != nullptr) {
        return *format != "png";
    }
    return json::find(config, "max_size") != nullptr ||
           json::find(config, "max_width") != nullptr ||
           json::find(config, "max_height") != nullptr;
}

// A batch of one is what everybody gets.
bool is_done_anyway(const Wish& wish, const json::object& section, const json::value& wished) {
    if (wish.member == "quality") {
        return has_quality(section);
    }
    return wish.member == "batch_size" && wished.is_number() && wished.to_number<double>() == 1;
}

}  // namespace

json::array undone_wishes(const json::object& body) {
    json::array warnings;
    for (const Wish& wish : kWishes) {
        const json::object* section = &body;
        std::string field(wish.member);
        if (!wish.section.empty()) {
            const json::value* found = json::find(body, wish.section);
            section = found == nullptr ? nullptr : found->if_object();
            field = std::string(wish.section) + "." + field;
        }
        const json::value* wished =
            section == nullptr ? nullptr : json::find(*section, wish.member);
        if (wished != nullptr && !is_done_anyway(wish, *section, *wished)) {
            warnings.push_back(json::object{
                {"event", "execution.warning"},
                {"code", "NOT_DONE"},
                {"message", "'" + field + "' has no effect: " + std::string(wish.instead)},
                {"field", field},
            });
        }
    }
    return warnings;
}

}  // namespace comfyd::api::execution
