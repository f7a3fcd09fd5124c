#include "comfy/told_run.hpp"

#include <utility>

namespace comfyd::comfy {
namespace {

constexpr std::size_t kNodesMax = 256;  // a worker that has gone mad must not fill our memory

}  // namespace

void ToldRun::hear(const Message& message) {
    if (!is_whole_) {
        return;
    }
    if (const auto* start = std::get_if<ExecutionStart>(&message)) {
        started_at_ = start->timestamp;
    } else if (const auto* executed = std::get_if<Executed>(&message)) {
        if (executed->output.is_object()) {
            outputs_[executed->node] = executed->output;
        }
        if (outputs_.size() > kNodesMax) {
            miss();
        }
    } else if (const auto* success = std::get_if<ExecutionSuccess>(&message)) {
        succeeded_at_ = success->timestamp;
    } else if (std::holds_alternative<ExecutionError>(message) ||
               std::holds_alternative<ExecutionInterrupted>(message)) {
        miss();
    }
}

std::optional<HistoryEntry> ToldRun::take_success() {
    if (!is_whole_ || !started_at_ || !succeeded_at_) {
        return std::nullopt;
    }
    HistoryEntry entry;
    entry.success = true;
    entry.outputs = std::move(outputs_);
    if (*started_at_ > 0 && *succeeded_at_ >= *started_at_) {
        entry.run_time = Millis(*succeeded_at_ - *started_at_);
    }
    return entry;
}

}  // namespace comfyd::comfy
