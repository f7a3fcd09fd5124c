// For the tests of net: a running server with one route for each thing that a handler can do.
#pragma once

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>

#include "net/server.hpp"
#include "net/test_support.hpp"

namespace comfyd::net::test {

class TestServer {
public:
    explicit TestServer(
        ServerLimits limits = {}, unsigned threads = 2, Endpoint listen = {"127.0.0.1", 0}
    )
        : threads_(threads), server_(threads_.contexts(), limits, [this](Exchange& exchange) {
              return handle(*this, exchange);
          }) {
        path_ = std::filesystem::temp_directory_path() /
                ("comfyd-net-" + std::to_string(::getpid()) + ".bin");
        file_bytes.resize(3 * 1024 * 1024 + 17);
        for (std::size_t i = 0; i < file_bytes.size(); ++i) {
            file_bytes[i] = static_cast<char>('a' + i % 26);
        }
        std::ofstream(path_, std::ios::binary) << file_bytes;
        threads_.start();
        auto endpoint = server_.listen(listen);
        EXPECT_TRUE(endpoint) << endpoint.error().message;
        port_ = endpoint->port;
    }
    ~TestServer() {
        stop(Millis(0));
        std::filesystem::remove(path_);
    }

    void stop(Millis grace) {
        if (!stopped_) {
            stopped_ = true;
            server_.stop(grace);
        }
    }
    std::uint16_t port() const { return port_; }
    std::string url(std::string_view path, std::string_view scheme = "http") const {
        return std::string(scheme) + "://127.0.0.1:" + std::to_string(port_) + std::string(path);
    }
    ServerCounters counters() const { return server_.counters(); }

    std::promise<void> entered;       // /wait and /watch have begun
    std::promise<bool> left;          // how their wait ended
    std::promise<std::string> seen;   // the last thing that /ws saw
    std::atomic<bool> finish{false};  // /hold may end
    std::string file_bytes;

private:
    using Route = Task<> (*)(TestServer&, Exchange&);

    static Task<> handle(TestServer& self, Exchange& exchange);

    static Task<> reply(Exchange& exchange, int status, std::string body) {
        Response response;
        response.status = status;
        response.headers.set("Content-Type", "text/plain");
        response.body = std::move(body);
        const auto sent = co_await exchange.send(std::move(response));
        static_cast<void>(sent);
    }

