// The table of Drive's errors.
#include <algorithm>
#include <array>

#include "assets/drive/drive.hpp"

namespace comfyd::assets::drive {
namespace {

struct Row {
    std::string_view reason;
    Code code;
    std::string_view advice = "";
};

constexpr std::array kTable = {
    Row{"rateLimitExceeded", Code::storage_unavailable},
    Row{"userRateLimitExceeded", Code::storage_unavailable},
    Row{"sharingRateLimitExceeded", Code::storage_unavailable},
    Row{"backendError", Code::storage_unavailable},
    Row{"internalError", Code::storage_unavailable},
    Row{"storageQuotaExceeded",
        Code::storage_full,
        "; a service account owns no storage: use a folder of a shared drive, a subject that it "
        "speaks for, or a person's refresh token"},
    Row{"teamDriveFileLimitExceeded", Code::storage_full},
    Row{"insufficientFilePermissions",
        Code::config_invalid,
        "; make the account a content manager of the drive"},
    Row{"insufficientPermissions",
        Code::config_invalid,
        "; make the account a content manager of the drive"},
    Row{"notFound", Code::not_found},
    Row{"accessNotConfigured", Code::config_invalid, "; switch the Drive API on in the project"},
};

Code by_status(int status) {
    if (status == 404) {
        return Code::not_found;
    }
    if (status == 416) {
        return Code::range_not_satisfiable;
    }
    const bool may_pass = status >= 500 || status == 429 || status == 408 || status / 100 == 2;
    return may_pass ? Code::storage_unavailable : Code::config_invalid;
}

// {"error":{"message","errors":[{"reason"}]}}
std::pair<std::string, std::string> reason_and_message(std::string_view body) {
    const auto text = json::parse_object(body);
    const auto error = text ? json::find_object(*text, "error") : Result<const json::object*>();
    if (!error || *error == nullptr) {
        return {};
    }
    const auto message = json::find_string(**error, "message");
    const auto list = json::find_array(**error, "errors");
    std::string reason;
    if (list && *list != nullptr && !(*list)->empty() && (**list)[0].is_object()) {
        const auto found = json::find_string((**list)[0].get_object(), "reason");
        reason = found && *found ? **found : std::string();
    }
    return {std::move(reason), message && *message ? **message : std::string()};
}

}  // namespace

Error to_error(const net::ClientResponse& answer) {
    const auto [reason, said] = reason_and_message(answer.body);
    const auto row = std::ranges::find(kTable, reason, &Row::reason);
    const bool is_known = !reason.empty() && row != kTable.end();
    std::string message = "Google Drive answers " + std::to_string(answer.status);
    message += reason.empty() ? "" : " " + reason;
    message += said.empty() ? "" : " (" + said.substr(0, 300) + ")";
    message += is_known ? row->advice : "";
    Error error(is_known ? row->code : by_status(answer.status), std::move(message));
    if (!reason.empty()) {
        error.details["reason"] = reason;
    }
    return error;
}

}  // namespace comfyd::assets::drive
