#include "api/routed_exchange.hpp"

#include "api/offered_protocols.hpp"

namespace comfyd::api {
namespace {

constexpr const char* kRetryAfterSeconds = "2";
}  // namespace

std::string_view version_of(const net::Request& request) {
    constexpr std::string_view kFirst = "1.0";
    constexpr std::string_view kSecond = "2.0";
    if (request.path.starts_with("/v2/")) {
        return kSecond;
    }
    const std::string_view asked = request.headers.get(kVersionHeader);
    return asked == kSecond && !request.path.starts_with("/v1/") ? kSecond : kFirst;
}

Task<Result<std::unique_ptr<net::WebSocket>>> RoutedExchange::upgrade(net::WebSocketOptions options
) {
    options.headers.set(kRequestIdHeader, request_id_);
    options.headers.set(kVersionHeader, std::string(version_of(request())));
    // A browser goes on only where one of those that it offered is chosen.
    if (const auto offered = offered_protocols(request());
        std::ranges::find(offered, kOwnProtocol) != offered.end()) {
        options.headers.set("Sec-WebSocket-Protocol", std::string(kOwnProtocol));
    }
    auto socket = co_await inner_.upgrade(std::move(options));
    if (socket) {
        status_ = 101;
        if (trail_ != nullptr) {
            trail_->answered(status_, {});
        }
        answered_at_ = std::chrono::steady_clock::now();
    }
    co_return socket;
}

void RoutedExchange::finish(net::Response& response) {
    status_ = response.status;
    for (const auto& [name, value] : common_.all()) {
        if (!response.headers.contains(name)) {
            response.headers.add(name, value);
        }
    }
    response.headers.set(kRequestIdHeader, request_id_);
    if (response.status == 401 && !response.headers.contains("WWW-Authenticate")) {
        response.headers.set("WWW-Authenticate", "Bearer");
    }
    if ((response.status == 429 || response.status == 503) &&
        !response.headers.contains("Retry-After")) {
        response.headers.set("Retry-After", kRetryAfterSeconds);
    }
    if (trail_ != nullptr) {
        trail_->answered(response.status, response.body);
    }
}

Task<Result<>> RoutedExchange::send_stored(net::Response response) {
    co_await trail_->store();
    auto sent = co_await inner_.send(std::move(response));
    co_return sent;
}

}  // namespace comfyd::api
