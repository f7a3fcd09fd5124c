// How Comfy API v2 shows jobs, outputs, assets, events and errors. Pure functions over values;
// field names and status words are those of the public contract, members beyond it are additions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/router.hpp"
#include "api/services.hpp"
#include "jobs/job.hpp"
#include "jobs/service.hpp"

namespace comfyd::api::v2 {

// queued, running, succeeded, canceling, canceled, failed, expired. A job that waits for its next
// attempt is queued.
std::string_view status_of(const jobs::Job& job);
std::string_view status_of(const jobs::Event& event);
// The states that a status stands for; empty when there is no such status.
std::vector<jobs::State> states_of(std::string_view status);

// What encoding needs of the request: links are made for the host that the client used.
struct Scope {
    const net::Request& request;
    const Services& services;
};

json::object encode_job(const jobs::View& view, const Scope& scope);
json::object encode_output(const jobs::Output& output, const JobId& job, const Scope& scope);
json::object encode_failure(const jobs::Failure& failure);
json::object encode_asset(const assets::Asset& asset, const Scope& scope);

// "/api/v2/jobs/<id>", under the path of the public URL where that has one.
std::string job_path(const JobId& id, const ApiOptions& options);

// The frames that open a stream: the status and the latest progress.
std::string snapshot_frames(const jobs::View& view, const Scope& scope);
// nullopt: this API has no word for it.
std::optional<std::string> event_frame(const jobs::Event& event, const Scope& scope);

// {"error":{"code","message","details"}}; a bad value is 422 in this contract.
net::Response encode_error(const Error& error);

}  // namespace comfyd::api::v2
