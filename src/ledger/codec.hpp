// How values of the job model lie in columns, of any database. Empty JSON is NULL: most jobs have
// none, and reading it back is free.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/json.hpp"
#include "jobs/job.hpp"

namespace comfyd::ledger {

std::optional<std::string> encode(const json::object& object);
std::optional<std::string> encode(const json::array& array);
// Code::internal when the text is not what encode() wrote.
Result<json::object> decode_object(std::string_view text);
Result<json::array> decode_array(std::string_view text);
// Code::internal. Not a failure of storage as a whole: other jobs are still good, and a batch must
// go on without this one.
Error damaged(std::string_view what);

// The parts of a Spec that have no column of their own. Neither secret_extra_data nor the webhook,
// which is a target of deliveries, is among them.
std::string encode_spec(const jobs::Spec& spec);
Result<> decode_spec(std::string_view text, jobs::Spec& into);
// The webhook as deliveries have it; nullopt: the job has none.
Result<> decode_webhook(const std::optional<std::string>& target, jobs::Spec& into);

// Which events a webhook wants, in one column: a name a line.
std::string encode_webhook_events(const jobs::Webhook& webhook);
bool wants_event(std::string_view webhook_events, jobs::EventType type);

}  // namespace comfyd::ledger
