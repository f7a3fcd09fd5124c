#include "api/dialects/undone_wishes.hpp"

#include <string>
#include <string_view>

namespace comfyd::api::execution {
namespace {

struct Wish {
    std::string_view section;
    std::string_view member;
    std::string_view instead;
};

constexpr Wish kWishes[] = {
    {"output_config", "storage", "outputs are kept in this server's store, each with a 'url'"},
    {"output_config", "quality", "it is that of 'format': jpeg, webp or avif; PNG keeps every pixel"
    },
    {"execution_config", "batch_size", "the workflow itself says how many pictures it makes"},
};

constexpr std::size_t kNameShown = 64;

// nullptr: there is none.
const json::object* section_of(const json::object& of, std::string_view name) {
    const json::value* found = json::find(of, name);
    return found == nullptr ? nullptr : found->if_object();
}

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
    const auto warn = [&warnings](const std::string& field, std::string_view instead) {
        warnings.push_back(json::object{
            {"event", "execution.warning"},
            {"code", "NOT_DONE"},
            {"message", "'" + field + "' has no effect: " + std::string(instead)},
            {"field", field},
        });
    };
    for (const Wish& wish : kWishes) {
        const json::object* section = section_of(body, wish.section);
        const json::value* wished =
            section == nullptr ? nullptr : json::find(*section, wish.member);
        if (wished != nullptr && !is_done_anyway(wish, *section, *wished)) {
            warn(std::string(wish.section) + "." + std::string(wish.member), wish.instead);
        }
    }
    for (const json::object* from : {&body, section_of(body, "execution_config")}) {
        const json::object* gpu = from == nullptr ? nullptr : section_of(*from, "gpu_requirements");
        for (const auto& member : gpu == nullptr ? json::object() : *gpu) {
            const std::string name(member.key());
            if (name != "gpu_type" && name != "memory_gb") {
                warn(
                    "gpu_requirements." + name.substr(0, kNameShown),
                    "a GPU is chosen by 'gpu_type' and 'memory_gb'"
                );
            }
        }
    }
    return warnings;
}

}  // namespace comfyd::api::execution
