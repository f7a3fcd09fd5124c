#include "fleet/hand_ahead.hpp"

#include <algorithm>

namespace comfyd::fleet {

void HandAhead::add(const PromptId& prompt, std::optional<Millis> expected, Time now) {
    prompts_.push_back({prompt, expected, now});
}

void HandAhead::remove(const PromptId& prompt, Time now) {
    const auto found = std::ranges::find(prompts_, prompt, &Prompt::id);
    if (found == prompts_.end()) {
        return;
    }
    const bool was_first = found == prompts_.begin();
    prompts_.erase(found);
    if (was_first && !prompts_.empty()) {
        prompts_.front().begun_at = now;
    }
}

std::optional<Time> HandAhead::expected_end() const {
    const bool is_short =
        !prompts_.empty() && prompts_.front().expected && *prompts_.front().expected <= kShort;
    return is_short ? std::optional(prompts_.front().begun_at + *prompts_.front().expected)
                    : std::nullopt;
}

bool HandAhead::is_about_to_end(Time now) const {
    const auto end = expected_end();
    return end && *end - kAhead <= now && now < *end + kPatience;
}

std::optional<PromptId> HandAhead::stuck(Time now) const {
    const auto end = expected_end();
    return prompts_.size() > 1 && end && now >= *end + kPatience ? std::optional(prompts_[1].id)
                                                                 : std::nullopt;
}

std::optional<Time> HandAhead::next_look(Time now) const {
    const auto end = expected_end();
    if (end && now < *end - kAhead) {
        return *end - kAhead;
    }
    const bool waits = end && prompts_.size() > 1 && now < *end + kPatience;
    return waits ? std::optional(*end + kPatience) : std::nullopt;
}

}  // namespace comfyd::fleet
