#include "assets/drive/upload.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "assets/guarded.hpp"
#include "assets/read_source.hpp"
#include "base/log.hpp"

namespace comfyd::assets::drive {
namespace {

constexpr int kSessionsMax = 3;
constexpr int kTriesWithoutProgressMax = 6;

std::string scheme_of(std::string_view url) {
    const auto parsed = net::Url::parse(url);
    return parsed ? parsed->scheme : std::string();
}

// "bytes=0-524287" -> 524288; without it nothing has arrived.
std::uint64_t received(std::string_view range) {
    const auto dash = range.rfind('-');
    std::uint64_t last = 0;
    if (dash == std::string_view::npos) {
        return 0;
    }
    const auto text = range.substr(dash + 1);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), last);
    return error == std::errc() && end == text.data() + text.size() ? last + 1 : 0;
}

}  // namespace

Upload::Upload(Drive& drive, std::string name, Source source)
    : drive_(drive), name_(std::move(name)), source_(std::move(source)) {}

Task<Result<std::string>> Upload::run() {
    Error last(Code::storage_unavailable, "Google Drive forgets uploads");
    for (int sessions = 0; sessions < kSessionsMax; ++sessions) {
        const bool goes_on = sessions == 0 && resume();
        if (!goes_on) {
            auto begun = co_await begin();
            if (!begun) {
                co_return fail(std::move(begun.error()));
            }
        }
        int tries = 0;
        bool is_alive = true;
        while (is_alive) {
            const std::uint64_t before = sent_;
            auto step = co_await advance();
            if (step && step->id) {
                co_return std::move(*step->id);
            }
            is_alive = !step || !step->is_session_gone;
            if (!step) {
                last = step.error();
                is_unsure_ = true;
            }
            tries = sent_ > before ? 0 : tries + 1;
            const bool may_pass = step || last.code == Code::storage_unavailable;
            if (!may_pass && goes_on && last.code != Code::cancelled) {
                is_alive = false;  // what was noted is of no use
                continue;
            }
            if (!may_pass || tries >= kTriesWithoutProgressMax) {
                co_return fail(std::move(last));
            }
            if (tries > 0 && is_alive) {
                const bool slept = co_await sleep_for(pause_after(tries, drive_.options_.patience));
                if (!slept) {
                    co_return fail(Code::cancelled, "the upload was cancelled");
                }
            }
        }
    }
    co_return fail(std::move(last));
}

// An earlier try's: it is to be asked how far it is, or whether it is done.
bool Upload::resume() {
    const std::string& noted = source_.note.last;
    if (noted.empty() || !is_session(noted)) {
        return false;
    }
    session_ = noted;
    is_unsure_ = true;
    return true;
}

bool Upload::is_session(std::string_view url) const {
    return !scheme_of(url).empty() && scheme_of(url) == scheme_of(drive_.options_.endpoint);
}

Task<Result<>> Upload::begin() {
    sent_ = 0;
    is_unsure_ = false;
    const std::string type =
        source_.content_type.empty() ? "application/octet-stream" : source_.content_type;
    const json::object about{
        {"name", name_},
        {"parents", json::array{drive_.options_.folder}},
        {"mimeType", type},
        {"appProperties", json::object{{"comfyd", source_.hash}}}
    };
    net::ClientRequest request;
    request.method = "POST";
    request.url = drive_.url_of(
        "/upload/drive/v3/files", "uploadType=resumable&fields=id,size&supportsAllDrives=true"
    );
    request.headers.set("Content-Type", "application/json; charset=UTF-8");
    request.headers.set("X-Upload-Content-Type", type);
    request.headers.set("X-Upload-Content-Length", std::to_string(source_.size_bytes));
    request.body = json::serialize(about);
    auto answer = co_await drive_.send(std::move(request));
    if (!answer) {
        Error error = std::move(answer.error());
        if (error.code == Code::not_found) {
            error = Error(
                Code::config_invalid,
                "the folder of the store is not there, or the account may not see it; check "
                "folder, and share it with the account"
            );
        }
        co_return fail(std::move(error));
    }
    session_ = answer->headers.get("Location");
    if (!is_session(session_)) {
        co_return fail(Code::storage_unavailable, "Google Drive began an upload without a session");
    }
    if (source_.note.keep) {
        auto kept = co_await source_.note.keep(session_);
        if (!kept) {  // after a crash it would be begun anew, and Drive forget this one
            log::warning("an upload is not noted", {{"reason", kept.error().message}});
        }
    }
    co_return Result<>();
}

Task<Result<Upload::Step>> Upload::advance() {
    const std::string total = std::to_string(source_.size_bytes);
    std::string range = "bytes */" + total;
    std::string bytes;
    if (!is_unsure_ && source_.size_bytes == 0) {
        range.clear();  // nothing has no range
    } else if (!is_unsure_) {
        const std::uint64_t length =
            std::min(drive_.options_.chunk_bytes, source_.size_bytes - sent_);
        auto read = co_await drive_.pool_.run(guarded([this, length] {
            return read_source(source_, sent_, length);
        }));
        if (!read) {
            co_return fail(Code::internal, std::move(read.error().message));
        }
        bytes = std::move(*read);
        range = "bytes " + std::to_string(sent_) + "-" + std::to_string(sent_ + length - 1) + "/" +
                total;
    }
    auto answer = co_await put(std::move(range), std::move(bytes));
    if (!answer) {
        co_return fail(std::move(answer.error()));
    }
    co_return understand(*answer);
}

Task<Result<net::ClientResponse>> Upload::put(std::string range, std::string bytes) {
    net::ClientRequest request{.method = "PUT", .url = session_};
    if (!range.empty()) {
        request.headers.set("Content-Range", std::move(range));
    }
    request.timeout = std::chrono::minutes(1) + time_for(bytes.size());
    request.body = std::move(bytes);
    return drive_.send_once(std::move(request), false);
}

Result<Upload::Step> Upload::understand(const net::ClientResponse& answer) {
    if (answer.status == 200 || answer.status == 201) {
        return finished(answer);
    }
    if (answer.status == 308) {  // no redirect here: so far, and go on
        const std::uint64_t has = received(answer.headers.get("Range"));
        if (has > source_.size_bytes) {
            return fail(Code::storage_unavailable, "Google Drive says it has more than was sent");
        }
        // All of it is there, but no answer that it is done: it is to be asked.
        is_unsure_ = has == source_.size_bytes;
        sent_ = has;
        return Step{};
    }
    if (answer.status == 404 || answer.status == 410) {
        return Step{.is_session_gone = true};
    }
    return fail(to_error(answer));
}

Result<Upload::Step> Upload::finished(const net::ClientResponse& answer) const {
    const auto file = json::parse_object(answer.body);
    const auto id = file ? json::find_string(*file, "id") : Result<std::optional<std::string>>();
    const auto size =
        file ? json::find_string(*file, "size") : Result<std::optional<std::string>>();
    if (!id || !*id || (*id)->empty()) {
        return fail(Code::storage_unavailable, "Google Drive ended an upload without an id");
    }
    if (size && *size && **size != std::to_string(source_.size_bytes)) {
        return fail(
            Code::internal,
            "Google Drive has " + **size + " bytes of a file of " +
                std::to_string(source_.size_bytes)
        );
    }
    return Step{.id = **id};
}

}  // namespace comfyd::assets::drive
