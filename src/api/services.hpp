// What dialects work with. Owned by app/wiring; outlives the server.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "api/file_names.hpp"
#include "api/own_ids.hpp"
#include "assets/intake.hpp"
#include "assets/links.hpp"
#include "assets/store.hpp"
#include "base/pool.hpp"
#include "base/time.hpp"
#include "jobs/service.hpp"
#include "jobs/workflow_store.hpp"
#include "observe/metrics.hpp"
#include "workflow/catalogue.hpp"
#include "workflow/plan.hpp"
#include "workflow/security.hpp"

namespace comfyd::api {

struct ApiOptions {
    std::string public_url;  // prefix of absolute links; empty: made from the request's Host header
    std::uint64_t json_body_bytes_max = 32 * 1024 * 1024;
    std::uint64_t upload_bytes_max = 1024ULL * 1024 * 1024;
    bool allow_private_webhooks = false;
    Millis retention{std::chrono::hours(24 * 30)};  // expires_at of jobs that are shown to clients
    Millis heartbeat{15'000};                       // comment line on silent event streams
    std::size_t streams_max = 20'000;
    bool metrics_are_open = false;        // else they are the operators'
    bool has_frontend = false;            // "/" is the editor and not the landing page
    workflow::SecurityPolicy security{};  // of every submission
    std::map<std::string, workflow::SecurityPolicy> tenant_security{};  // in its place, by tenant
    assets::IntakeLimits inputs{};           // of files that submissions name by address or content
    std::size_t fetches_max = 64;            // requests that fetch such files at the same time
    bool several_tenants = false;            // share the workers
    std::set<std::string> pools{"default"};  // of all workers, also those that are down
    std::map<std::string, std::string> tenant_pools{};  // where a request names none, by tenant
    workflow::PlanOptions plan{};
    std::set<std::string> reuse_tenants{};  // whose jobs may reuse outputs unless they say no
    std::vector<std::string> reuse_never_nodes{};  // as in workflow::ReuseOptions
    std::string reuse_generation{};                // likewise
    std::uint64_t gpu_memory_mb = 0;               // of the largest GPU; 0: not known
};

inline const workflow::SecurityPolicy& security_of(
    const ApiOptions& options, const std::string& tenant
) {
    const auto own = options.tenant_security.find(tenant);
    return own == options.tenant_security.end() ? options.security : own->second;
}

struct Services {
    jobs::Service& jobs;
    assets::Store& assets;
    const assets::LinkSigner& links;
    jobs::WorkflowStore& workflows;
    std::function<std::shared_ptr<const workflow::Catalogue>()> catalogue;  // any thread
    std::function<Result<>()> ready;                                        // why /readyz says no
    std::function<Task<std::string>()> metrics_text;  // awaited on the connection's executor
    // A draining worker ends what it runs and gets nothing more. Code::not_found.
    std::function<Task<Result<>>(std::string worker, bool draining)> set_draining;
    observe::Metrics& metrics;
    Clock& clock;
    ApiOptions options;
    // What a worker that can run it says to a prompt, with the checks that only it can make.
    // nullopt: none can say, or none did in time. Empty: there are no such workers.
    std::function<Task<std::optional<workflow::PromptVerdict>>(
        json::object prompt, std::vector<std::string> targets, std::string requirement
    )>
        ask_worker{};
    // Open event streams of the process, by whatever dialect; counted by StreamSlot.
    std::shared_ptr<std::atomic<std::size_t>> streams =
        std::make_shared<std::atomic<std::size_t>>(0);
    // For parse_apart(). Few threads: what is parsed takes far more memory than its text.
    std::shared_ptr<Pool> parsing = std::make_shared<Pool>(2);
    std::shared_ptr<OwnIds> own_ids = std::make_shared<OwnIds>();
    // Requests that fetch files now; counted by fetch_inputs().
    std::shared_ptr<std::atomic<std::size_t>> fetches =
        std::make_shared<std::atomic<std::size_t>>(0);
    // The names of files that clients uploaded; null: nothing was.
    std::shared_ptr<FileNames> files{};  // shared with the tasks that ask it
    // Whether a worker's own input folder holds the file at this moment; empty: nobody can be
    // asked.
    std::function<Task<bool>(std::string tenant, std::string name)> has_input{};
};

}  // namespace comfyd::api
