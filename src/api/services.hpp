// What dialects work with: all that admission does, and what their answers are made of. Owned by
// app/application; outlives the server.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "admission/desk.hpp"
#include "api/answer_shelf.hpp"
#include "api/frame_shelf.hpp"
#include "api/own_ids.hpp"
#include "assets/links.hpp"
#include "base/sealing.hpp"
#include "jobs/workflow_store.hpp"
#include "observe/metrics.hpp"

namespace comfyd::api {

struct WebhookServices;

struct ApiOptions {
    std::string public_url;  // prefix of absolute links; empty: made from the request's Host header
    std::string cdn_url{};   // of those to the bytes of assets; empty: like the others
    assets::RetentionRules retention{};
    std::uint64_t json_body_bytes_max = 32 * 1024 * 1024;
    std::uint64_t upload_bytes_max = 1024ULL * 1024 * 1024;
    bool allow_private_webhooks = false;
    bool allow_unverified_webhooks = false;  // verify_ssl may be false
    bool allow_private_buckets = false;      // of requests; and those that are asked without TLS
    // What secrets of requests are stored with; null: none that must be stored is taken.
    std::shared_ptr<const Sealing> sealing{};
    std::uint64_t inline_bytes_max = 4 * 1024 * 1024;  // base64 of outputs in one answer; 0: none
    Millis heartbeat{15'000};                          // comment line on silent event streams
    std::size_t streams_max = 20'000;
    bool metrics_are_open = false;            // else they are the operators'
    bool has_frontend = false;                // "/" is the editor and not the landing page
    std::set<std::string> pools{"default"};   // of all workers, also those that are down
    std::map<std::string, int> pool_slots{};  // of one machine, where comfyd keeps them
    std::uint64_t gpu_memory_mb = 0;          // of the largest GPU; 0: not known
};

struct Services : admission::Desk {
    const assets::LinkSigner& links;
    jobs::WorkflowStore& workflows;
    std::function<Result<>()> ready;                  // why /readyz says no
    std::function<Task<std::string>()> metrics_text;  // awaited on the connection's executor
    // A draining worker ends what it runs and gets nothing more. Code::not_found.
    std::function<Task<Result<>>(std::string worker, bool draining)> set_draining;
    observe::Metrics& metrics;
    ApiOptions options;
    // Open event streams of the process, by whatever dialect; counted by StreamSlot.
    std::shared_ptr<std::atomic<std::size_t>> streams =
        std::make_shared<std::atomic<std::size_t>>(0);
    std::shared_ptr<OwnIds> own_ids = std::make_shared<OwnIds>();
    std::shared_ptr<AnswerShelf> answers = std::make_shared<AnswerShelf>();
    std::shared_ptr<FrameShelf> frames = std::make_shared<FrameShelf>();
    // The nodes that are one service, and who leads; empty: there is this one alone.
    std::function<Task<Result<json::object>>()> describe_cluster{};
    std::shared_ptr<const WebhookServices> webhooks{};  // for add_webhooks()
};

}  // namespace comfyd::api
