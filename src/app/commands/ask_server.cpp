#include "app/commands/ask_server.hpp"

#include <cstdio>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>

#include "app/commands/cli.hpp"
#include "app/commands/server_address.hpp"
#include "comfy/members.hpp"
#include "net/client.hpp"
#include "net/io_threads.hpp"

namespace comfyd::app {
namespace {

Task<Result<net::ClientResponse>> fetch(net::Client& client, net::ClientRequest request) {
    auto response = co_await client.send(std::move(request));
    co_return response;
}

std::string message_of(const net::ClientResponse& response) {
    const auto body = json::parse_object(response.body);
    const json::value* error = body ? json::find(*body, "error") : nullptr;
    const std::string message = error != nullptr && error->is_object()
                                    ? comfy::text_of(error->get_object(), "message")
                                    : "";
    return message.empty() ? "the server answered " + std::to_string(response.status) : message;
}

Asked complain(const std::string& message, int exit_code) {
    std::fprintf(stderr, "comfyd: %s\n", message.c_str());
    return {std::nullopt, {}, exit_code};
}

}  // namespace

Asked ask_server(Question question) {
    complete_address(question.url, question.key);
    net::ClientRequest request;
    request.url = question.url + question.path;
    request.method = question.method;
    if (!question.body.empty()) {
        request.headers.set("Content-Type", question.type);
        request.body = std::move(question.body);
    }
    if (!question.range.empty()) {
        request.headers.set("Content-Range", question.range);
    }
    if (!question.key.empty()) {
        request.headers.set("Authorization", "Bearer " + question.key);
    }
    net::IoThread thread("question");
    net::Client client(thread.executor(), net::ClientOptions{});
    thread.start();
    auto response =
        boost::asio::co_spawn(
            thread.executor(), fetch(client, std::move(request)), boost::asio::use_future
        )
            .get();
    thread.stop();
    if (!response) {
        return complain(response.error().message, kExitUnavailable);
    }
    if (response->status == 404 && question.may_miss) {
        return {std::nullopt, {}, kExitOk};
    }
    const bool is_empty = response->status == 204;
    auto answer = is_empty ? json::object() : json::parse_object(response->body);
    if (response->status < 200 || response->status > 204 || !answer) {
        return complain(
            message_of(*response), response->status == 404 ? kExitUsage : kExitUnavailable
        );
    }
    return {std::move(*answer), std::move(response->body), kExitOk};
}

}  // namespace comfyd::app
