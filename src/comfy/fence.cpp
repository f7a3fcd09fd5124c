#include "comfy/fence.hpp"

#include <utility>

#include "comfy/members.hpp"

namespace comfyd::comfy {
namespace {

json::object make_error(std::string_view type, std::string_view message, std::string details) {
    json::object error;
    error["type"] = type;
    error["message"] = message;
    error["details"] = std::move(details);
    error["extra_info"] = json::object();
    return error;
}

}  // namespace

json::object LeadMark::to_json() const {
    json::object made;
    made["domain"] = domain;
    made["epoch"] = epoch;
    return made;
}

std::optional<LeadMark> LeadMark::from_json(const json::object& from) {
    const std::int64_t epoch = integer_of(from, "epoch");
    LeadMark mark{text_of(from, "domain"), static_cast<std::uint64_t>(epoch)};
    return epoch > 0 && !mark.domain.empty() ? std::optional(std::move(mark)) : std::nullopt;
}

std::optional<LeadMark> LeadMark::take(json::object& extra_data) {
    const json::object* found = object_of(extra_data, kLeadKey);
    auto mark = found == nullptr ? std::nullopt : from_json(*found);
    extra_data.erase(kLeadKey);
    return mark;
}

std::optional<json::object> Fence::announce(const LeadMark& mark) {
    std::uint64_t& highest = epochs_[mark.domain];
    if (mark.epoch < highest) {
        return make_error(
            kLowerEpoch,
            "Another node leads",
            "epoch " + std::to_string(mark.epoch) + " of the domain " + mark.domain +
                " is over: this server has heard of " + std::to_string(highest)
        );
    }
    highest = mark.epoch;
    return std::nullopt;
}

std::optional<json::object> Fence::refuse(const LeadMark& mark, const std::string& prompt_id) {
    if (auto refused = announce(mark)) {
        return refused;
    }
    if (known_.find(prompt_id) != nullptr) {
        return make_error(
            kKnownPrompt,
            "The prompt is known",
            "prompt " + prompt_id + " is here already, or was, and runs only once"
        );
    }
    return std::nullopt;
}

}  // namespace comfyd::comfy
