// For whom a fleet acts where several nodes share its workers: the leader of a domain, for the
// length of one term. Without one, nothing that changes a worker is sent.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/error.hpp"
#include "base/id.hpp"

namespace comfyd::fleet {

struct Mandate {
    std::string domain;
    std::uint64_t epoch = 0;
    NodeId node{};  // whose it is
    // Asked before each request that changes a worker. Any thread. Once it said no, the term ends.
    std::function<bool()> may_send;
    // A worker knows a higher epoch. Any thread.
    std::function<void()> refused;
    // Until then an earlier leader may still send what it had begun: a prompt that a worker does
    // not have is sent again only when it was looked for after this time, or when the worker has
    // a fence (comfy/fence.hpp) and knows of this epoch.
    std::chrono::steady_clock::time_point quiet_at{};
};
using MandatePtr = std::shared_ptr<const Mandate>;  // of attempts that outlive it, too

// Whose mandate there is now; null: nobody's. Empty where the fleet is one node's alone, which then
// always may. Any thread.
using MandateSource = std::function<MandatePtr()>;

inline MandatePtr current(const MandateSource& source) {
    return source ? source() : nullptr;
}

// Code::lead_lost: then the worker is left as it is, and nothing is concluded of the job.
inline Result<> may_send(const MandateSource& source, const MandatePtr& mandate) {
    if (!source || (mandate && mandate->may_send())) {
        return {};
    }
    return fail(Code::lead_lost, "this node does not lead any more; the worker is left as it is");
}

}  // namespace comfyd::fleet
