// The Server-Sent Events route of a dialect: finds the job, opens with its present state or resumes
// after Last-Event-ID, and says "close" after the last event. Runs on the connection's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "api/dialects/execution/execution.hpp"
#include "api/router.hpp"
#include "api/services.hpp"

namespace comfyd::api {

// How a dialect words its stream.
struct StreamShape {
    std::string_view name;  // of the dialect, and of its version where that makes a difference
    execution::Encoder state{};
    // From the message of execution::EventEncoder to the dialect's own; empty: as it is.
    std::function<json::object(json::object)> event;
    ErrorEncoder refuse;
    net::Headers headers;
};

// What a stream starts from: the job as it is, and after which event the client wants to go on
// (nullopt: it wants the present state first).
struct StreamOpening {
    execution::Shown shown;
    std::optional<std::uint64_t> since;

    std::uint64_t first_after() const {
        return since.value_or(execution::since_state(shown.view.job));
    }
    bool is_over() const { return since && execution::is_over(shown.view.job, *since); }
};
// The call's first path parameter is the job's id.
Task<Result<StreamOpening>> open_stream(
    const Call& call, const Services& services, std::optional<std::uint64_t> since
);

// "event: close\ndata: {}\n\n"
std::string close_frame();

// The call's first path parameter is the job's id.
Task<> stream_job(Call& call, const Services& services, StreamShape shape);

}  // namespace comfyd::api
