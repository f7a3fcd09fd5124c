#include "fleet/progress.hpp"

#include <algorithm>
#include <cmath>

#include "comfy/members.hpp"

namespace comfyd::fleet {
namespace {

constexpr double kValueMax = 0.999;
constexpr double kStepsMax = 1e9;

int to_count(double number) {
    return std::isfinite(number) ? static_cast<int>(std::clamp(number, 0.0, kStepsMax)) : 0;
}

}  // namespace

ProgressTracker::ProgressTracker(const json::object& prompt, Costs costs)
    : costs_(std::move(costs)) {
    for (const auto& [id, node] : prompt) {
        const json::object* fields = node.if_object();
        classes_.emplace(
            std::string(id.data(), id.size()),
            fields == nullptr ? "" : comfy::text_of(*fields, "class_type")
        );
        cost_total_ += cost_of(std::string_view(id.data(), id.size()));
    }
    next_.nodes_total = static_cast<int>(classes_.size());
    snapshot_ = next_;
}

std::string ProgressTracker::class_of(std::string_view node) const {
    const auto found = classes_.find(node);
    return found == classes_.end() ? std::string() : found->second;
}

bool ProgressTracker::apply(const comfy::Message& message) {
    if (const auto* cached_nodes = std::get_if<comfy::ExecutionCached>(&message)) {
        return cached(cached_nodes->nodes);
    }
    if (const auto* running = std::get_if<comfy::Executing>(&message)) {
        if (!running->node) {
            return false;
        }
        const bool ours = classes_.contains(*running->node) || running->display_node.empty();
        return executing(ours ? *running->node : running->display_node);
    }
    if (const auto* step = std::get_if<comfy::StepProgress>(&message)) {
        return stepped(step->node, step->value, step->max);
    }
    if (const auto* state = std::get_if<comfy::ProgressState>(&message)) {
        return apply_state(*state);
    }
    if (const auto* executed = std::get_if<comfy::Executed>(&message)) {
        return finished(executed->node);
    }
    return false;
}

bool ProgressTracker::cached(const std::vector<std::string>& nodes) {
    for (const std::string& node : nodes) {
        if (classes_.contains(node) && !done_.contains(node)) {
            cost_total_ -= cost_of(node);
            done_.insert(node);
            fractions_.erase(node);
        }
    }
    return update();
}

bool ProgressTracker::executing(const std::string& node) {
    // Older workers do not say which node has finished: the one before has.
    if (!states_seen_ && !next_.current_node.empty() && next_.current_node != node) {
        finish(next_.current_node);
    }
    set_current(node);
    return update();
}

bool ProgressTracker::stepped(const std::string& node, double value, double max) {
    if (!node.empty()) {
        if (classes_.contains(node)) {
            set_current(node);
        }
        set_fraction(node, value, max);
    }
    if (max > 1) {
        next_.step = to_count(value);
        next_.steps = to_count(std::ceil(max));
    }
    return update();
}

bool ProgressTracker::finished(const std::string& node) {
    finish(node);
    return update();
}

bool ProgressTracker::apply_state(const comfy::ProgressState& state) {
    states_seen_ = true;
    const comfy::NodeProgress* running = nullptr;
    for (const comfy::NodeProgress& node : state.nodes) {
        if (node.finished) {
            finish(node.node_id);
        } else {
            set_fraction(node.node_id, node.value, node.max);
            running = &node;
        }
    }
    if (running != nullptr) {
        const bool ours = classes_.contains(running->node_id) || running->display_node_id.empty();
        set_current(ours ? running->node_id : running->display_node_id);
        if (running->max > 1) {
            next_.step = to_count(running->value);
            next_.steps = to_count(std::ceil(running->max));
        }
    }
    return update();
}

void ProgressTracker::finish(const std::string& node) {
    if (done_.contains(node)) {
        return;  // as most of those that a state names
    }
    if (classes_.contains(node) && done_.insert(node).second) {
        cost_done_ += cost_of(node);
    }
    fractions_.erase(node);
}

double ProgressTracker::cost_of(std::string_view node) const {
    if (costs_.empty()) {
        return 1;
    }
    const auto found = costs_.find(node);
    return found == costs_.end() || !std::isfinite(found->second) ? 0
                                                                  : std::max(found->second, 0.0);
}

void ProgressTracker::set_current(const std::string& node) {
    if (next_.current_node == node) {
        return;
    }
    next_.current_node = node;
    next_.current_node_class = class_of(node);
    next_.step = 0;
    next_.steps = 0;
}

void ProgressTracker::set_fraction(const std::string& node, double value, double max) {
    if (!classes_.contains(node) || done_.contains(node)) {
        return;
    }
    const double fraction = max > 0 ? value / max : 0;
    fractions_[node] = std::isfinite(fraction) ? std::clamp(fraction, 0.0, 1.0) : 0;
}

bool ProgressTracker::update() {
    double cost = cost_done_;
    for (const auto& [node, fraction] : fractions_) {
        cost += fraction * cost_of(node);
    }
    next_.nodes_done = static_cast<int>(done_.size());
    // Subtracting what was cached may leave a rest that is only rounding.
    const bool nothing_runs = cost_total_ <= 1e-9 && next_.nodes_done > 0;
    if (nothing_runs || cost_total_ > 1e-9) {
        const double value = nothing_runs ? kValueMax : std::min(cost / cost_total_, kValueMax);
        next_.value = std::max(next_.value, value);
    }
    const auto key = [](const jobs::Progress& of) {
        return std::tie(of.value, of.nodes_done, of.current_node, of.step, of.steps);
    };
    if (key(next_) == key(snapshot_)) {
        return false;
    }
    snapshot_ = next_;
    return true;
}

}  // namespace comfyd::fleet
