// What every answer of a request gets, whoever sends it, and what the metrics want to know of it.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "api/audit_trail.hpp"
#include "net/server.hpp"

namespace comfyd::api {

inline constexpr std::string_view kRequestIdHeader = "X-Request-Id";
inline constexpr std::string_view kVersionHeader = "X-API-Version";

// The version of the API that answers: of the path, or where that names none as asked for.
std::string_view version_of(const net::Request& request);

class RoutedExchange final : public net::Exchange {
public:
    RoutedExchange(net::Exchange& inner, std::string request_id, net::Headers common)
        : inner_(inner), request_id_(std::move(request_id)), common_(std::move(common)) {}

    const net::Request& request() const override { return inner_.request(); }
    Task<Result<std::string>> read_body(std::uint64_t bytes_max) override {
        return inner_.read_body(bytes_max);
    }
    Task<Result<std::size_t>> read_some(char* into, std::size_t into_bytes) override {
        return inner_.read_some(into, into_bytes);
    }
    Task<Result<>> send(net::Response response) override {
        finish(response);
        const bool waits = trail_ != nullptr && trail_->must_be_stored();
        return waits ? send_stored(std::move(response)) : inner_.send(std::move(response));
    }
    Task<Result<>> send_file(net::Response head, net::FileBody file) override {
        finish(head);
        return inner_.send_file(std::move(head), std::move(file));
    }
    Task<Result<>> begin_stream(net::Response head) override {
        finish(head);
        answered_at_ = std::chrono::steady_clock::now();
        return inner_.begin_stream(std::move(head));
    }
    Task<Result<>> write_stream(std::string data) override {
        return inner_.write_stream(std::move(data));
    }
    Task<Result<>> end_stream() override { return inner_.end_stream(); }
    Task<bool> wait_closed(Millis until) override { return inner_.wait_closed(until); }
    Task<Result<std::unique_ptr<net::WebSocket>>> upgrade(net::WebSocketOptions options) override;
    void trust_peer() override { inner_.trust_peer(); }
    bool answered() const override { return inner_.answered(); }
    Executor executor() const override { return inner_.executor(); }
    bool draining() const override { return inner_.draining(); }

    // To every answer, like the common ones.
    void add_header(std::string_view name, std::string value) {
        common_.set(name, std::move(value));
    }
    // It hears of the answer; outlives the exchange.
    void set_trail(AuditTrail& trail) { trail_ = &trail; }
    const std::string& request_id() const { return request_id_; }
    int status() const { return status_; }
    // When a stream began: its length says nothing about how fast we answer.
    std::optional<std::chrono::steady_clock::time_point> answered_at() const {
        return answered_at_;
    }

private:
    void finish(net::Response& response);
    // Once the log has it.
    Task<Result<>> send_stored(net::Response response);

    net::Exchange& inner_;
    std::string request_id_;
    net::Headers common_;
    AuditTrail* trail_ = nullptr;
    int status_ = 0;
    std::optional<std::chrono::steady_clock::time_point> answered_at_;
};

}  // namespace comfyd::api
