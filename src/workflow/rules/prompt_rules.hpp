// Judges a prompt as ComfyUI's POST /prompt does: the same error types and texts, literals coerced
// in place, and partial acceptance when only some outputs are good. Which classes there are is the
// caller's: those of the embedded engine, of one worker or of a whole fleet. Pure; any thread.
//
// Guarantees: no recursion along the links of the prompt, so a chain may be as long as the prompt;
// the size of the answer is bounded; an accepted prompt holds no link that could end the execution
// thread of a real worker (see repair()) and no number that JSON cannot say.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "workflow/catalogue/definition.hpp"

namespace comfyd::workflow {

inline constexpr std::size_t kPromptNodesMax = 10'000;

// What a class's own check says.
struct OwnRefusal {
    std::string text{};
    // Set where ComfyUI's own check fails with this Python exception instead of giving an answer.
    std::string exception_type{};
};

// A class's own check of its inputs (VALIDATE_INPUTS), run once for a node after everything else.
struct OwnCheck {
    // Whose limits and choices it judges itself.
    std::vector<std::string> inputs{};
    bool all_inputs = false;
    // It judges the types of links too.
    bool link_types = false;
    // What Python calls it, where it cannot be called without all of `inputs`: to leave one out is
    // an exception then, whose text names it.
    std::string python_name{};
    // `inputs` are those of the node, literals coerced, and null for those that are linked;
    // `received` the types of those. nullopt: good.
    std::function<std::optional<OwnRefusal>(
        const json::object& inputs, const std::map<std::string, std::string>& received
    )>
        check{};
};

class PromptClasses {
public:
    virtual ~PromptClasses() = default;
    // nullptr: there is no such class. What it gives must live as long as the judging.
    virtual const NodeDefinition* find(std::string_view class_type) const = 0;
    // nullptr: the class has none, or it is not known.
    virtual const OwnCheck* own_check(const NodeDefinition& /*definition*/) const {
        return nullptr;
    }
    // own_check() is all that there is, though PromptOptions::own_checks_known says no.
    virtual bool tells_own_checks(const NodeDefinition& /*definition*/) const { return false; }
};

struct PromptOptions {
    // partial_execution_targets: of the outputs only these. nullptr: all.
    const std::vector<std::string>* targets = nullptr;
    // False where a prompt is for a worker elsewhere: files are brought to it, and /object_info
    // does not tell which classes check their inputs themselves. Then the choices of inputs that
    // take uploads, the inputs that ComfyUI's own classes are known to check, and the limits and
    // choices of classes from custom node packs are left to the worker.
    bool own_checks_known = true;
    // Refuse what Python can compute with but this program cannot: NaN, infinity and integers
    // beyond 64 bits.
    bool plain_numbers = false;
};

struct PromptVerdict {
    bool accepted = false;
    json::object error;        // {type, message, details, extra_info}; empty when accepted
    json::object node_errors;  // may hold entries though it is accepted
    std::vector<std::string> outputs_to_execute;
    std::vector<std::string> repairs;  // what was changed to make it safe, for the log
};

PromptVerdict judge_prompt(
    json::object& prompt, const PromptClasses& classes, const PromptOptions& options = {}
);

// {type, message, details, extra_info}
json::object make_prompt_error(
    std::string_view type,
    std::string_view message,
    std::string_view details,
    json::object extra_info = {}
);

// The place of a linked slot, with Python's indexing: -1 is the last one, true is 1. nullopt: not a
// slot.
std::optional<std::size_t> slot_index(const json::value& slot, std::size_t count);

}  // namespace comfyd::workflow
