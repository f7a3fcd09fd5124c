// Stands between clients and a server of HTTP, and writes down what both say, in the order in which
// the answers came. Whole answers only: a stream must end. Test code only.
#pragma once

#include <algorithm>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/json.hpp"
#include "net/client.hpp"
#include "net/io_threads.hpp"
#include "net/server.hpp"

namespace comfyd::support {

// What is said goes into a recording as JSON where it is some, or as lines of it.
inline json::value as_json(const std::string& text) {
    if (text.empty()) {
        return nullptr;
    }
    if (auto whole = json::parse(text)) {
        return std::move(*whole);
    }
    json::array lines;
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        auto line = json::parse(text.substr(begin, end - begin));
        if (!line) {
            return json::value(text);
        }
        lines.push_back(std::move(*line));
        begin = end + 1;
    }
    return lines;
}

class Recorder {
public:
    // `identity` is for the server that it forwards to.
    explicit Recorder(std::string server, net::ClientIdentity identity = {})
        : to_(std::move(server)),
          client_(threads_.contexts().front()->get_executor(), {}),
          server_(threads_.contexts(), {}, [this](net::Exchange& exchange) {
              return serve(*this, exchange);
          }) {
        if (!identity.ca_file.empty()) {
            identity.url = to_;
            if (const auto is_known = client_.identify({std::move(identity)}); !is_known) {
                throw std::runtime_error(is_known.error().message);
            }
        }
        threads_.start();
        port_ = server_.listen({"127.0.0.1", 0})->port;
    }
    ~Recorder() {
        server_.stop(Millis(0));
        threads_.stop();
    }
    Recorder(const Recorder&) = delete;
    Recorder& operator=(const Recorder&) = delete;

    std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
    // [{method, target, said, status, answer}]
    json::array said() const {
        const std::lock_guard lock(mutex_);
        return said_;
    }

private:
    static Task<> serve(Recorder& self, net::Exchange& exchange) {
        auto body = co_await exchange.read_body(1024 * 1024);
        const net::Request& asked = exchange.request();
        net::ClientRequest request{.method = asked.method_name, .url = self.to_ + asked.target};
        for (const char* name : {"Accept", "Authorization", "Content-Type"}) {
            if (const auto value = asked.headers.get(name); !value.empty()) {
                request.headers.set(name, std::string(value));
            }
        }
        request.body = body.value_or("");
        auto answer = co_await self.client_.send(std::move(request));
        net::Response response;
        response.status = 502;
        if (answer) {
            response.status = answer->status;
            response.headers.set("Content-Type", std::string(answer->headers.get("Content-Type")));
            response.body = std::move(answer->body);
        }
        {
            const std::lock_guard lock(self.mutex_);
            self.said_.push_back(json::object{
                {"method", asked.method_name},
                {"target", asked.target},
                {"said", as_json(body.value_or(""))},
                {"status", response.status},
                {"answer", as_json(response.body)}
            });
        }
        auto sent = co_await exchange.send(std::move(response));
        static_cast<void>(sent);
    }

    const std::string to_;
    net::IoThreads threads_{1};
    mutable std::mutex mutex_;
    json::array said_;
    net::Client client_;
    net::Server server_;
    std::uint16_t port_ = 0;
};

// Plays the server's side of a recording to clients that must ask what was asked then, in the same
// order. What is asked otherwise is answered 500 and told by wrong().
class Replay {
public:
    explicit Replay(json::array said)
        : said_(std::move(said)), server_(threads_.contexts(), {}, [this](net::Exchange& exchange) {
              return serve(*this, exchange);
          }) {
        threads_.start();
        port_ = server_.listen({"127.0.0.1", 0})->port;
    }
    ~Replay() {
        server_.stop(Millis(0));
        threads_.stop();
    }
    Replay(const Replay&) = delete;
    Replay& operator=(const Replay&) = delete;

    std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
    // Empty: all that was said was said again.
    std::string wrong() const {
        const std::lock_guard lock(mutex_);
        if (wrong_.empty() && next_ < said_.size()) {
            return "nobody asked: " + json::serialize(said_[next_]);
        }
        return wrong_;
    }

private:
    static Task<> serve(Replay& self, net::Exchange& exchange) {
        auto body = co_await exchange.read_body(1024 * 1024);
        auto sent = co_await exchange.send(self.answer(exchange.request(), body.value_or("")));
        static_cast<void>(sent);
    }
    net::Response answer(const net::Request& request, const std::string& body) {
        const std::lock_guard lock(mutex_);
        const json::object asked{
            {"method", request.method_name}, {"target", request.target}, {"said", as_json(body)}
        };
        if (next_ < said_.size()) {
            const json::object& one = said_[next_].as_object();
            const bool is_it = one.at("method") == asked.at("method") &&
                               one.at("target") == asked.at("target") &&
                               one.at("said") == asked.at("said");
            if (is_it) {
                ++next_;
                return {static_cast<int>(one.at("status").as_int64()), {}, text(one.at("answer"))};
            }
        }
        wrong_ += json::serialize(asked) + " was asked in place of " +
                  (next_ < said_.size() ? json::serialize(said_[next_]) : "nothing") + "\n";
        return {500, {}, R"({"message":"that was not recorded"})"};
    }
    static std::string text(const json::value& answer) {
        if (answer.is_null()) {
            return "";
        }
        if (answer.is_string()) {
            return std::string(answer.get_string());
        }
        if (!answer.is_array()) {
            return json::serialize(answer);
        }
        std::string lines;
        for (const json::value& line : answer.get_array()) {
            lines += json::serialize(line) + "\n";
        }
        return lines;
    }

    net::IoThreads threads_{1};
    mutable std::mutex mutex_;
    const json::array said_;
    std::size_t next_ = 0;
    std::string wrong_;
    net::Server server_;
    std::uint16_t port_ = 0;
};

}  // namespace comfyd::support
