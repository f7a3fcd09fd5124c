// For tests of stores elsewhere: a service on the loopback that answers as the test plays it, and
// what runs a store for a test.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "assets/blob_key.hpp"
#include "assets/blob_store.hpp"
#include "net/io_threads.hpp"
#include "net/server.hpp"

namespace comfyd::assets::test {

struct Asked {
    std::string method;
    std::string path;  // still encoded
    std::string query;
    net::Headers headers;
    std::string body;

    bool has(std::string_view in_query) const { return query.find(in_query) != std::string::npos; }
};

struct Played {
    int status = 200;
    std::string body{};
    net::Headers headers{};
    bool is_lost = false;  // it was done, but the answer breaks off
};

// One request at a time. Members from any thread.
class TestService {
public:
    using Play = std::function<Played(const Asked&)>;

    explicit TestService(Play play)
        : play_(std::move(play)), server_(threads_.contexts(), {}, [this](net::Exchange& exchange) {
              return answer(*this, exchange);
          }) {
        threads_.start();
        auto endpoint = server_.listen({"127.0.0.1", 0});
        EXPECT_TRUE(endpoint);
        port_ = endpoint ? endpoint->port : 0;
    }
    ~TestService() {
        server_.stop(Millis(0));
        threads_.stop();
    }

    std::string host() const { return "127.0.0.1:" + std::to_string(port_); }
    std::string url() const { return "http://" + host(); }
    std::vector<Asked> asked() {
        const std::lock_guard lock(mutex_);
        return asked_;
    }
    std::size_t count(std::string_view method, std::string_view in_query = "") {
        std::size_t found = 0;
        for (const Asked& request : asked()) {
            found += request.method == method && request.has(in_query) ? 1 : 0;
        }
        return found;
    }

private:
    static Task<> answer(TestService& self, net::Exchange& exchange) {
        auto body = co_await exchange.read_body(64 * 1024 * 1024);
        const net::Request& from = exchange.request();
        const Asked asked{from.method_name, from.path, from.query, from.headers, body.value_or("")};
        Played played;
        {
            const std::lock_guard lock(self.mutex_);
            self.asked_.push_back(asked);
            played = self.play_(asked);
        }
        net::Response response{played.status, played.headers, played.body};
        if (played.is_lost) {
            auto begun = co_await exchange.begin_stream(std::move(response));
            static_cast<void>(begun);
            co_return;  // without an end
        }
        auto sent = co_await exchange.send(std::move(response));
        static_cast<void>(sent);
    }

    net::IoThreads threads_{1};
    std::mutex mutex_;
    Play play_;
    std::vector<Asked> asked_;
    net::Server server_;
    std::uint16_t port_ = 0;
};

// A key that is as the ledger would make it, each time another.
inline std::string new_key() {
    return make_blob_key("blake3:" + std::string(64, 'a'), make_generation(SystemClock().now()));
}

inline Source source_of(std::string bytes) {
    Source source;
    source.size_bytes = bytes.size();
    source.bytes = std::make_shared<const std::string>(std::move(bytes));
    source.content_type = "image/png";
    return source;
}

// Of any length, and no two parts of it are alike.
inline std::string varied_bytes(std::size_t count, std::uint32_t seed = 1) {
    std::string bytes(count, '\0');
    for (char& byte : bytes) {
        seed = seed * 1'664'525 + 1'013'904'223;
        byte = static_cast<char>(seed >> 24);
    }
    return bytes;
}

// What uploads note, as a ledger would keep it.
class Notebook {
public:
    UploadNote note() {
        return {last, [this](std::string text) { return keep(std::move(text)); }};
    }

    std::string last;
    int count = 0;

private:
    Task<Result<>> keep(std::string text) {
        last = std::move(text);
        ++count;
        co_return Result<>();
    }
};

}  // namespace comfyd::assets::test
