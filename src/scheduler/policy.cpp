#include "scheduler/policy.hpp"

#include <cmath>
#include <limits>

namespace comfyd::scheduler {
namespace {

// Seconds that do not matter for the choice.
constexpr double kAboutEqual = 0.001;

std::uint64_t spare_memory(const Numbers& numbers) {
    return numbers.vram_free > numbers.vram_needed ? numbers.vram_free - numbers.vram_needed : 0;
}

class FinishTime final : public Policy {
public:
    Choice choose(const Question& question) const override {
        Choice choice;
        std::optional<std::size_t> busy;
        const auto& all = question.candidates;
        for (std::size_t i = 0; i < all.size(); ++i) {
            std::optional<std::size_t>& best = all[i].is_busy ? busy : choice.candidate;
            if (!best) {
                best = i;
            } else if (is_better(all[i], all[*best])) {
                if (!all[i].is_busy) {
                    choice.other = best;
                }
                best = i;
            } else if (!all[i].is_busy && !choice.other) {
                choice.other = i;
            }
        }
        const Numbers& here = all[*choice.candidate].numbers;
        choice.why = choice.other ? Why::best_finish : Why::only_choice;
        if (here.load_s <= kAboutEqual) {
            choice.why = question.has_models ? Why::warm : choice.why;
            return choice;
        }
        if (!busy) {
            return choice;
        }
        choice.other = busy;
        const Numbers& there = all[*busy].numbers;
        if (there.finish_s > here.finish_s) {
            choice.why = Why::best_finish;
            return choice;
        }
        // The first in the queue would be served sooner by waiting; the last would not, when the
        // queue takes longer than the load.
        const auto workers = static_cast<double>(std::max<std::size_t>(1, question.warm_workers));
        if (there.remaining_s + question.queue_s / workers > here.load_s + here.run_s) {
            choice.why = Why::spread;
            return choice;
        }
        choice.candidate.reset();
        return choice;
    }
    bool stays_with_models() const override { return true; }

private:
    static bool is_better(const Candidate& a, const Candidate& b) {
        const double sooner = b.numbers.finish_s - a.numbers.finish_s;
        if (std::abs(sooner) > kAboutEqual) {
            return sooner > 0;
        }
        if (a.is_wanted_elsewhere != b.is_wanted_elsewhere) {
            return b.is_wanted_elsewhere;
        }
        if (a.numbers.load != b.numbers.load) {
            return a.numbers.load < b.numbers.load;
        }
        if (spare_memory(a.numbers) != spare_memory(b.numbers)) {
            return spare_memory(a.numbers) < spare_memory(b.numbers);
        }
        return a.ran_alike && !b.ran_alike;
    }
};

class Score final : public Policy {
public:
    Choice choose(const Question& question) const override {
        Choice choice;
        const auto& all = question.candidates;
        for (std::size_t i = 0; i < all.size() && !all[i].is_busy; ++i) {
            if (!choice.candidate || all[i].numbers.score > all[*choice.candidate].numbers.score) {
                choice.other = choice.candidate;
                choice.candidate = i;
            } else if (!choice.other) {
                choice.other = i;
            }
        }
        choice.why = choice.other ? Why::best_score : Why::only_choice;
        return choice;
    }
    bool stays_with_models() const override { return false; }
};

class Fifo final : public Policy {
public:
    Choice choose(const Question& question) const override {
        Choice choice;
        choice.candidate = 0;
        const bool has_other = question.candidates.size() > 1 && !question.candidates[1].is_busy;
        if (has_other) {
            choice.other = 1;
        }
        choice.why = has_other ? Why::first_free : Why::only_choice;
        return choice;
    }
    bool stays_with_models() const override { return false; }
};

}  // namespace

std::unique_ptr<Policy> make_policy(PolicyName name) {
    switch (name) {
        case PolicyName::score:
            return std::make_unique<Score>();
        case PolicyName::fifo:
            return std::make_unique<Fifo>();
        case PolicyName::finish_time:
            break;
    }
    return std::make_unique<FinishTime>();
}

double placement_score(const Numbers& numbers, std::uint64_t vram_total) {
    double memory = 1;
    if (vram_total > 0) {
        const double used =
            static_cast<double>(numbers.vram_needed) / static_cast<double>(vram_total);
        memory = 1 - std::abs(0.8 - used);
    }
    return 0.40 * memory + 0.35 * numbers.cached + 0.25 * (1 - numbers.load);
}

}  // namespace comfyd::scheduler
