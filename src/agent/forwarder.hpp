// Hands requests and WebSockets on to ComfyUI as they come, in pieces: no body is held whole, and
// nothing is changed but what belongs to the connection or to us (the token, where a page is from).
//
// An answer to POST /prompt reaches its client before any message of a WebSocket that came after
// it, as it does from ComfyUI itself: clients listen only then.
//
// One executor: call it only there.
#pragma once

#include <cstddef>
#include <string>

#include "agent/comfyui.hpp"
#include "base/task.hpp"
#include "net/client.hpp"
#include "net/server.hpp"

namespace comfyd::agent {

class Forwarder {
public:
    // `added`: headers of every answer.
    Forwarder(Executor executor, net::Client& http, ComfyUi& comfyui, net::Headers added);

    // Answers the exchange. Where ComfyUI cannot, the failure is left to the caller, and nothing
    // was answered: Code::worker_unavailable, Code::upstream_error, Code::payload_too_large.
    Task<Result<>> forward(net::Exchange& exchange);

    static bool wants_socket(const net::Request& request);
    static bool is_prompt(const net::Request& request);

private:
    Task<Result<>> forward_request(net::Exchange& exchange);
    Task<Result<>> forward_socket(net::Exchange& exchange);
    Task<Result<>> ask(net::Exchange& exchange, net::Passage& passage, bool is_prompt);
    Task<Result<>> send_body(net::Exchange& exchange, net::Passage& passage);
    Task<Result<>> send_answer(
        net::Exchange& exchange, net::Passage& passage, net::AnswerHead head
    );
    Task<> relay(net::WebSocket& from, net::WebSocket& to, bool keeps_order);
    Task<> wait_for_answers();

    Executor executor_;
    net::Client& http_;
    ComfyUi& comfyui_;
    net::Headers added_;
    std::size_t unanswered_ = 0;  // prompts that ComfyUI has and whose clients do not know it yet
    Signal answered_;
};

}  // namespace comfyd::agent
