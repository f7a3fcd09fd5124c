// Who is told of a job, with the targets as the database keeps them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ledger/postgres/secret_texts.hpp"
#include "ledger/told_to.hpp"

namespace comfyd::ledger::postgres {

class Telling {
public:
    // Both outlive it; `routing` may be nullptr.
    Telling(const notify::Routing* routing, const SecretTexts& texts)
        : routing_(routing), texts_(texts) {}

    std::vector<ToldTo> of(const jobs::Job& job, const jobs::Event& event) const {
        auto told = told_to(routing_, job, event);
        for (ToldTo& one : told) {
            one.target = write_target(one.target, job.id, one.endpoint);
        }
        return told;
    }
    std::string write_target(std::string_view target, const JobId& job, std::string_view endpoint)
        const {
        return texts_.write(target, label_of(job, endpoint));
    }
    std::optional<std::string> read_target(
        std::string_view stored, const JobId& job, std::string_view endpoint
    ) const {
        return texts_.read(stored, label_of(job, endpoint));
    }

private:
    static std::string label_of(const JobId& job, std::string_view endpoint) {
        return job.to_string().append("/").append(endpoint);
    }

    const notify::Routing* routing_;
    const SecretTexts& texts_;
};

}  // namespace comfyd::ledger::postgres
