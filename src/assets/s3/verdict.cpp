#include "assets/s3/verdict.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "assets/s3/xml.hpp"
#include "net/http_date.hpp"

namespace comfyd::assets::s3 {
namespace {

struct Row {
    // What passes by itself, or is cured, is an outage; for the rest somebody must do something.
    constexpr Row(std::string_view said, Action then)
        : reason(said),
          action(then),
          code(then == Action::give_up ? Code::config_invalid : Code::storage_unavailable) {}
    constexpr Row(std::string_view said, Action then, Code means)
        : reason(said), action(then), code(means) {}

    std::string_view reason;
    Action action;
    Code code;
};

constexpr std::array kTable = {
    Row{"InternalError", Action::again},
    Row{"ServiceUnavailable", Action::slower},
    Row{"SlowDown", Action::slower},
    Row{"TooManyRequests", Action::slower},
    Row{"RequestTimeout", Action::again},
    Row{"BadGateway", Action::again},
    Row{"OperationAborted", Action::again},
    Row{"ConditionalRequestConflict", Action::again},
    Row{"RequestTimeTooSkewed", Action::set_clock, Code::config_invalid},
    Row{"ExpiredToken", Action::refresh_credentials, Code::config_invalid},
    Row{"InvalidToken", Action::refresh_credentials, Code::config_invalid},
    Row{"TokenRefreshRequired", Action::refresh_credentials, Code::config_invalid},
    Row{"AuthorizationHeaderMalformed", Action::go_elsewhere, Code::config_invalid},
    Row{"PermanentRedirect", Action::go_elsewhere, Code::config_invalid},
    Row{"TemporaryRedirect", Action::go_elsewhere},
    Row{"BadDigest", Action::again_once},
    Row{"InvalidDigest", Action::again_once},
    Row{"XAmzContentSHA256Mismatch", Action::again_once},
    Row{"NoSuchBucket", Action::give_up},
    Row{"NoSuchKey", Action::give_up, Code::not_found},
    Row{"NoSuchVersion", Action::give_up, Code::not_found},
    Row{"NoSuchUpload", Action::give_up, Code::not_found},
    Row{"InvalidObjectState", Action::give_up, Code::output_unavailable},
    Row{"PreconditionFailed", Action::give_up, Code::conflict},
    Row{"RestoreAlreadyInProgress", Action::give_up, Code::conflict},
    Row{"InvalidRange", Action::give_up, Code::range_not_satisfiable},
    Row{"QuotaExceeded", Action::give_up, Code::storage_full},
    Row{"EntityTooLarge", Action::give_up, Code::payload_too_large},
};

// Without a body, as answers to HEAD are.
Row by_status(int status) {
    if (status == 429) {
        return {"", Action::slower};
    }
    if (status >= 500 && status != 501) {
        return {"", status == 503 ? Action::slower : Action::again};
    }
    if (status == 404) {
        return {"", Action::give_up, Code::not_found};
    }
    if (status == 412) {
        return {"", Action::give_up, Code::conflict};
    }
    if (status == 416) {
        return {"", Action::give_up, Code::range_not_satisfiable};
    }
    if (status == 301 || status == 307) {
        return {"", Action::go_elsewhere};
    }
    return {"", Action::give_up};
}

Row row_of(const std::string& reason, int status) {
    const auto found = std::ranges::find(kTable, reason, &Row::reason);
    return reason.empty() || found == kTable.end() ? by_status(status) : *found;
}

std::string_view advice_for(std::string_view reason, int status) {
    if (reason == "SignatureDoesNotMatch" || reason == "InvalidAccessKeyId") {
        return "; check access_key and secret_key of the store";
    }
    if (reason == "NoSuchBucket") {
        return "; check bucket, endpoint and region of the store";
    }
    if (reason == "RequestTimeTooSkewed") {
        return "; set this machine's clock";
    }
    if (status == 403) {
        return "; the credentials of the store may not do this";
    }
    return "";
}

// "https://bucket.s3-eu-west-1.amazonaws.com/key?x" -> "bucket.s3-eu-west-1.amazonaws.com".
std::string host_of(std::string_view location) {
    const auto url = net::Url::parse(location);
    return url ? url->host_header() : std::string();
}

void say_where(Verdict& verdict, const net::ClientResponse& answer, const std::string& region) {
    verdict.region = answer.headers.get("x-amz-bucket-region");
    if (verdict.region.empty()) {
        verdict.region = find_text(answer.body, "Region");
    }
    verdict.host = find_text(answer.body, "Endpoint");
    if (answer.status == 307) {
        verdict.host = host_of(answer.headers.get("Location"));
        verdict.is_for_this_request_only = true;
    }
    if (verdict.host.empty() && (verdict.region.empty() || verdict.region == region)) {
        verdict.action = Action::give_up;  // it does not say where
    }
}

}  // namespace

Verdict judge(const net::ClientResponse& answer, const std::string& region, bool may_fail_late) {
    const bool is_success = answer.status / 100 == 2;
    if (is_success && !(may_fail_late && find_element(answer.body, "Error"))) {
        return {};
    }
    Verdict verdict;
    verdict.reason = find_text(answer.body, "Code");
    const int status = is_success ? 500 : answer.status;
    const Row row = row_of(verdict.reason, status);
    verdict.action = row.action;
    const std::string_view bucket_region = answer.headers.get("x-amz-bucket-region");
    const bool is_refused = status == 301 || status == 400 || status == 403;
    if (verdict.action == Action::go_elsewhere ||
        (is_refused && !bucket_region.empty() && bucket_region != region)) {
        verdict.action = Action::go_elsewhere;
        say_where(verdict, answer, region);
    }
    if (verdict.action == Action::set_clock) {
        verdict.time = net::parse_http_date(answer.headers.get("Date"));
        verdict.action = verdict.time ? Action::set_clock : Action::give_up;
    }
    const std::string said = find_text(answer.body, "Message");
    std::string message = "the store answers " + std::to_string(answer.status);
    message += verdict.reason.empty() ? "" : " " + verdict.reason;
    message += said.empty() ? "" : " (" + said.substr(0, 300) + ")";
    message += advice_for(verdict.reason, status);
    verdict.error = Error(row.code, std::move(message));
    if (!verdict.reason.empty()) {
        verdict.error.details["reason"] = verdict.reason;
    }
    return verdict;
}

Verdict judge(const Error& failure) {
    switch (failure.code) {
        case Code::connection_failed:
        case Code::request_timeout:
        case Code::protocol_error:
            return {
                .action = Action::again,
                .error = Error(
                    Code::storage_unavailable, "the store cannot be reached: " + failure.message
                )
            };
        default:
            return {.action = Action::give_up, .error = failure};
    }
}

}  // namespace comfyd::assets::s3
