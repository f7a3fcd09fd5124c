#include "app/commands/object_info.hpp"

#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>

#include "app/commands/read_file.hpp"
#include "net/client.hpp"
#include "net/io_threads.hpp"

namespace comfyd::app {
namespace {

Task<Result<std::string>> fetch(net::Client& client, net::ClientRequest request) {
    auto response = co_await client.send(std::move(request));
    if (!response) {
        co_return fail(std::move(response.error()));
    }
    if (response->status != 200) {
        co_return fail(
            Code::connection_failed,
            "the server answered " + std::to_string(response->status) + " to GET /object_info"
        );
    }
    co_return std::move(response->body);
}

Result<std::string> ask_server(const ObjectInfoSource& source) {
    net::ClientRequest request;
    request.method = "GET";
    request.url = source.url + "/object_info";
    if (!source.key.empty()) {
        request.headers.set("Authorization", "Bearer " + source.key);
    }
    net::IoThread thread("object info");
    net::Client client(thread.executor(), net::ClientOptions{});
    thread.start();
    auto text = boost::asio::co_spawn(
                    thread.executor(), fetch(client, std::move(request)), boost::asio::use_future
    )
                    .get();
    thread.stop();
    if (!text) {
        text.error().message +=
            ". The node classes are needed: name a server with --url, or a file with --object-info";
    }
    return text;
}

}  // namespace

Result<json::value> load_object_info(const ObjectInfoSource& source) {
    auto text = source.file.empty() ? ask_server(source) : read_given_file(source.file);
    if (!text) {
        return fail(std::move(text.error()));
    }
    auto parsed = json::parse(*text);
    if (!parsed) {
        return fail(
            Code::invalid_argument,
            (source.file.empty() ? source.url + "/object_info" : source.file) + ": " +
                parsed.error().message
        );
    }
    return parsed;
}

}  // namespace comfyd::app
