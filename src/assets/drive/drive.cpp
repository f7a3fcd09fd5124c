#include "assets/drive/drive.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "assets/blob_key.hpp"
#include "assets/drive/upload.hpp"
#include "base/log.hpp"
#include "base/on_executor.hpp"

namespace comfyd::assets::drive {
namespace {

// Above it the service shows a page instead that asks whether one trusts the file.
constexpr std::uint64_t kLinkedBytesMax = 25'000'000;
constexpr std::uint64_t kAnswerBytesMax = 8ULL * 1024 * 1024;
constexpr std::size_t kUploadsMax = 4;

std::string member(const json::object& in, std::string_view name) {
    const auto found = json::find_string(in, name);
    return found && *found ? **found : std::string();
}

std::uint64_t to_number(std::string_view text) {
    std::uint64_t number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
}

Error unusable() {
    return Error(Code::storage_unavailable, "Google Drive's answer is unusable");
}

net::ClientRequest json_request(std::string method, std::string url, const json::object& body) {
    net::ClientRequest request{.method = std::move(method), .url = std::move(url)};
    request.headers.set("Content-Type", "application/json; charset=UTF-8");
    request.body = json::serialize(body);
    return request;
}

}  // namespace

Drive::Drive(Executor executor, DriveOptions options, Identity identity, Clock& clock, Pool& pool)
    : executor_(executor),
      options_(std::move(options)),
      pool_(pool),
      client_(
          executor, {.idle_per_origin_max = options_.parallel_max, .ca_file = options_.ca_file}
      ),
      tokens_(executor, std::move(identity), client_, clock, pool),
      gate_(executor, options_.parallel_max),
      uploads_(executor, kUploadsMax) {}

std::string Drive::url_of(std::string_view path, std::string_view query) const {
    return options_.endpoint + std::string(path) + (query.empty() ? "" : "?") + std::string(query);
}

Task<Result<net::ClientResponse>> Drive::send_once(net::ClientRequest request, bool signs_in) {
    std::string token;
    if (signs_in) {
        auto had = co_await tokens_.get();
        if (!had) {
            co_return fail(std::move(had.error()));
        }
        token = std::move(*had);
        request.headers.set("Authorization", "Bearer " + token);
    }
    const auto pass = co_await gate_.enter();
    if (!pass) {
        co_return fail(Code::cancelled, "the request to Google Drive was cancelled");
    }
    auto answer = co_await client_.send(std::move(request));
    if (!answer) {
        const Code code = answer.error().code;
        const bool may_pass = code == Code::connection_failed || code == Code::request_timeout ||
                              code == Code::protocol_error;
        co_return fail(
            may_pass ? Code::storage_unavailable : code, "Google Drive: " + answer.error().message
        );
    }
    if (answer->status == 401 && signs_in) {
        tokens_.refuse(token);
    }
    if (answer->status == 429 || answer->status == 503) {
        gate_.slow_down();
    } else if (answer->status / 100 == 2) {
        gate_.went_well();
    }
    co_return answer;
}

Task<Result<net::ClientResponse>> Drive::send(net::ClientRequest request) {
    COMFYD_ON(executor_);
    bool has_new_token = false;
    for (int tries = 1;; ++tries) {
        auto answer = co_await send_once(request, true);
        if (answer && answer->status / 100 == 2) {
            co_return answer;
        }
        Error error = answer ? to_error(*answer) : std::move(answer.error());
        if (answer && answer->status == 401 && !std::exchange(has_new_token, true)) {
            continue;
        }
        if (error.code != Code::storage_unavailable || tries >= options_.patience.tries_max) {
            co_return fail(std::move(error));
        }
        const bool slept = co_await sleep_for(pause_after(tries, options_.patience));
        if (!slept) {
            co_return fail(Code::cancelled, "the request to Google Drive was cancelled");
        }
    }
}

Task<Result<std::string>> Drive::put(std::string name, Source source) {
    COMFYD_ON(executor_);
    const auto pass = co_await uploads_.enter();
    if (!pass) {
        co_return fail(Code::cancelled, "the upload was cancelled");
    }
    Upload upload(*this, std::move(name), std::move(source));
    auto id = co_await upload.run();
    if (id && options_.shares) {
        auto shared = co_await share(*id);
        if (!shared) {  // the bytes are safe, and our own links work
            log::warning(
                "a file in Google Drive cannot be shared",
                {{"file", *id}, {"reason", shared.error().message}}
            );
        }
    }
    co_return id;
}

Task<Result<>> Drive::share(std::string id) {
    auto request = json_request(
        "POST",
        url_of(
            "/drive/v3/files/" + net::percent_encode(id) + "/permissions", "supportsAllDrives=true"
        ),
        {{"role", "reader"}, {"type", "anyone"}}
    );
    auto answer = co_await send(std::move(request));
    co_return answer ? Result<>() : fail(std::move(answer.error()));
}

Task<Result<std::string>> Drive::read(std::string id, std::uint64_t first, std::uint64_t length) {
    if (length == 0) {
        co_return std::string();
    }
    net::ClientRequest request;
    request.url =
        url_of("/drive/v3/files/" + net::percent_encode(id), "alt=media&supportsAllDrives=true");
    request.headers.set(
        "Range", "bytes=" + std::to_string(first) + "-" + std::to_string(first + length - 1)
    );
    request.response_bytes_max = std::max(length, kAnswerBytesMax);
    request.timeout = std::chrono::minutes(1) + time_for(length);
    auto answer = co_await send(std::move(request));
    if (!answer) {
        const bool is_behind_end = answer.error().code == Code::range_not_satisfiable;
        co_return is_behind_end ? Result<std::string>("") : fail(std::move(answer.error()));
    }
    std::string bytes = std::move(answer->body);
    if (answer->status == 200) {  // all of it
        bytes.erase(0, std::min<std::uint64_t>(first, bytes.size()));
    }
    bytes.resize(std::min<std::uint64_t>(length, bytes.size()));
    co_return bytes;
}

// Only an organizer of a shared drive deletes there; others put into the trash, which is emptied
// after 30 days.
Task<Result<>> Drive::remove(std::string id) {
    const std::string url =
        url_of("/drive/v3/files/" + net::percent_encode(id), "supportsAllDrives=true");
    net::ClientRequest request{.method = "DELETE", .url = url};
    auto answer = co_await send(std::move(request));
    if (answer || answer.error().code == Code::not_found) {
        co_return Result<>();
    }
    const auto reason = json::find_string(answer.error().details, "reason");
    if (!reason || !*reason || !(*reason)->starts_with("insufficient")) {
        co_return fail(std::move(answer.error()));
    }
    auto trash = json_request("PATCH", url, {{"trashed", true}});
    auto trashed = co_await send(std::move(trash));
    const bool is_gone = trashed || trashed.error().code == Code::not_found;
    co_return is_gone ? Result<>() : fail(std::move(trashed.error()));
}

Task<Result<BlobStore::Page>> Drive::list(std::string after) {
    std::string query =
        "pageSize=1000&supportsAllDrives=true&includeItemsFromAllDrives=true"
        "&fields=nextPageToken,files(id,name,size,modifiedTime)&q=" +
        net::percent_encode("'" + options_.folder + "' in parents and trashed = false");
    if (!options_.drive_id.empty()) {
        query += "&corpora=drive&driveId=" + net::percent_encode(options_.drive_id);
    }
    if (!after.empty()) {
        query += "&pageToken=" + net::percent_encode(after);
    }
    net::ClientRequest request{.url = url_of("/drive/v3/files", query)};
    auto answer = co_await send(std::move(request));
    if (!answer) {
        co_return fail(std::move(answer.error()));
    }
    const auto body = json::parse_object(answer->body);
    const auto files = body ? json::find_array(*body, "files") : Result<const json::array*>();
    if (!body || !files || *files == nullptr) {
        co_return fail(unusable());
    }
    BlobStore::Page page;
    for (const auto& entry : **files) {
        if (!entry.is_object()) {
            continue;
        }
        const json::object& file = entry.get_object();
        const auto modified_at = parse_rfc3339(member(file, "modifiedTime"));
        if (modified_at && parse_blob_key(member(file, "name"))) {
            page.blobs.push_back(
                {member(file, "id"),
                 member(file, "name"),
                 to_number(member(file, "size")),
                 *modified_at}
            );
        }
    }
    page.next = member(*body, "nextPageToken");
    co_return page;
}

// Not out of what files.get says of permissions: that is empty for files of shared drives.
Task<Result<std::optional<std::string>>> Drive::link(std::string id) {
    const std::string path = "/drive/v3/files/" + net::percent_encode(id);
    net::ClientRequest permissions{
        .url = url_of(path + "/permissions", "fields=permissions(type)&supportsAllDrives=true")
    };
    auto granted = co_await send(std::move(permissions));
    if (!granted) {
        co_return fail(std::move(granted.error()));
    }
    if (granted->body.find("\"anyone\"") == std::string::npos) {
        co_return std::nullopt;
    }
    net::ClientRequest about{
        .url = url_of(path, "fields=size,webContentLink&supportsAllDrives=true")
    };
    auto answer = co_await send(std::move(about));
    if (!answer) {
        co_return fail(std::move(answer.error()));
    }
    const auto file = json::parse_object(answer->body);
    if (!file) {
        co_return fail(unusable());
    }
    std::string url = member(*file, "webContentLink");
    const bool is_usable = !url.empty() && to_number(member(*file, "size")) <= kLinkedBytesMax;
    co_return is_usable ? std::optional(std::move(url)) : std::nullopt;
}

}  // namespace comfyd::assets::drive
