#include "workflow/rules/prompt_repair.hpp"

#include <cmath>
#include <utility>

#include "base/text.hpp"
#include "workflow/rules/input_rules.hpp"

namespace comfyd::workflow {
namespace {

constexpr std::size_t kToldMax = 20;

// As the worker's executor sees it. nullptr: not a link.
const boost::json::string* link_target(const json::value& input) {
    const json::array* link = input.if_array();
    const bool is_link = link != nullptr && link->size() == 2 && (*link)[0].is_string() &&
                         ((*link)[1].is_number() || (*link)[1].is_bool());
    return is_link ? &(*link)[0].get_string() : nullptr;
}

class Repair {
public:
    explicit Repair(json::object& prompt) : prompt_(prompt), reached_(prompt.size()) {}

    std::vector<std::string> run(const std::vector<std::string>& outputs) {
        for (const std::string& output : outputs) {
            reach(prompt_.find(output));
        }
        while (!pending_.empty()) {
            const std::size_t node = pending_.back();
            pending_.pop_back();
            visit(node);
        }
        for (auto& node : prompt_) {
            give_inputs(node.value());
            make_numbers_safe(node.value());
        }
        return std::move(told_);
    }

private:
    void reach(json::object::iterator node) {
        const auto position = static_cast<std::size_t>(node - prompt_.begin());
        if (!reached_[position]) {
            reached_[position] = true;
            pending_.push_back(position);
        }
    }

    void visit(std::size_t position) {
        auto& node = *(prompt_.begin() + position);
        json::value* inputs = node.value().get_object().if_contains("inputs");
        if (inputs == nullptr || !inputs->is_object()) {
            return;
        }
        std::vector<std::string> dangling;
        for (const auto& input : inputs->get_object()) {
            const boost::json::string* target = link_target(input.value());
            if (target == nullptr) {
                continue;
            }
            const auto source = prompt_.find(*target);
            if (source != prompt_.end()) {
                reach(source);
            } else {
                dangling.emplace_back(view(input.key()));
            }
        }
        for (const std::string& name : dangling) {
            inputs->get_object().erase(name);
            if (told_.size() < kToldMax) {
                told_.push_back(
                    "node " + std::string(view(node.key())) + ": input '" + name +
                    "' dropped, it links to a node that does not exist"
                );
            }
        }
    }

    // Nothing that runs needs a node without, or it would not be accepted; but ComfyUI looks at the
    // inputs of every node when it begins, and its thread does not survive a missing one.
    static void give_inputs(json::value& node) {
        if (!node.get_object().contains("inputs")) {
            node.get_object()["inputs"] = json::object();
        }
    }

    static void make_numbers_safe(json::value& node) {
        json::value* inputs = node.get_object().if_contains("inputs");
        if (inputs == nullptr || !inputs->is_object()) {
            return;
        }
        for (auto& input : inputs->get_object()) {
            if (input.value().is_double() && !std::isfinite(input.value().get_double())) {
                input.value() = json_safe(input.value());
            }
        }
    }

    json::object& prompt_;
    std::vector<bool> reached_;
    std::vector<std::size_t> pending_;
    std::vector<std::string> told_;
};

}  // namespace

std::vector<std::string> repair(
    json::object& prompt, const std::vector<std::string>& outputs_to_execute
) {
    return Repair(prompt).run(outputs_to_execute);
}

}  // namespace comfyd::workflow
