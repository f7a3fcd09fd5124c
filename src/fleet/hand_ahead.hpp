// When a worker may be given its next prompt although one still runs there: short runs follow each
// other at once where the next one lies in the worker's own queue by the time the one before it
// ends. Pure, time is an argument; owned by a ComfyWorker.
//
// Only behind a run that is short and of known length: there it costs a job little should that one
// take longer, and behind longer ones nothing would be gained. Who waits there for too long is to
// be taken back, unless it has begun meanwhile.
#pragma once

#include <optional>
#include <vector>

#include "base/id.hpp"
#include "base/time.hpp"

namespace comfyd::fleet {

class HandAhead {
public:
    static constexpr Millis kAhead{20};        // of the expected end
    static constexpr Millis kShort{1'000};     // a run, at most
    static constexpr Millis kPatience{1'000};  // beyond the expected end

    // Given to the worker, behind those that are there. `expected`: how long it runs, where that is
    // known.
    void add(const PromptId& prompt, std::optional<Millis> expected, Time now);
    // The worker is done with it, or never had it.
    void remove(const PromptId& prompt, Time now);
    // The one that runs is about to end: another one may come behind it.
    bool is_about_to_end(Time now) const;
    // Waits behind one that takes much longer than expected.
    std::optional<PromptId> stuck(Time now) const;
    // When to ask again although nothing happens.
    std::optional<Time> next_look(Time now) const;
    // The one that runs.
    std::optional<PromptId> first() const {
        return prompts_.empty() ? std::nullopt : std::optional(prompts_.front().id);
    }

private:
    struct Prompt {
        PromptId id;
        std::optional<Millis> expected;
        Time begun_at;  // once it is the first
    };
    // Of the one that runs, where others may come behind it.
    std::optional<Time> expected_end() const;

    std::vector<Prompt> prompts_;  // as they were given: the first one runs
};

}  // namespace comfyd::fleet
