#include "fleet/providers/cloud_api.hpp"

#include <algorithm>
#include <utility>

#include "base/deadline.hpp"
#include "base/on_executor.hpp"
#include "fleet/providers/foreign_words.hpp"

namespace comfyd::fleet {
namespace {

std::string text_member(const json::object& in, std::string_view name) {
    const auto found = json::find_string(in, name);
    return found && *found ? **found : std::string();
}

std::string common_words(const json::object& body) {
    for (const std::string_view name : {"message", "detail", "title", "error", "reason"}) {
        std::string words = text_member(body, name);
        if (!words.empty()) {
            return words;
        }
    }
    const auto error = json::find_object(body, "error");
    return error && *error != nullptr ? text_member(**error, "message") : std::string();
}

bool may_pass(Code code) {
    return code == Code::connection_failed || code == Code::request_timeout ||
           code == Code::protocol_error || code == Code::upstream_error;
}

std::int64_t seconds_of(Millis time) {
    return std::chrono::ceil<std::chrono::seconds>(time).count();
}

}  // namespace

Result<> check_cloud_url(std::string_view url) {
    const auto parsed = net::Url::parse(url);
    const bool is_here = parsed && (parsed->host == "127.0.0.1" || parsed->host == "::1" ||
                                    parsed->host == "localhost");
    if (!parsed || (parsed->scheme != "https" && !(parsed->scheme == "http" && is_here))) {
        return fail(
            Code::config_invalid,
            "'" + presentable(url) + "' is no address for an API with a key: it must be https://…"
        );
    }
    return {};
}

Code code_of_status(int status) {
    switch (status) {
        case 401:
            return Code::unauthorized;
        case 402:
            return Code::balance_empty;
        case 403:
            return Code::forbidden;
        case 404:
        case 410:
            return Code::not_found;
        case 408:
            return Code::upstream_error;
        case 409:
            return Code::conflict;
        case 429:
            return Code::rate_limited;
        default:
            break;
    }
    if (status >= 500) {
        return Code::upstream_error;
    }
    // Redirects are not followed: the key is for this address alone.
    return status >= 400 ? Code::invalid_argument : Code::protocol_error;
}

CloudApi::CloudApi(Executor executor, CloudApiOptions options, const Clock& clock)
    : executor_(executor),
      options_(std::move(options)),
      clock_(clock),
      client_(executor, {.idle_per_origin_max = 2, .ca_file = options_.ca_file}) {}

std::string CloudApi::say(const CloudCall& call, std::string_view what) const {
    const std::string_view path(call.path);
    return options_.service + ": " + call.method + " " +
           std::string(path.substr(0, std::min(path.find('?'), path.size()))) + ": " +
           std::string(what);
}

net::ClientRequest CloudApi::make_request(const CloudCall& call) const {
    net::ClientRequest request;
    request.method = call.method;
    request.url = options_.url + call.path;
    request.timeout = options_.timeout;
    request.response_bytes_max = options_.answer_bytes_max;
    request.headers.set("Accept", "application/json");
    if (const std::string token = key(); !token.empty()) {
        if (options_.key_header.empty()) {
            request.headers.set("Authorization", "Bearer " + token);
        } else {
            request.headers.set(options_.key_header, token);
        }
    }
    if (call.body) {
        request.headers.set("Content-Type", "application/json");
        request.body = json::serialize(*call.body);
    }
    return request;
}

void CloudApi::hear(const net::ClientResponse& answer) {
    pace_.heard(answer.status, answer.headers, Deadline::Ticks::now(), clock_.now());
}

Error CloudApi::to_error(const CloudCall& call, const net::ClientResponse& answer) const {
    std::vector<std::string> secrets = call.secrets;
    secrets.push_back(key());
    CloudRefusal refusal{.status = answer.status};
    auto body = json::parse(answer.body);
    if (body) {
        refusal.body = std::move(*body);
    }
    if (refusal.body.is_object()) {
        const json::object& members = refusal.body.get_object();
        refusal.words = presentable(
            options_.words_of ? options_.words_of(members) : common_words(members), secrets
        );
    }
    if (refusal.words.empty()) {
        refusal.words = excerpt_of(answer.body, secrets);
    }
    const Code code = call.meaning ? call.meaning(refusal) : code_of_status(answer.status);
    const std::string words = refusal.words.empty() ? "" : " (" + refusal.words + ")";
    Error error(code, say(call, "it answers " + std::to_string(answer.status) + words));
    error.details["status"] = answer.status;
    if (code == Code::rate_limited) {
        error.details["retry_after"] = seconds_of(pace_.wait(Deadline::Ticks::now()));
    }
    return error;
}

Task<Result<>> CloudApi::wait_for_turn() {
    const Millis wait = pace_.wait(Deadline::Ticks::now());
    if (wait > options_.wait_max) {
        co_return fail(
            Code::rate_limited,
            options_.service + ": it wants no requests for another " +
                std::to_string(seconds_of(wait)) + " s",
            {{"retry_after", seconds_of(wait)}}
        );
    }
    if (wait > Millis(0)) {
        const bool slept = co_await sleep_for(wait);
        if (!slept) {
            co_return fail(Code::cancelled, options_.service + ": the request was cancelled");
        }
    }
    co_return Result<>();
}

Task<Result<json::value>> CloudApi::call_once(const CloudCall& call) {
    auto turn = co_await wait_for_turn();
    if (!turn) {
        co_return fail(std::move(turn.error()));
    }
    auto answer = co_await client_.send(make_request(call));
    if (!answer) {
        co_return fail(answer.error().code, say(call, answer.error().message));
    }
    hear(*answer);
    if (answer->status / 100 != 2) {
        co_return fail(to_error(call, *answer));
    }
    if (answer->body.empty()) {
        co_return json::value(nullptr);
    }
    auto body = json::parse(answer->body);
    if (!body) {
        std::vector<std::string> secrets = call.secrets;
        secrets.push_back(key());
        Error error(
            Code::protocol_error,
            say(call,
                "it answers " + std::to_string(answer->status) +
                    " with what is not JSON: " + excerpt_of(answer->body, secrets))
        );
        error.details["status"] = answer->status;
        co_return fail(std::move(error));
    }
    co_return std::move(*body);
}

Task<Result<json::value>> CloudApi::call(CloudCall call) {
    COMFYD_ON(executor_);
    for (int tries = 1;; ++tries) {
        auto answer = co_await call_once(call);
        if (answer || call.kind == CloudCall::Kind::once || tries >= options_.patience.tries_max) {
            co_return answer;
        }
        // Of a rate limit wait_for_turn() knows how long it is.
        const Code code = answer.error().code;
        const bool was_asked = answer.error().details.contains("status");
        if (!may_pass(code) && !(code == Code::rate_limited && was_asked)) {
            co_return answer;
        }
        const bool slept = co_await sleep_for(assets::pause_after(tries, options_.patience));
        if (!slept) {
            co_return fail(Code::cancelled, options_.service + ": the request was cancelled");
        }
    }
}

Task<Result<>> CloudApi::stream(std::string path, Millis time, net::Client::Sink sink) {
    COMFYD_ON(executor_);
    auto turn = co_await wait_for_turn();
    if (!turn) {
        co_return fail(std::move(turn.error()));
    }
    const CloudCall call{.path = std::move(path)};
    net::ClientRequest request = make_request(call);
    request.headers.set("Accept", "*/*");
    request.timeout = time;
    request.response_bytes_max = UINT64_MAX;
    auto answer = co_await client_.download(std::move(request), std::move(sink));
    if (!answer) {
        answer.error().message = say(call, answer.error().message);
        co_return fail(std::move(answer.error()));
    }
    hear(*answer);
    if (answer->status / 100 != 2) {
        co_return fail(to_error(call, *answer));
    }
    co_return Result<>();
}

Task<Result<std::string>> CloudApi::listen(std::string path, Millis time, std::size_t bytes_max) {
    std::string heard;
    auto ended = co_await stream(
        std::move(path),
        time,
        [&heard, bytes_max](std::string_view piece) -> Result<> {
            heard += piece.substr(0, bytes_max - heard.size());
            return heard.size() < bytes_max ? Result<>() : fail(Code::payload_too_large, "enough");
        }
    );
    // It goes on, but the time is over or there is enough of it.
    const bool is_over = !ended && (ended.error().code == Code::request_timeout ||
                                    ended.error().code == Code::payload_too_large);
    if (!ended && !is_over) {
        co_return fail(std::move(ended.error()));
    }
    co_return heard;
}

}  // namespace comfyd::fleet
