// The agent's calls to its gateway (agent/calls.hpp): keeps the control WebSocket up and some lines
// parked, and parks a new one for each that is used. What runs on a line goes on when the control
// call is lost, and the other way round. Of several nodes it looks for the one that takes its call.
//
// One executor: call it only there.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "agent/redial.hpp"
#include "agent/status.hpp"
#include "base/task.hpp"
#include "net/client.hpp"
#include "net/line.hpp"

namespace comfyd::agent {

struct DialOptions {
    std::vector<std::string> gateways;  // nodes of one: http(s)://host[:port][/prefix]
    std::string instance;
    std::string token;
    std::size_t parked = 4;
    std::size_t lines_max = 32;  // parked and in use
    Millis report{5'000};
    RedialPauses pauses{};
};

class DialOut {
public:
    struct Parts {
        Executor executor;  // all outlive it
        net::Client& http;
        Status& status;
        net::Line::Answer answer;  // the end of a new connection to the agent's own server
    };
    DialOut(Parts parts, DialOptions options);

    void start(TaskGroup& group);
    // Something has changed: the gateway is told now.
    void tell();
    // When the gateway was last there.
    std::chrono::steady_clock::time_point heard() const;

private:
    Task<> call();
    Task<Redial::Called> call_once();
    const std::string& gateway() const { return options_.gateways[redial_.node()]; }
    Task<> report(net::WebSocket& socket);
    Task<> listen(net::WebSocket& socket);
    Task<> keep_lines();
    Task<> carry(std::string session);
    Task<Result<std::unique_ptr<net::WebSocket>>> connect(
        std::string_view route, std::string session
    );

    Parts p_;
    DialOptions options_;
    Redial redial_;
    std::string session_;  // of the call that is up; empty: none is
    std::chrono::steady_clock::time_point heard_;
    std::size_t lines_ = 0;                        // all, also those that are being opened
    std::size_t unused_ = 0;                       // of them parked, or being opened
    Millis lines_rest_{0};                         // before the next is opened; 0: none was refused
    std::set<std::shared_ptr<net::Line>> parked_;  // of session_
    std::string last_failure_;
    Signal news_;  // to be reported
    Signal lines_changed_;
};

}  // namespace comfyd::agent
