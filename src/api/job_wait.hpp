// For dialects that answer with the result in the same request: waiting for the end of a job, and
// its files as text. Runs on the connection's thread.
#pragma once

#include <cstdint>
#include <string>

#include "api/services.hpp"
#include "base/deadline.hpp"
#include "jobs/service.hpp"

namespace comfyd::api {

// The job at its end; or as it is when `patience` is over or the server stops, whichever comes
// first. Learns of the end by the job's events, without asking again and again. A client that goes
// away meanwhile changes nothing for the job.
Task<Result<jobs::View>> wait_for_end(
    const Services& services, std::string tenant, JobId id, Deadline give_up
);

// The same, and no longer than the client stays.
Task<Result<jobs::View>> wait_for_end(
    const Services& services, std::string tenant, JobId id, Deadline give_up, net::Exchange& client
);

// The client has closed its connection, and not the server.
Task<bool> has_left(net::Exchange& client);

// How long the base64 text of so many bytes is.
constexpr std::uint64_t base64_size(std::uint64_t bytes) {
    return (bytes + 2) / 3 * 4;
}

// The bytes of a file that a job made, as base64. Code::output_unavailable,
// Code::payload_too_large when the file has more than `bytes_max` bytes, Code::storage_*.
Task<Result<std::string>> read_base64(
    const Services& services, std::string tenant, jobs::Output output, std::uint64_t bytes_max
);

}  // namespace comfyd::api
