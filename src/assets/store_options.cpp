#include "assets/store_options.hpp"

#include <algorithm>

namespace comfyd::assets {

std::string StoreOptionReader::take(const std::string& name) {
    auto found = left_.extract(name);
    return found ? std::move(found.mapped()) : std::string();
}

std::string StoreOptionReader::take_one_of(
    const std::string& name, std::initializer_list<std::string_view> choices
) {
    std::string value = take(name);
    if (value.empty()) {
        return std::string(*choices.begin());
    }
    if (std::ranges::find(choices, value) == choices.end()) {
        std::string all;
        for (const auto choice : choices) {
            all += (all.empty() ? "" : ", ") + std::string(choice);
        }
        refuse(name + ": must be one of " + all);
    }
    return value;
}

std::string StoreOptionReader::take_required(const std::string& name) {
    std::string value = take(name);
    if (value.empty()) {
        refuse(name + ": is missing");
    }
    return value;
}

Result<> StoreOptionReader::finish() const {
    if (!mistake_.empty()) {
        return fail(Code::config_invalid, mistake_);
    }
    if (!left_.empty()) {
        return fail(
            Code::config_invalid, left_.begin()->first + ": this provider has no such setting"
        );
    }
    return {};
}

void StoreOptionReader::refuse(std::string message) {
    if (mistake_.empty()) {
        mistake_ = std::move(message);
    }
}

}  // namespace comfyd::assets
