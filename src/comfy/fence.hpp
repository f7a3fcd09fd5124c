// How a worker keeps out a leader that was. Where several nodes share a worker, each prompt carries
// in its extra_data under whose lead it is sent. A worker with a fence refuses a prompt of a lower
// epoch than it has heard of in that domain, and one that it has, or had, already: both may come
// from a node that was stopped between its last look at its lease and the sending. Prompts that
// carry nothing of this kind pass.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.hpp"
#include "base/lru_map.hpp"

namespace comfyd::comfy {

// In extra_data: it is in the body as the prompt's id is, so that whoever hands prompts on hands it
// on, too. A header would need the same of every proxy.
inline constexpr std::string_view kLeadKey = "comfyd_lead";
// A new leader says here who it is: {"domain", "epoch"}, answered with the same.
inline constexpr std::string_view kLeadRoute = "/comfyd/lead";

// Refusals, as the type of ComfyUI's error; both have the status 409.
inline constexpr std::string_view kLowerEpoch = "comfyd_lower_epoch";
inline constexpr std::string_view kKnownPrompt = "comfyd_known_prompt";

struct LeadMark {
    std::string domain;
    std::uint64_t epoch = 0;

    json::object to_json() const;
    // nullopt: it is none.
    static std::optional<LeadMark> from_json(const json::object& from);
    // Takes it out.
    static std::optional<LeadMark> take(json::object& extra_data);
};

// Owned by one thread. What it knows ends with the process, as the prompts do.
class Fence {
public:
    explicit Fence(std::size_t prompts_max = 100'000) : known_(prompts_max) {}

    // nullopt: the prompt may be taken, which admit() then says. Otherwise why not, in the form of
    // ComfyUI's errors.
    std::optional<json::object> refuse(const LeadMark& mark, const std::string& prompt_id);
    void admit(const std::string& prompt_id) { known_.use(prompt_id) = true; }
    // Why not, likewise.
    std::optional<json::object> announce(const LeadMark& mark);

private:
    std::map<std::string, std::uint64_t> epochs_;  // the highest, by domain
    LruMap<bool> known_;                           // prompts that were taken
};

}  // namespace comfyd::comfy
