// The one catalogue of expected failures. Every failure a caller can meet is a value of type Error;
// its code decides HTTP status, category and whether trying again can help. Dialects only re-shape
// it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <boost/json/object.hpp>
#include <tl/expected.hpp>

namespace comfyd {

// clang-format off
enum class Code {
    // The request
    invalid_argument, malformed_json, invalid_workflow, workflow_format_ui, missing_asset,
    no_capable_worker, unauthorized, forbidden, not_found, method_not_allowed, conflict,
    idempotency_key_reuse, hash_mismatch, blob_not_found, asset_in_use, range_not_satisfiable,
    payload_too_large, header_too_large, unsupported_media_type, upgrade_required,
    // Limits
    rate_limited, queue_full, too_many_streams,
    // The run
    worker_rejected, worker_unavailable, worker_lost, node_execution_error, out_of_memory,
    execution_timeout, deadline_exceeded, cancelled, output_unavailable,
    // The outside
    address_refused, connection_failed, protocol_error, request_timeout, upstream_error,
    out_of_stock, balance_empty,
    // comfyd itself
    storage_full, storage_unavailable, schema_too_new, lead_lost, config_invalid, shutting_down,
    internal,
};
// clang-format on

// The five categories that clients sort failures by.
enum class Category {
    validation_error,
    resource_error,
    execution_error,
    timeout_error,
    system_error,
};

struct CodeInfo {
    Code code;
    std::string_view name;  // as on the wire
    Category category;
    int http_status;
    bool retryable;  // the same request, unchanged, may succeed later
    std::string_view suggested_action;
};

const CodeInfo& info(Code code);
std::string_view to_string(Code code);
std::optional<Code> parse_code(std::string_view name);
std::string_view to_string(Category category);

struct [[nodiscard]] Error {
    Code code = Code::internal;
    std::string message;            // what, where and what to do, for a person
    boost::json::object details{};  // the same for a machine; empty when there is no more to say

    // None is inline: every file has Results, and their failures are compiled once, not in each.
    Error();
    Error(Code error_code, std::string text);
    Error(Code error_code, std::string text, boost::json::object more);
    Error(const Error& other);
    Error(Error&& other) noexcept;
    Error& operator=(const Error& other);
    Error& operator=(Error&& other);
    ~Error();
};

template <class T = void>
using Result = tl::expected<T, Error>;

// `return fail(Code::not_found, "…");` in any function that returns a Result.
tl::unexpected<Error> fail(Code code, std::string message);
tl::unexpected<Error> fail(Code code, std::string message, boost::json::object details);
tl::unexpected<Error> fail(Error error);

}  // namespace comfyd
