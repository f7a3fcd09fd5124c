#include "app/commands/server_client.hpp"

#include <cstdio>
#include <fstream>
#include <utility>

#include "app/commands/cli.hpp"
#include "app/commands/server_address.hpp"
#include "comfy/members.hpp"

namespace comfyd::app {
namespace {

namespace fs = std::filesystem;

Error refusal_of(int status, const Result<json::object>& body) {
    std::string message;
    const json::value* error = body ? json::find(*body, "error") : nullptr;
    if (error != nullptr && error->is_object()) {
        message = comfy::text_of(error->get_object(), "message");
    }
    if (message.empty()) {
        message = "the server answered " + std::to_string(status);
    }
    return Error(
        status >= 500   ? Code::storage_unavailable
        : status == 404 ? Code::not_found
                        : Code::invalid_argument,
        std::move(message)
    );
}

}  // namespace

ServerClient::ServerClient(Executor executor, std::string url, std::string key)
    : url_(std::move(url)), key_(std::move(key)), client_(executor, net::ClientOptions{}) {
    complete_address(url_, key_);
}

net::ClientRequest ServerClient::request(std::string method, const std::string& target) const {
    net::ClientRequest request;
    request.method = std::move(method);
    request.url = url_ + target;
    if (!key_.empty()) {
        request.headers.set("Authorization", "Bearer " + key_);
    }
    return request;
}

Task<Result<json::object>> ServerClient::send(net::ClientRequest request) {
    auto response = co_await client_.send(std::move(request));
    if (!response) {
        Error error = std::move(response.error());
        if (error.code == Code::connection_failed) {
            error.message += ". Is the server running? Start it with `comfyd serve`";
        }
        co_return fail(std::move(error));
    }
    auto parsed = json::parse_object(response->body);
    if (response->status >= 400) {
        co_return fail(refusal_of(response->status, parsed));
    }
    co_return parsed;
}

Task<Result<json::object>> ServerClient::call(
    std::string method, std::string target, std::string body
) {
    auto asked = request(std::move(method), target);
    if (!body.empty()) {
        asked.headers.set("Content-Type", "application/json");
        asked.body = std::move(body);
    }
    auto answer = co_await send(std::move(asked));
    co_return answer;
}

Task<Result<json::object>> ServerClient::post_form(
    std::string target, std::vector<net::FormPart> parts, std::string idempotency_key
) {
    net::Multipart form = net::make_multipart(parts);
    auto asked = request("POST", target);
    asked.headers.set("Content-Type", form.content_type);
    asked.headers.set("Idempotency-Key", std::move(idempotency_key));
    asked.body = std::move(form.body);
    asked.timeout = std::chrono::minutes(10);
    auto answer = co_await send(std::move(asked));
    co_return answer;
}

Task<Result<>> ServerClient::save(std::string target, fs::path file) {
    const fs::path part = file.string() + ".part";
    std::ofstream out(part, std::ios::binary | std::ios::trunc);
    auto asked = request("GET", target);
    asked.timeout = std::chrono::hours(24);
    asked.response_bytes_max = 1ULL << 40;
    auto fetched =
        co_await client_.download(std::move(asked), [&out](std::string_view piece) -> Result<> {
            out.write(piece.data(), static_cast<std::streamsize>(piece.size()));
            return {};
        });
    out.close();
    std::error_code error;
    if (!fetched || fetched->status != 200 || !out) {
        fs::remove(part, error);
        if (!fetched) {
            co_return fail(std::move(fetched.error()));
        }
        co_return fail(
            fetched->status == 404 ? Code::not_found : Code::storage_unavailable,
            fetched->status == 200 ? "cannot write '" + part.string() + "'"
                                   : "the server answered " + std::to_string(fetched->status)
        );
    }
    fs::rename(part, file, error);
    if (error) {
        co_return fail(
            Code::storage_unavailable, "cannot write '" + file.string() + "': " + error.message()
        );
    }
    co_return Result<>();
}

bool is_away(const Error& error) {
    return error.code == Code::connection_failed || error.code == Code::request_timeout ||
           error.code == Code::storage_unavailable;
}

int complain(const Error& error) {
    std::fprintf(stderr, "comfyd: %s\n", error.message.c_str());
    return is_away(error) ? kExitUnavailable : kExitUsage;
}

}  // namespace comfyd::app
