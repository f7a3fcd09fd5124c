// The audit log of this program, and who is sent its checkpoints. Owned by the application.
#pragma once

#include <memory>

#include "app/config/config.hpp"
#include "audit/courier.hpp"
#include "audit/journal.hpp"
#include "observe/metrics.hpp"

namespace comfyd::app {

class AuditLog {
public:
    // nullptr: none is wanted. `executor` is the courier's; `clock` outlives it. Code::conflict,
    // Code::storage_unavailable.
    static Result<std::unique_ptr<AuditLog>> open(
        const Config& config, Executor executor, Clock& clock
    );

    audit::Journal& journal() { return *journal_; }
    // On its executor, which runs until stop() has returned.
    void start();
    // Writes what is left, and blocks: on a thread that is no executor's.
    void stop();

    void collect(observe::Metrics::Gauges& gauges) const;
    json::object describe() const;  // any thread

private:
    AuditLog(const Config& config, Executor executor, Clock& clock);

    Executor executor_;
    Clock& clock_;
    std::string folder_;
    std::unique_ptr<audit::Courier> courier_;  // null: there is no receiver
    std::unique_ptr<audit::Journal> journal_;
};

}  // namespace comfyd::app
