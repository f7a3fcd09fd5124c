// Decisions in words.
#include <algorithm>
#include <array>
#include <cstdio>

#include "autoscale/decide.hpp"

namespace comfyd::autoscale {
namespace {

std::string show(double value, int digits = 0) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.*f", digits, value);
    return text.data();
}

std::string show(Millis time) {
    return show(std::chrono::duration<double>(time).count()) + " s";
}

std::string dollars(double usd) {
    return show(usd, 2) + " USD";
}

std::string several(std::size_t many, const char* what) {
    return std::to_string(many) + " " + what + (many == 1 ? "" : "s");
}

std::string work_of(const Numbers& numbers) {
    const std::size_t jobs = numbers.waiting + numbers.others;
    return jobs == 0 ? "nothing waits"
                     : several(jobs, "job") + (jobs == 1 ? " waits" : " wait") + " with " +
                           show(numbers.waiting_s + numbers.others_s) + " s of work";
}

std::string there_are(const Numbers& numbers) {
    return several(static_cast<std::size_t>(numbers.total()), "machine") +
           (numbers.coming > 0 ? " (" + std::to_string(numbers.coming) + " on the way)" : "");
}

std::string target_of(const Numbers& numbers) {
    return numbers.wait_class.empty() ? ""
                                      : "; those of class " + numbers.wait_class +
                                            " shall start within " + show(numbers.target_s) + " s";
}

std::string budget_of(const Decision& decision, const PoolView& pool) {
    const std::string whose = pool.budget_of.empty() ? "the pool" : pool.budget_of;
    const std::string what = decision.machines < decision.were ? ", which end what they do and go: "
                                                               : ", no more are started: ";
    if (!decision.numbers.is_spent) {
        return what + whose + " may cost " + dollars(pool.usd_per_hour_max) + " an hour";
    }
    return what + "of the " + dollars(pool.budget->limit_usd) + " that " + whose + " may cost in " +
           std::string(in_words(pool.budget->span)) + ", " + dollars(pool.budget->spent_usd) +
           " are spent; it goes on at " + to_rfc3339(pool.budget->until);
}

// Of those that start machines.
std::string reason_to_start(const Decision& decision, const PoolView& pool) {
    const Numbers& numbers = decision.numbers;
    switch (decision.why) {
        case Why::zero:
            return work_of(numbers) + " and no machine is there" + target_of(numbers);
        case Why::burst:
            return "work comes in a burst, " + show(numbers.peak, 1) + " s of it a second; " +
                   work_of(numbers);
        case Why::others:
            return several(numbers.others, "job") +
                   " want a GPU, memory or region that no machine has";
        case Why::minimum:
            return "the pool shall have " + std::to_string(numbers.minimum) + " now";
        case Why::forecast:
            return "so much work came at this hour of past days";
        case Why::spare:
            return std::to_string(numbers.busy) + " are busy and " +
                   std::to_string(pool.settings.spare) + " shall be to spare";
        case Why::batch:
            return several(numbers.best_effort, "job") +
                   " of best effort waited for an hour, and no machine is there";
        default:
            return work_of(numbers) + ", of which " + show(numbers.behind_s) +
                   " s would be left when new ones are ready in " + show(numbers.start_s) + " s" +
                   target_of(numbers);
    }
}

}  // namespace

std::string sentence_of(const Decision& decision, const PoolView& pool, bool is_burst) {
    const Numbers& numbers = decision.numbers;
    const std::string there = there_are(numbers);
    const int more = decision.machines - decision.were;
    if (more > 0) {
        return "start " + std::to_string(more) +
               (decision.were > 0 ? " beside " + there : std::string()) + ": " +
               reason_to_start(decision, pool);
    }
    const std::string lately = show(pool.settings.idle_timeout);
    switch (decision.why) {
        case Why::budget:
            return there + budget_of(decision, pool);
        case Why::idle:
            return "stop " + std::to_string(-more) + " of " + there + ": no more than " +
                   std::to_string(decision.machines) + " were needed in the last " + lately;
        case Why::kept:
            return there + " stay, of which " + std::to_string(numbers.need) + " are needed: " +
                   (is_burst ? "a burst was here less than a minute ago"
                             : std::to_string(numbers.recent) + " were in the last " + lately);
        case Why::cooldown:
            return there + " for now, of " + std::to_string(numbers.need) +
                   " that are needed: others were started less than " +
                   show(pool.settings.up_cooldown) + " ago";
        case Why::most:
            return there + ", and no more than " + std::to_string(pool.settings.max) +
                   " there shall be: " + work_of(numbers);
        case Why::no_use:
            return there +
                   ", and more are of no use: " + std::to_string(numbers.ready - numbers.working) +
                   " idle though " + work_of(numbers);
        default:
            return there + (numbers.total() == 1 ? " does: " : " do: ") + work_of(numbers);
    }
}

}  // namespace comfyd::autoscale
