#include "base/error.hpp"

#include <array>
#include <cstddef>

#include "base/assert.hpp"

namespace comfyd {
namespace {

using enum Category;

// In the order of the enum; the unit test checks that.
constexpr std::array kCodes{
    CodeInfo{
        Code::invalid_argument, "invalid_argument", validation_error, 400, false, "fix_the_request"
    },
    CodeInfo{
        Code::malformed_json, "malformed_json", validation_error, 400, false, "send_valid_json"
    },
    CodeInfo{
        Code::invalid_workflow,
        "invalid_workflow",
        validation_error,
        422,
        false,
        "validate_workflow_structure"
    },
    CodeInfo{
        Code::workflow_format_ui,
        "workflow_format_ui",
        validation_error,
        422,
        false,
        "export_in_api_format"
    },
    CodeInfo{
        Code::missing_asset, "missing_asset", validation_error, 422, false, "upload_the_asset_first"
    },
    CodeInfo{
        Code::no_capable_worker,
        "no_capable_worker",
        validation_error,
        422,
        false,
        "install_the_missing_nodes"
    },
    CodeInfo{
        Code::unauthorized, "unauthorized", validation_error, 401, false, "send_a_valid_api_key"
    },
    CodeInfo{Code::forbidden, "forbidden", validation_error, 403, false, "ask_for_access"},
    CodeInfo{Code::not_found, "not_found", validation_error, 404, false, "check_the_id_or_path"},
    CodeInfo{
        Code::method_not_allowed,
        "method_not_allowed",
        validation_error,
        405,
        false,
        "use_an_allowed_method"
    },
    CodeInfo{
        Code::conflict, "conflict", validation_error, 409, false, "read_the_current_state_first"
    },
    CodeInfo{
        Code::idempotency_key_reuse,
        "idempotency_key_reuse",
        validation_error,
        422,
        false,
        "use_a_new_key"
    },
    CodeInfo{
        Code::hash_mismatch, "hash_mismatch", validation_error, 409, false, "send_the_bytes_again"
    },
    CodeInfo{
        Code::blob_not_found, "blob_not_found", validation_error, 404, false, "upload_the_bytes"
    },
    CodeInfo{
        Code::asset_in_use,
        "asset_in_use",
        validation_error,
        409,
        false,
        "wait_until_it_is_released"
    },
    CodeInfo{
        Code::range_not_satisfiable,
        "range_not_satisfiable",
        validation_error,
        416,
        false,
        "ask_for_a_valid_range"
    },
    CodeInfo{
        Code::payload_too_large,
        "payload_too_large",
        validation_error,
        413,
        false,
        "send_less_or_upload_as_asset"
    },
    CodeInfo{
        Code::header_too_large,
        "header_too_large",
        validation_error,
        431,
        false,
        "send_smaller_headers"
    },
    CodeInfo{
        Code::unsupported_media_type,
        "unsupported_media_type",
        validation_error,
        415,
        false,
        "use_a_supported_content_type"
    },
    CodeInfo{
        Code::upgrade_required,
        "upgrade_required",
        validation_error,
        426,
        false,
        "connect_with_a_websocket"
    },
    CodeInfo{Code::rate_limited, "rate_limited", resource_error, 429, true, "slow_down"},
    CodeInfo{Code::queue_full, "queue_full", resource_error, 429, true, "retry_later"},
    CodeInfo{
        Code::too_many_streams, "too_many_streams", resource_error, 429, true, "close_a_stream"
    },
    CodeInfo{
        Code::worker_rejected,
        "worker_rejected",
        validation_error,
        422,
        false,
        "validate_workflow_structure"
    },
    CodeInfo{
        Code::worker_unavailable, "worker_unavailable", resource_error, 503, true, "retry_later"
    },
    CodeInfo{Code::worker_lost, "worker_lost", system_error, 503, true, "retry_later"},
    CodeInfo{
        Code::node_execution_error,
        "node_execution_error",
        execution_error,
        500,
        false,
        "check_the_failing_node"
    },
    CodeInfo{
        Code::out_of_memory,
        "out_of_memory",
        resource_error,
        500,
        true,
        "reduce_batch_size_or_model_size"
    },
    CodeInfo{
        Code::execution_timeout,
        "execution_timeout",
        timeout_error,
        504,
        false,
        "increase_timeout_or_simplify_workflow"
    },
    CodeInfo{
        Code::deadline_exceeded,
        "deadline_exceeded",
        timeout_error,
        504,
        false,
        "use_a_later_deadline"
    },
    CodeInfo{Code::cancelled, "cancelled", execution_error, 409, false, "submit_again"},
    CodeInfo{
        Code::output_unavailable,
        "output_unavailable",
        system_error,
        404,
        false,
        "run_the_workflow_again"
    },
    CodeInfo{
        Code::address_refused,
        "address_refused",
        validation_error,
        400,
        false,
        "use_a_public_address"
    },
    CodeInfo{Code::connection_failed, "connection_failed", system_error, 502, true, "retry_later"},
    CodeInfo{Code::protocol_error, "protocol_error", system_error, 502, true, "retry_later"},
    CodeInfo{Code::request_timeout, "request_timeout", timeout_error, 408, true, "retry_later"},
    CodeInfo{Code::upstream_error, "upstream_error", system_error, 502, true, "retry_later"},
    CodeInfo{Code::out_of_stock, "out_of_stock", resource_error, 503, true, "retry_later"},
    CodeInfo{Code::balance_empty, "balance_empty", resource_error, 503, false, "pay_the_provider"},
    CodeInfo{Code::storage_full, "storage_full", system_error, 507, true, "free_disk_space"},
    CodeInfo{
        Code::storage_unavailable, "storage_unavailable", system_error, 503, true, "retry_later"
    },
    CodeInfo{
        Code::schema_too_new, "schema_too_new", system_error, 500, false, "use_a_newer_comfyd"
    },
    CodeInfo{Code::lead_lost, "lead_lost", system_error, 503, true, "retry_later"},
    CodeInfo{
        Code::config_invalid,
        "config_invalid",
        validation_error,
        400,
        false,
        "fix_the_configuration"
    },
    CodeInfo{Code::shutting_down, "shutting_down", system_error, 503, true, "retry_later"},
    CodeInfo{Code::internal, "internal", system_error, 500, false, "report_a_bug"},
};

}  // namespace

const CodeInfo& info(Code code) {
    const auto index = static_cast<std::size_t>(code);
    COMFYD_ASSERT(index < kCodes.size() && kCodes[index].code == code);
    return kCodes[index];
}

std::string_view to_string(Code code) {
    return info(code).name;
}

std::optional<Code> parse_code(std::string_view name) {
    for (const CodeInfo& entry : kCodes) {
        if (entry.name == name) {
            return entry.code;
        }
    }
    return std::nullopt;
}

std::string_view to_string(Category category) {
    switch (category) {
        case validation_error:
            return "validation_error";
        case resource_error:
            return "resource_error";
        case execution_error:
            return "execution_error";
        case timeout_error:
            return "timeout_error";
        case system_error:
            return "system_error";
    }
    return "system_error";
}

Error::Error() = default;
Error::Error(Code error_code, std::string text) : code(error_code), message(std::move(text)) {}
Error::Error(Code error_code, std::string text, boost::json::object more)
    : code(error_code), message(std::move(text)), details(std::move(more)) {}
Error::Error(const Error& other) = default;
Error::Error(Error&& other) noexcept = default;
Error& Error::operator=(const Error& other) = default;
Error& Error::operator=(Error&& other) = default;
Error::~Error() = default;

tl::unexpected<Error> fail(Code code, std::string message) {
    return tl::unexpected<Error>(Error(code, std::move(message)));
}

tl::unexpected<Error> fail(Code code, std::string message, boost::json::object details) {
    return tl::unexpected<Error>(Error(code, std::move(message), std::move(details)));
}

tl::unexpected<Error> fail(Error error) {
    return tl::unexpected<Error>(std::move(error));
}

}  // namespace comfyd
