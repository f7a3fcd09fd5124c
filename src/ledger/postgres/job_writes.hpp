// The two ways in which jobs are written: a new one, and a change of one.
#pragma once

#include <string>

#include "jobs/ledger.hpp"
#include "ledger/job_texts.hpp"
#include "ledger/postgres/batch.hpp"

namespace comfyd::ledger::postgres {

class AcceptJob final : public WriteOf<jobs::Accepted> {
public:
    // `sealed`: its secrets; nullopt: it has none, or they are not kept.
    explicit AcceptJob(jobs::NewJob job, std::optional<std::string> sealed = std::nullopt);
    std::size_t bytes() const override;
    bool join(Batch& batch) override;
    void conclude(const Batch& batch) override;
    Statements question(const Circumstances& at) override;
    void hear(const Circumstances& at, const std::vector<Rows>& answers) override;

private:
    void add_job(Batch& batch) const;

    jobs::NewJob new_;
    std::optional<std::string> sealed_;
    SpecTexts texts_;
    std::optional<ResultTexts> then_texts_;
};

class CommitChange final : public WriteOf<void> {
public:
    explicit CommitChange(jobs::Change change);
    std::size_t bytes() const override;
    bool join(Batch& batch) override;
    void conclude(const Batch& batch) override;
    Statements question(const Circumstances& at) override;
    void hear(const Circumstances& at, const std::vector<Rows>& answers) override;

private:
    jobs::Change change_;
    ResultTexts texts_;
};

}  // namespace comfyd::ledger::postgres
