// What admission works with: the rules of the operator, and whom it asks. Owned by
// app/application; outlives all requests. Any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "admission/file_names.hpp"
#include "admission/keeping.hpp"
#include "admission/models.hpp"
#include "admission/tenant_rules.hpp"
#include "assets/intake.hpp"
#include "assets/store.hpp"
#include "base/pool.hpp"
#include "base/time.hpp"
#include "jobs/service.hpp"
#include "workflow/catalogue/catalogue.hpp"
#include "workflow/plan/plan.hpp"
#include "workflow/rules/security.hpp"

namespace comfyd::admission {

struct Rules {
    workflow::SecurityPolicy security{};  // of every submission
    // In the place of what stands here; shared with who changes it.
    std::shared_ptr<TenantTable> tenants = std::make_shared<TenantTable>();
    assets::IntakeLimits inputs{};  // of files that submissions name by address or content
    std::size_t fetches_max = 64;   // requests that fetch such files at the same time
    Millis retention{std::chrono::hours(24 * 30)};  // of jobs that have ended
    bool several_tenants = false;                   // share the workers
    workflow::PlanOptions plan{};
    std::vector<std::string> reuse_never_nodes{};  // as in workflow::ReuseOptions
    std::string reuse_generation{};                // likewise
    KeepingRules keeping{};                        // of outputs
    ModelRules models{};

    // At most as long as the rules themselves.
    std::shared_ptr<const workflow::SecurityPolicy> security_of(const std::string& tenant) const {
        using Policy = std::shared_ptr<const workflow::SecurityPolicy>;
        const auto own = tenants->find(tenant);
        return own && own->security ? Policy(own, &*own->security) : Policy(Policy(), &security);
    }
};

struct Desk {
    jobs::Service& jobs;
    assets::Store& assets;
    Clock& clock;
    std::function<std::shared_ptr<const workflow::Catalogue>()> catalogue;  // any thread
    Rules rules{};
    // What a worker that can run it says to a prompt, with the checks that only it can make.
    // nullopt: none can say, or none did in time. Empty: there are no such workers.
    std::function<Task<std::optional<workflow::PromptVerdict>>(
        json::object prompt, std::vector<std::string> targets, Requirement requirement
    )>
        ask_worker{};
    // Whether a worker's own input folder holds the file at this moment; empty: nobody can be
    // asked.
    std::function<Task<bool>(std::string tenant, std::string name)> has_input{};
    // The names of files that clients uploaded; null: nothing was.
    std::shared_ptr<FileNames> files{};  // shared with the tasks that ask it
    // Requests that fetch files now; counted by fetch_inputs().
    std::shared_ptr<std::atomic<std::size_t>> fetches =
        std::make_shared<std::atomic<std::size_t>>(0);
    // For parse_apart(). Few threads: what is parsed takes far more memory than its text.
    std::shared_ptr<Pool> parsing = std::make_shared<Pool>(2);
};

}  // namespace comfyd::admission
