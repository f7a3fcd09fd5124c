// The two ways in which jobs are written: a new one, and a change of one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "jobs/ledger.hpp"
#include "ledger/job_texts.hpp"
#include "ledger/postgres/batch.hpp"
#include "ledger/postgres/telling.hpp"

namespace comfyd::ledger::postgres {

class AcceptJob final : public WriteOf<jobs::Accepted> {
public:
    // `sealed`: its secrets; nullopt: it has none, or they are not kept. `telling` is asked at
    // once.
    AcceptJob(jobs::NewJob job, std::optional<std::string> sealed, const Telling& telling);
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
    std::vector<ToldTo> told_;
    std::vector<ToldTo> warned_;
    std::vector<ToldTo> then_told_;
};

class CommitChange final : public WriteOf<void> {
public:
    CommitChange(jobs::Change change, const Telling& telling);
    std::size_t bytes() const override;
    bool join(Batch& batch) override;
    void conclude(const Batch& batch) override;
    Statements question(const Circumstances& at) override;
    void hear(const Circumstances& at, const std::vector<Rows>& answers) override;

private:
    jobs::Change change_;
    ResultTexts texts_;
    std::vector<ToldTo> told_;
};

}  // namespace comfyd::ledger::postgres
