#include "fleet/providers/docker_api.hpp"

#include <charconv>
#include <utility>

#include "base/on_executor.hpp"
#include "comfy/members.hpp"
#include "fleet/providers/foreign_words.hpp"

namespace comfyd::fleet {
namespace {

// The newest that we have read the documentation of, and the oldest that has requests for devices.
constexpr std::string_view kNewest = "1.47";
constexpr std::string_view kOldest = "1.40";

constexpr std::uint64_t kAnswerBytesMax = 32ULL * 1024 * 1024;
constexpr int kNotModified = 304;

struct Version {
    int major = 0;
    int minor = 0;
    auto operator<=>(const Version&) const = default;
};

std::optional<Version> parse_version(std::string_view text) {
    Version version;
    const char* const end = text.data() + text.size();
    const auto major = std::from_chars(text.data(), end, version.major);
    if (major.ec != std::errc() || major.ptr == end || *major.ptr != '.') {
        return std::nullopt;
    }
    const auto minor = std::from_chars(major.ptr + 1, end, version.minor);
    return minor.ec == std::errc() && minor.ptr == end ? std::optional(version) : std::nullopt;
}

Code code_of(int status) {
    switch (status) {
        case 404:
            return Code::not_found;
        case 409:
            return Code::conflict;
        default:
            return status < 500 ? Code::invalid_argument : Code::upstream_error;
    }
}

Error refusal(int status, const std::string& body) {
    const auto parsed = json::parse(body);
    std::string words;
    if (parsed && parsed->is_object()) {
        words = presentable(comfy::text_of(parsed->get_object(), "message"));
    }
    if (words.empty()) {
        words = "HTTP " + std::to_string(status) + " " + excerpt_of(body);
    }
    return Error(code_of(status), "the container engine says: " + words);
}

bool is_success(int status) {
    return status / 100 == 2 || status == kNotModified;
}

}  // namespace

std::optional<std::string> older_version(std::string_view a, std::string_view b) {
    const auto first = parse_version(a);
    const auto second = parse_version(b);
    if (!first || !second) {
        return std::nullopt;
    }
    return std::string(*first < *second ? a : b);
}

DockerApi::DockerApi(Executor executor, std::string socket)
    : executor_(executor), socket_(std::move(socket)), client_(executor, {}) {}

Error DockerApi::explain(Error error) const {
    if (error.code == Code::connection_failed) {
        error.message += "; is Docker or podman running, and may comfyd use its socket?";
    }
    return error;
}

Task<Result<DockerEngine>> DockerApi::engine() {
    COMFYD_ON(executor_);
    if (engine_) {
        co_return *engine_;
    }
    net::ClientRequest ping;
    ping.url = "http://docker/_ping";
    ping.socket = socket_;
    ping.response_bytes_max = 64 * 1024;
    auto answer = co_await client_.send(std::move(ping));
    if (!answer) {
        co_return fail(explain(std::move(answer.error())));
    }
    const std::string theirs(answer->headers.get("Api-Version"));
    const auto version = older_version(theirs, kNewest);
    if (answer->status != 200 || !version) {
        co_return fail(
            Code::protocol_error,
            "unix:" + socket_ + ": there is no Docker behind it (its /_ping answers " +
                std::to_string(answer->status) + " without an Api-Version)"
        );
    }
    if (older_version(*version, kOldest) != kOldest && *version != kOldest) {
        co_return fail(
            Code::config_invalid,
            "unix:" + socket_ + ": its API is of version " + presentable(theirs) +
                ", and comfyd needs " + std::string(kOldest) + ": install a newer engine"
        );
    }
    engine_ = DockerEngine{*version, answer->headers.contains("Libpod-Api-Version")};
    co_return *engine_;
}

Task<Result<net::ClientRequest>> DockerApi::make_request(DockerCall call) {
    const auto known = co_await engine();
    if (!known) {
        co_return fail(known.error());
    }
    net::ClientRequest request;
    request.method = std::move(call.method);
    request.url = "http://docker/v" + known->version + call.path;
    request.socket = socket_;
    request.headers = std::move(call.headers);
    request.timeout = call.timeout;
    request.response_bytes_max = kAnswerBytesMax;
    if (call.body) {
        request.headers.set("Content-Type", "application/json");
        request.body = json::serialize(*call.body);
    }
    co_return request;
}

Task<Result<json::value>> DockerApi::call(DockerCall call) {
    COMFYD_ON(executor_);
    auto request = co_await make_request(std::move(call));
    if (!request) {
        co_return fail(std::move(request.error()));
    }
    auto answer = co_await client_.send(std::move(*request));
    if (!answer) {
        engine_.reset();  // another may be there when it comes back
        co_return fail(explain(std::move(answer.error())));
    }
    if (!is_success(answer->status)) {
        co_return fail(refusal(answer->status, answer->body));
    }
    if (answer->body.empty()) {
        co_return json::value(nullptr);
    }
    auto body = json::parse(answer->body);
    if (!body) {
        co_return fail(
            Code::protocol_error,
            "the container engine answers with what is not JSON: " + excerpt_of(answer->body)
        );
    }
    co_return std::move(*body);
}

Task<Result<>> DockerApi::stream(DockerCall call, net::Client::Sink sink) {
    COMFYD_ON(executor_);
    auto request = co_await make_request(std::move(call));
    if (!request) {
        co_return fail(std::move(request.error()));
    }
    request->response_bytes_max = UINT64_MAX;
    auto answer = co_await client_.download(std::move(*request), std::move(sink));
    if (!answer) {
        if (answer.error().code == Code::connection_failed) {
            engine_.reset();
        }
        co_return fail(explain(std::move(answer.error())));
    }
    co_return is_success(answer->status) ? Result<>() : fail(refusal(answer->status, answer->body));
}

}  // namespace comfyd::fleet
