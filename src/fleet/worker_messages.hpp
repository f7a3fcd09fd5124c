// What workers say while they run a prompt, as messages for whoever follows the job. Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "comfy/messages.hpp"
#include "jobs/job.hpp"

namespace comfyd::fleet {

// nullopt: nothing that a client of the prompt would want to hear.
std::optional<jobs::WorkerMessage> to_worker_message(const comfy::Message& message);

// Says what ComfyUI would say about a run of which only the steps are known.
class Narrator {
public:
    Narrator(std::string prompt_id, const Clock& clock)
        : prompt_id_(std::move(prompt_id)), clock_(&clock) {}

    using Messages = std::vector<jobs::WorkerMessage>;
    Messages cached(const std::vector<std::string>& nodes) const;
    Messages executing(const std::string& node);
    Messages progress(const std::string& node, double value, double max);
    Messages executed(const std::string& node, const json::object& ui);
    Messages finished(const std::string& node);
    // `class_of`: the class of a node of the prompt.
    Messages interrupted(const std::function<std::string(const std::string&)>& class_of) const;
    Messages preview(const std::string& node, std::string bytes, std::string content_type) const;
    Messages text(const std::string& node, std::string text) const;

private:
    comfy::Message state() const;

    std::string prompt_id_;
    const Clock* clock_;
    std::vector<comfy::NodeProgress> nodes_;  // in the order of their start
    comfy::NodeProgress& entry(const std::string& node);
};

}  // namespace comfyd::fleet
