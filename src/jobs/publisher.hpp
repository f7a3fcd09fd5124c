// Tells those who subscribe what becomes of jobs, and with it how many jobs of the tenant have not
// ended. Core executor.
#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>

#include "events/hub.hpp"
#include "jobs/job.hpp"

namespace comfyd::jobs {

class Publisher {
public:
    // `hub` outlives it.
    explicit Publisher(events::Hub& hub) : hub_(hub) {}

    void tell_arrival(const Job& job, events::Arrived::How how);
    // One that the ledger has.
    void tell_change(const Change& change);
    // Of the tenant's jobs that this process was told of.
    std::size_t unfinished(const std::string& tenant) const;

private:
    events::Hub& hub_;
    std::unordered_map<std::string, std::size_t> unfinished_;  // by tenant; those without are gone
};

}  // namespace comfyd::jobs
