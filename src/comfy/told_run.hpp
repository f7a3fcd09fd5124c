// How a prompt ended, gathered from the messages of its worker: what its history would say. Only
// where all were heard, from the start to the success; of any other end the history is asked.
//
// Plain state of one executor.
#pragma once

#include <optional>

#include "comfy/client.hpp"
#include "comfy/messages.hpp"

namespace comfyd::comfy {

class ToldRun {
public:
    // Messages of the prompt, in their order.
    void hear(const Message& message);
    // One may not have come, or could not be read.
    void miss() {
        is_whole_ = false;
        outputs_.clear();
    }
    // nullopt: it did not end well, or not all of it was told. Takes what was gathered.
    std::optional<HistoryEntry> take_success();

private:
    bool is_whole_ = true;
    std::optional<std::int64_t> started_at_;  // milliseconds
    std::optional<std::int64_t> succeeded_at_;
    json::object outputs_;
};

}  // namespace comfyd::comfy
