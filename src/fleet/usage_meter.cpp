#include "fleet/usage_meter.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>
#include <variant>

#include "comfy/members.hpp"
#include "workflow/catalogue/models.hpp"

namespace comfyd::fleet {
namespace {

// The readings that a widespread node pack broadcasts twice a second; -1 stands for "not known".
constexpr std::string_view kMonitorMessage = "crystools.monitor";

Millis to_millis(double seconds) {
    return Millis(std::llround(std::max(0.0, seconds) * 1000));
}

void raise(std::optional<std::uint64_t>& peak, std::optional<std::uint64_t> seen) {
    peak = std::max(peak, seen);  // nothing is less than anything
}

std::optional<double> reading(const json::object& from, std::string_view key) {
    constexpr double kMax = 1e15;
    const auto number = comfy::maybe_number(from, key);
    return number && *number >= 0 && *number < kMax ? number : std::nullopt;
}

std::optional<std::uint64_t> bytes(const json::object& from, std::string_view key) {
    const auto number = reading(from, key);
    return number ? std::optional(static_cast<std::uint64_t>(*number)) : std::nullopt;
}

// What the worker's own process uses. Without a GPU ComfyUI tells its machine's memory instead.
std::optional<std::uint64_t> own_memory(const comfy::SystemStats& stats) {
    const bool is_told = stats.torch_vram_total > 0 &&
                         stats.torch_vram_total >= stats.torch_vram_free &&
                         stats.torch_vram_total != stats.vram_total;
    return is_told ? std::optional(stats.torch_vram_total - stats.torch_vram_free) : std::nullopt;
}

bool ends_prompt(const comfy::Message& message) {
    const auto* error = std::get_if<comfy::ExecutionError>(&message);
    return std::holds_alternative<comfy::ExecutionSuccess>(message) ||
           std::holds_alternative<comfy::ExecutionInterrupted>(message) ||
           (error != nullptr && error->ends_prompt());
}

}  // namespace

UsageMeter::UsageMeter(const json::object& prompt, bool shares_gpu) : shares_gpu_(shares_gpu) {
    std::set<std::pair<workflow::ModelKind, std::string>> models;
    for (const auto& [id, value] : prompt) {
        const json::object* node = value.if_object();
        const json::object* inputs = node == nullptr ? nullptr : comfy::object_of(*node, "inputs");
        if (inputs == nullptr) {
            continue;
        }
        const std::string class_type = comfy::text_of(*node, "class_type");
        for (const auto& [name, input] : *inputs) {
            const auto kind = workflow::model_kind(class_type, {name.data(), name.size()});
            if (kind && input.is_string()) {
                loaders_.emplace(id);
                models.emplace(*kind, input.get_string());
            }
        }
    }
    models_ = static_cast<int>(models.size());
}

void UsageMeter::Mean::add(double value) {
    sum += value;
    ++count;
}

std::optional<double> UsageMeter::Mean::value() const {
    return count > 0 ? std::optional(std::round(sum / count * 10) / 10) : std::nullopt;
}

void UsageMeter::apply(const comfy::Message& message, Seconds now) {
    if (ended_) {
        return;
    }
    if (std::holds_alternative<comfy::ExecutionStart>(message)) {
        started(now);
    } else if (const auto* executing = std::get_if<comfy::Executing>(&message)) {
        if (executing->node) {
            started(now);
            enter(*executing->node, now);
        } else {
            ended(now);
        }
    } else if (const auto* progress = std::get_if<comfy::StepProgress>(&message)) {
        step(progress->node, progress->value, now);
    } else if (const auto* state = std::get_if<comfy::ProgressState>(&message)) {
        for (const comfy::NodeProgress& node : state->nodes) {
            if (!node.finished && node.max > 1) {
                step(node.node_id, node.value, now);
            }
        }
    } else if (const auto* unknown = std::get_if<comfy::Unknown>(&message)) {
        if (unknown->type == kMonitorMessage && unknown->data && is_running()) {
            monitor(*unknown->data);
        }
    } else if (ends_prompt(message)) {
        ended(now);
    }
}

void UsageMeter::started(Seconds now) {
    if (!started_) {
        started_ = now;
    }
}

void UsageMeter::ended(Seconds now) {
    if (!ended_) {
        leave(now);
        ended_ = now;
    }
}

void UsageMeter::enter(const std::string& node, Seconds now) {
    if (node == node_) {
        return;
    }
    leave(now);
    node_ = node;
    entered_ = now;
}

void UsageMeter::leave(Seconds now) {
    if (loaders_.contains(node_)) {
        loading_ += std::max(0.0, now - entered_);
        ++loads_;
    } else if (first_ && last_->value > first_->value) {
        const double usual = (last_->at - first_->at) / (last_->value - first_->value);
        loading_ += std::max(0.0, first_->at - entered_ - first_->value * usual);
    }
    node_.clear();
    first_.reset();
    last_.reset();
}

// The same step is told twice by workers that know two kinds of progress.
void UsageMeter::step(const std::string& node, double value, Seconds now) {
    if (node != node_ || value <= 0 || (last_ && value <= last_->value)) {
        return;
    }
    last_ = Step{value, now};
    if (!first_) {
        first_ = last_;
    }
}

bool UsageMeter::take_first_step() {
    return first_ && !std::exchange(first_step_taken_, true);
}

void UsageMeter::sample(const comfy::SystemStats& stats) {
    if (!is_running()) {
        return;
    }
    if (const auto own = own_memory(stats)) {
        if (!std::exchange(knows_own_memory_, true)) {
            vram_peak_.reset();
        }
        raise(vram_peak_, own);
    } else if (stats.vram_total > 0 && stats.vram_total >= stats.vram_free) {
        whole_gpu(stats.vram_total - stats.vram_free);
    }
    if (stats.ram_total > 0 && stats.ram_total >= stats.ram_free) {
        raise(ram_peak_, stats.ram_total - stats.ram_free);
    }
}

void UsageMeter::whole_gpu(std::optional<std::uint64_t> bytes) {
    if (!knows_own_memory_ && !shares_gpu_) {
        raise(vram_peak_, bytes);
    }
}

void UsageMeter::monitor(const json::object& data) {
    if (const auto cpu = reading(data, "cpu_utilization")) {
        cpu_percent_.add(*cpu);
    }
    raise(ram_peak_, bytes(data, "ram_used"));
    const json::array* gpus = comfy::array_of(data, "gpus");
    if (gpus == nullptr || gpus->empty() || !gpus->front().is_object()) {
        return;
    }
    const json::object& gpu = gpus->front().get_object();
    if (const auto percent = reading(gpu, "gpu_utilization")) {
        gpu_percent_.add(*percent);
    }
    whole_gpu(bytes(gpu, "vram_used"));
}

jobs::Usage UsageMeter::usage(double gpu_second_usd) const {
    jobs::Usage usage;
    if (own_run_) {
        usage.gpu = *own_run_;
    } else if (started_ && ended_) {
        usage.gpu = to_millis(*ended_ - *started_);
    }
    usage.model_load = std::min(usage.gpu, to_millis(loading_));
    usage.inference = usage.gpu - usage.model_load;
    usage.models = models_;
    usage.model_loads = loads_;
    usage.vram_peak_bytes = vram_peak_;
    usage.ram_peak_bytes = ram_peak_;
    usage.gpu_percent = gpu_percent_.value();
    usage.cpu_percent = cpu_percent_.value();
    usage.gpu_second_usd = gpu_second_usd;
    usage.cost_usd = jobs::cost_of(usage);
    return usage;
}

}  // namespace comfyd::fleet