    static Task<> hello(TestServer&, Exchange& exchange) {
        const auto& request = exchange.request();
        std::string text =
            std::string(to_string(request.method)) + " " + request.path + " " + request.query;
        co_await reply(exchange, 200, std::move(text));
    }
    static Task<> trusted(TestServer&, Exchange& exchange) {
        exchange.trust_peer();
        co_await reply(exchange, 200, "welcome");
    }
    static Task<> echo(TestServer&, Exchange& exchange) {
        auto body = co_await exchange.read_body(1024 * 1024);
        if (!body) {
            co_await reply(
                exchange,
                info(body.error().code).http_status,
                std::string(to_string(body.error().code))
            );
            co_return;
        }
        co_await reply(exchange, 200, std::move(*body));
    }
    static Task<> pieces(TestServer&, Exchange& exchange) {
        std::string all;
        char piece[7];
        while (true) {
            const auto count = co_await exchange.read_some(piece, sizeof piece);
            if (!count || *count == 0) {
                break;
            }
            all.append(piece, *count);
        }
        co_await reply(exchange, 200, std::move(all));
    }
    static Task<> ignore(TestServer&, Exchange& exchange) {
        co_await reply(exchange, 200, "ignored");
    }
    static Task<> fail_hard(TestServer&, Exchange&) {
        throw std::runtime_error("deliberate");
        co_return;
    }
    static Task<> silent(TestServer&, Exchange&) { co_return; }
    static Task<> big(TestServer&, Exchange& exchange) {
        Response response;
        response.headers.set(
            "Content-Type", exchange.request().query.empty() ? "application/json" : "image/png"
        );
        response.body = std::string(100'000, 'x');
        const auto sent = co_await exchange.send(std::move(response));
        static_cast<void>(sent);
    }
    static Task<> inject(TestServer&, Exchange& exchange) {
        Response response;
        response.headers.set("X-Name", "a\r\nX-Evil: 1");
        response.headers.set("Content-Length", "5");
        const auto sent = co_await exchange.send(std::move(response));
        static_cast<void>(sent);
    }
    static Task<> file(TestServer& self, Exchange& exchange) {
        const auto range =
            parse_range(exchange.request().headers.get("Range"), self.file_bytes.size());
        Response head;
        FileBody body{self.path_, 0, self.file_bytes.size()};
        if (!range) {
            co_await reply(exchange, 416, "");
            co_return;
        }
        if (*range) {
            head.status = 206;
            body.offset = (*range)->first;
            body.length = (*range)->length;
        }
        const auto sent = co_await exchange.send_file(std::move(head), std::move(body));
        static_cast<void>(sent);
    }
    static Task<> twice(TestServer&, Exchange& exchange) {
        co_await reply(exchange, 200, "first");
        const auto second = co_await exchange.send({});
        const auto third = co_await exchange.begin_stream({});
        EXPECT_FALSE(second || third);
    }
    static Task<> no_file(TestServer& self, Exchange& exchange) {
        const auto missing = co_await exchange.send_file({}, {self.path_ + ".missing", 0, 1});
        const auto too_long =
            co_await exchange.send_file({}, {self.path_, 1, self.file_bytes.size()});
        const bool both = !missing && !too_long && !exchange.answered();
        co_await reply(exchange, both ? 404 : 200, "");
    }
    static Task<> stream(TestServer&, Exchange& exchange) {
        const auto begun = co_await exchange.begin_stream({});
        const auto first = co_await exchange.write_stream("one");
        const auto nothing = co_await exchange.write_stream("");
        const auto second = co_await exchange.write_stream(std::string(20, 'z'));
        const auto ended = co_await exchange.end_stream();
        EXPECT_TRUE(begun && first && nothing && second && ended);
    }
    // As long as it says at first: "?length" of the six bytes that it has.
    static Task<> sized(TestServer&, Exchange& exchange) {
        Response head;
        head.headers.set("Content-Length", exchange.request().query);
        const auto begun = co_await exchange.begin_stream(std::move(head));
        const auto first = co_await exchange.write_stream("one");
        const auto second = co_await exchange.write_stream("two");
        const auto ended = co_await exchange.end_stream();
        const bool is_head = exchange.request().method == Method::head;
        const bool is_right = exchange.request().query == "6" || is_head;
        EXPECT_TRUE(begun && first);
        EXPECT_EQ(second && ended, is_right);
    }
    static Task<> flood(TestServer& self, Exchange& exchange) {
        const auto begun = co_await exchange.begin_stream({});
        Result<> sent = begun;
        while (sent) {
            sent = co_await exchange.write_stream(std::string(256 * 1024, 'f'));
        }
        self.left.set_value(sent.error().code == Code::connection_failed);
    }
    static Task<> watch(TestServer& self, Exchange& exchange) {
        const auto begun = co_await exchange.begin_stream({});
        const auto sent = co_await exchange.write_stream("ready");
        const bool early = co_await exchange.wait_closed(Millis(0));
        EXPECT_TRUE(begun && sent && !early);
        self.entered.set_value();
        const bool closed = co_await exchange.wait_closed(std::chrono::hours(1));
        self.left.set_value(closed);
        const auto ended = co_await exchange.end_stream();
        EXPECT_EQ(ended.has_value(), !closed);
    }
    // Streams until `finish`, looking out for the client all the time.
    static Task<> hold(TestServer& self, Exchange& exchange) {
        const auto begun = co_await exchange.begin_stream({});
        const auto sent = co_await exchange.write_stream("ready");
        EXPECT_TRUE(begun && sent);
        while (!self.finish) {
            const bool closed = co_await exchange.wait_closed(Millis(1));
            EXPECT_FALSE(closed);
        }
        const auto ended = co_await exchange.end_stream();
        EXPECT_TRUE(ended);
    }
    // Answers when told so by the server's shutting down, like a stream that looks at draining().
    static Task<> until_drain(TestServer& self, Exchange& exchange) {
        self.entered.set_value();
        while (!exchange.draining()) {
            const bool closed = co_await exchange.wait_closed(std::chrono::hours(1));
            if (closed) {
                co_return;
            }
        }
        co_await reply(exchange, 200, "drained");
    }
    static Task<> wait(TestServer& self, Exchange& exchange) {
        self.entered.set_value();
        const bool waited = co_await sleep_for(std::chrono::hours(1));
        self.left.set_value(waited);
        co_await reply(exchange, 200, "too late");
    }
    static Task<> websocket(TestServer& self, Exchange& exchange) {
        WebSocketOptions options;
        options.message_bytes_max = 1024;
        options.headers.set("X-Extra", "yes");
        if (exchange.request().query == "idle") {
            options.idle_timeout = std::chrono::seconds(1);
        }
        auto upgraded = co_await exchange.upgrade(std::move(options));
        if (!upgraded) {
            co_await reply(exchange, info(upgraded.error().code).http_status, "");
            co_return;
        }
        auto socket = std::move(*upgraded);
        while (true) {
            auto message = co_await socket->read();
            if (!message) {
                self.seen.set_value(std::string(to_string(message.error().code)));
                co_return;
            }
            if (message->data == "bye") {
                co_await socket->close(1000, "bye");
                self.seen.set_value("closed");
                co_return;
            }
            if (message->data == "drop") {
                socket->abort();
                const auto after = co_await socket->read();
                self.seen.set_value(std::string(to_string(after.error().code)));
                co_return;
            }
            const auto written = co_await socket->write(std::move(message->data), message->binary);
            EXPECT_TRUE(written);
        }
    }

    IoThreads threads_;
    Server server_;
    std::string path_;
    std::uint16_t port_ = 0;
    bool stopped_ = false;
};

inline Task<> TestServer::handle(TestServer& self, Exchange& exchange) {
    static const std::vector<std::pair<std::string_view, Route>> routes{
        {"/echo", echo},         {"/trusted", trusted}, {"/pieces", pieces}, {"/ignore", ignore},
        {"/throw", fail_hard},   {"/silent", silent},   {"/big", big},       {"/inject", inject},
        {"/file", file},         {"/no-file", no_file}, {"/stream", stream}, {"/sized", sized},
        {"/flood", flood},       {"/watch", watch},     {"/wait", wait},     {"/ws", websocket},
        {"/drain", until_drain}, {"/hold", hold},       {"/twice", twice},
    };
    for (const auto& [path, route] : routes) {
        if (exchange.request().path == path) {
            return route(self, exchange);
        }
    }
    return hello(self, exchange);
}

}  // namespace comfyd::net::test
