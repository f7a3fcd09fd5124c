// The tasks API: /api/v1/tasks…, /api/v1/workers…, /api/v1/queue/metrics, /health and /ready. A
// finished task stays readable with its result, a failed one says why. Decoding and encoding are
// here as free functions for tests. `services` outlives the router.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/dialects/execution/execution.hpp"
#include "api/dialects/named/named.hpp"
#include "api/router.hpp"
#include "api/services.hpp"
#include "api/submission.hpp"
#include "jobs/fleet.hpp"

namespace comfyd::api {

void add_tasks(Router& router, const Services& services);

namespace tasks {

using execution::Decoded;
Result<Decoded> decode_request(json::object body);
// All of it but the payload.
Result<Decoded> decode_options(const json::object& body);
// The stored workflow that is to run, where workflow_id can name one and the payload is no workflow
// but the values of its parameters.
std::optional<named::Choice> named_workflow(const json::object& body);

// pending, running, completed, failed, cancelled
std::string_view status_of(jobs::State state);
std::vector<jobs::State> states_of(std::string_view status);

json::object encode_task(const jobs::Job& job, const execution::Links& links);
// From the shared message of the event stream to a task's.
json::object encode_message(json::object message);
// {"error":"…","code":"…"}
json::object encode_error(const Error& error);

// pending, starting, running, idle, stopped, error
std::string_view worker_status(const jobs::WorkerInfo& worker);
// `shows_job`: the worker's job belongs to the caller.
json::object encode_worker(const jobs::WorkerInfo& worker, bool shows_job);
json::object encode_worker_metrics(const std::vector<jobs::WorkerInfo>& workers);
json::object encode_queue_metrics(const jobs::StateCounts& counts);

json::object operation_submit();
json::object operation_get();
json::object operation_list();
json::object operation_cancel();
json::object operation_delete();
json::object operation_events();
json::object operation_workers();
json::object operation_worker();
json::object operation_worker_metrics();
json::object operation_queue_metrics();
json::object operation_health();
json::object operation_ready();
json::object schemas();

}  // namespace tasks
}  // namespace comfyd::api
