// POST /prompt_sync of the agent: queues a prompt at its ComfyUI, waits for its end and answers
// with the result; with the pictures themselves where that is wanted. Shapes:
// comfy/prompt_sync.hpp.
//
// One executor: call it only there.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/pool.hpp"
#include "base/task.hpp"
#include "base/time.hpp"
#include "comfy/client.hpp"
#include "comfy/prompt_sync.hpp"
#include "net/server.hpp"

namespace comfyd::agent {

struct SyncPrompt {
    net::Client& http;  // outlives the call, like the next two
    Pool& pool;
    const Clock& clock;
    std::string url;  // of ComfyUI
    Millis timeout_default;
    net::Exchange& client;             // whose request it is
    std::function<void()> accepted{};  // called once ComfyUI has taken the prompt
};

// The result's body, or why there is none. `body`: of the request.
Task<tl::expected<json::object, comfy::prompt_sync::Trouble>> run_prompt(
    SyncPrompt parts, std::string body, std::string timeout_query
);

}  // namespace comfyd::agent
