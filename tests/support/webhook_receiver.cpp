#include "support/webhook_receiver.hpp"

#include <deque>
#include <mutex>
#include <stdexcept>
#include <utility>

#include "net/io_threads.hpp"
#include "net/server.hpp"

namespace comfyd::support {

json::value ReceivedRequest::json() const {
    auto parsed = json::parse(body);
    return parsed ? std::move(*parsed) : json::value(nullptr);
}

class WebhookReceiver::Impl {
public:
    Impl()
        : thread("test-webhooks"), server({&thread.context()}, {}, [this](net::Exchange& exchange) {
              return handle(exchange);
          }) {
        thread.start();
        const auto endpoint = server.listen({"127.0.0.1", 0});
        if (!endpoint) {
            throw std::runtime_error(endpoint.error().message);
        }
        base = "http://" + endpoint->to_string();
    }
    ~Impl() {
        server.stop(Millis(0));
        thread.stop();
    }

    Task<> handle(net::Exchange& exchange) {
        auto body = co_await exchange.read_body(64 * 1024 * 1024);
        if (!body) {
            co_return;
        }
        const auto answer = record(exchange.request(), std::move(*body));
        const bool waited = co_await sleep_for(answer.delay);
        if (!waited) {
            co_return;
        }
        net::Response response;
        response.status = answer.status;
        response.headers = answer.headers;
        response.body = answer.body;
        if (answer.drop) {
            co_await exchange.begin_stream(std::move(response));
        } else {
            co_await exchange.send(std::move(response));
        }
    }

    ScriptedAnswer record(const net::Request& request, std::string body) {
        const std::scoped_lock lock(mutex);
        requests.push_back(
            {request.method_name,
             request.path,
             request.headers,
             std::move(body),
             std::chrono::steady_clock::now()}
        );
        if (answers.empty()) {
            return {};
        }
        auto answer = std::move(answers.front());
        answers.pop_front();
        return answer;
    }

    net::IoThread thread;
    net::Server server;
    std::string base;
    mutable std::mutex mutex;
    std::deque<ScriptedAnswer> answers;     // guarded by mutex
    std::vector<ReceivedRequest> requests;  // guarded by mutex
};

WebhookReceiver::WebhookReceiver() : impl_(std::make_unique<Impl>()) {}
WebhookReceiver::~WebhookReceiver() = default;

std::string WebhookReceiver::url(std::string path) const {
    return impl_->base + path;
}

void WebhookReceiver::script(std::vector<ScriptedAnswer> answers) {
    const std::scoped_lock lock(impl_->mutex);
    impl_->answers.assign(answers.begin(), answers.end());
}

void WebhookReceiver::script_statuses(const std::vector<int>& statuses) {
    std::vector<ScriptedAnswer> answers;
    for (const int status : statuses) {
        answers.push_back({.status = status});
    }
    script(std::move(answers));
}

std::vector<ReceivedRequest> WebhookReceiver::requests() const {
    const std::scoped_lock lock(impl_->mutex);
    return impl_->requests;
}

bool WebhookReceiver::wait_for(std::size_t count, std::chrono::milliseconds deadline) const {
    return wait_until(
        [this, count] {
            const std::scoped_lock lock(impl_->mutex);
            return impl_->requests.size() >= count;
        },
        deadline
    );
}

}  // namespace comfyd::support
