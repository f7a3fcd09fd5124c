// The times and counts of the fleet. The defaults suit ComfyUI on a local network; tests set small
// ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/circuit_breaker.hpp"
#include "base/error.hpp"
#include "base/supervisor.hpp"
#include "base/task.hpp"
#include "base/time.hpp"
#include "comfy/client.hpp"
#include "fleet/mandate.hpp"
#include "fleet/tenant_folders.hpp"
#include "workflow/catalogue/catalogue.hpp"

namespace comfyd::fleet {

// Of models, by an agent since it started.
struct FetchedBytes {
    std::uint64_t outside = 0;
    std::uint64_t peers = 0;
    std::chrono::seconds uptime{};  // of the agent
};

// Where an agent has a source from that only we know the place of ("s3://…", "upload:…"): an
// address that is good for an hour. Any executor.
using LinkOf = std::function<Task<Result<std::string>>(std::string source)>;

struct FleetOptions {
    // Health
    Millis health_interval{5'000};
    Millis health_retry{1'000};   // after a failed check of a worker that is up
    int health_failures_max = 3;  // in a row; a refused connection counts at once
    Millis backoff_min{500};      // between checks of a worker that is down; doubles
    Millis backoff_max{30'000};
    Millis socket_wait{2'000};         // a worker that comes up waits so long for its WebSocket
    Millis reconnect_delay{500};       // of the WebSocket
    Millis classes_interval{300'000};  // between looks at a worker's node classes
    Millis busy_look{3'000};           // between looks at the memory of a worker that samples
    Millis agent_interval{15'000};     // between looks at what an agent tells of its machine

    // Following a prompt
    // Looks at its queue, which its interpreter answers while it samples: none as long as messages
    // come, then after the first of these, and less and less often down to the second.
    Millis poll_interval{1'000};
    Millis poll_interval_slow{5'000};
    Millis settle{1'000};        // between two looks that must agree that a prompt is gone
    Millis end_grace{100};       // from a message about the end to the end marker that follows it
    Millis lost_after{15'000};   // worker unreachable
    Millis refused_span{2'000};  // three refused connections over this time: the process is gone
    // Prompts wait, none runs, nothing moves; or a process of ours takes no connections.
    Millis dead_after{60'000};
    // A run that told of itself and then says nothing for so long hangs; 0: it never does.
    Millis silent_after{1'800'000};
    Millis cancel_poll{200};
    Millis cancel_grace{30'000};  // a prompt that does not stop

    // What the embedded engine can run goes to it alone, so that it never occupies a GPU.
    bool offload = false;

    // Files
    TenantFolders folders{};
    int downloads_max = 4;  // at once, of one job
    int download_tries = 4;
    Millis download_retry{250};  // doubles
    // Outputs that comfyd's own store does not take are held on the worker for so long.
    Millis store_patience{600'000};
    Millis store_retry{1'000};  // doubles, up to a minute
    std::uint64_t upload_bytes_max = 1024ULL * 1024 * 1024;

    comfy::ClientTimeouts timeouts{};

    // Trust
    CircuitBreaker::Limits breaker{};
    Millis probe_wait{10'000};  // for the prompt that shows whether prompts run there

    MandateSource mandate{};

    // Called with the answer of a worker's agent to GET /worker/v1/files, whenever it is another
    // one. On the executor of its machine; empty: nobody wants to know.
    std::function<void(const std::string& worker, json::object files)> files_told{};
    // Likewise whenever it was asked how many bytes of models it has fetched.
    std::function<void(const std::string& worker, FetchedBytes fetched)> fetched_told{};
    LinkOf link_of{};  // empty: there are no such sources
    // The worker has left. On the core.
    std::function<void(const std::string& worker)> left{};
};

struct WorkerConfig {
    std::string id;             // empty: as comfy::server_name() calls it
    std::string url;            // http://host:8188, unix:/path, worker://name
    int slots = 1;              // prompts at once; ComfyUI runs one and queues the others
    double gpu_second_usd = 0;  // price of its time
    std::string gpu{};          // workers with the same name share one GPU; empty: it has its own
    std::string gpu_kind{};     // of its GPU, where ComfyUI does not name one
    std::string machine{};      // its name, where comfyd started it
    std::string region{};       // where it stands, as requests may name it
    std::string pool = "default";
    std::uint64_t model_memory_bytes = 0;  // for models that stay beside those of the latest job
    std::string token{};                   // that the agent in front of it asks for; empty: none
    std::string software{};                // a mark of what is on it; empty: comfyd did not make it
    // Of our own engine: the process that it is. It is ended when it does not end a prompt.
    std::shared_ptr<Supervisor> process{};
    // What it can run, known before it has told it.
    std::shared_ptr<const workflow::NodeClasses> classes{};
};

// An engine of our own, in a child process: `comfyd engine` on a unix socket.
struct EngineConfig {
    std::string id = "engine";
    std::string socket;    // its path
    ChildCommand command;  // that listens there
    std::string pool = "default";
    std::shared_ptr<const workflow::NodeClasses> classes{};
};

}  // namespace comfyd::fleet
