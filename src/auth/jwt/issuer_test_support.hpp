// For tests: an issuer on the loopback that answers as it is told.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>

#include "base/json.hpp"
#include "base/mutex.hpp"
#include "net/server.hpp"
#include "net/test_support.hpp"

namespace comfyd::auth::jwt::test {

class Issuer {
public:
    Issuer()
        : threads_(1), server_(threads_.contexts(), {}, [this](net::Exchange& exchange) {
              return serve(*this, exchange);
          }) {
        threads_.start();
        const auto bound = server_.listen({"127.0.0.1", 0});
        EXPECT_TRUE(bound);
        url_ = bound->url();
        put("/.well-known/openid-configuration",
            json::serialize(json::object{{"issuer", url_}, {"jwks_uri", url_ + "/keys"}}));
    }
    ~Issuer() { server_.stop(Millis(0)); }

    const std::string& url() const { return url_; }
    void put(
        const std::string& path, std::string body, int status = 200, std::string control = ""
    ) {
        const Lock lock(mutex_);
        answers_[path] = {status, std::move(body), std::move(control)};
    }
    void put_keys(json::array keys) {
        put("/keys", json::serialize(json::object{{"keys", std::move(keys)}}));
    }
    // What is answered there depends on the body of the request; an empty text is status 400.
    void answer(const std::string& path, std::function<std::string(std::string body)> function) {
        const Lock lock(mutex_);
        functions_[path] = std::move(function);
    }
    int asked(const std::string& path) const {
        const Lock lock(mutex_);
        const auto found = asked_.find(path);
        return found == asked_.end() ? 0 : found->second;
    }

private:
    struct Answer {
        int status = 404;
        std::string body;
        std::string control;
    };

    static Task<> serve(Issuer& self, net::Exchange& exchange) {
        auto body = co_await exchange.read_body(64 * 1024);
        const Answer answer = self.take(exchange.request().path, body.value_or(""));
        net::Response response;
        response.status = answer.status;
        response.body = answer.body;
        if (answer.status == 302) {
            response.headers.set("Location", answer.body);
        }
        if (!answer.control.empty()) {
            response.headers.set("Cache-Control", answer.control);
        }
        const auto sent = co_await exchange.send(std::move(response));
        static_cast<void>(sent);
    }
    Answer take(const std::string& path, const std::string& body) {
        const Lock lock(mutex_);
        ++asked_[path];
        const auto function = functions_.find(path);
        if (function == functions_.end()) {
            return answers_[path];
        }
        std::string text = function->second(body);
        return {text.empty() ? 400 : 200, std::move(text), ""};
    }

    net::IoThreads threads_;
    net::Server server_;
    std::string url_;
    mutable Mutex mutex_;
    std::map<std::string, Answer> answers_ COMFYD_GUARDED_BY(mutex_);
    std::map<std::string, std::function<std::string(std::string)>> functions_
        COMFYD_GUARDED_BY(mutex_);
    std::map<std::string, int> asked_ COMFYD_GUARDED_BY(mutex_);
};

}  // namespace comfyd::auth::jwt::test
