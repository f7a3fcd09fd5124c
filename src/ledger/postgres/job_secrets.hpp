// What a client gives for workers alone, as the database has it: sealed with what all nodes know,
// or not at all.
#pragma once

#include <optional>
#include <string>

#include "base/sealing.hpp"
#include "jobs/shared_ledger.hpp"

namespace comfyd::ledger::postgres {

class JobSecrets {
public:
    // Without a secret none is kept.
    explicit JobSecrets(const std::string& secret)
        : sealing_(secret.empty() ? std::nullopt : std::optional<Sealing>(secret)) {}

    // nullopt: the job has none, or they are not kept.
    std::optional<std::string> seal(const jobs::NewJob& job) const {
        const json::object& secrets = job.spec.secret_extra_data;
        return !sealing_ || secrets.empty()
                   ? std::nullopt
                   : std::optional(
                         sealing_->seal(json::serialize(secrets), job.change.job.id.to_string())
                     );
    }
    // Those that were sealed otherwise are left out: their jobs run without.
    void open(std::vector<jobs::Unfinished>& jobs) const {
        for (jobs::Unfinished& entry : jobs) {
            const auto text = sealing_ && !entry.sealed.empty()
                                  ? sealing_->open(entry.sealed, entry.job.id.to_string())
                                  : std::nullopt;
            entry.secrets =
                text ? json::parse_object(*text).value_or(json::object()) : json::object();
            entry.sealed.clear();
        }
    }

private:
    const std::optional<Sealing> sealing_;
};

}  // namespace comfyd::ledger::postgres
