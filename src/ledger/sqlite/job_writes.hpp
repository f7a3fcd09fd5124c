// The two ways in which jobs are written: a new one, and a change of one.
//
// An operation that answers Code::conflict or Code::not_found has written nothing.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "jobs/ledger.hpp"
#include "ledger/job_texts.hpp"
#include "ledger/sqlite/asset_uses.hpp"
#include "ledger/sqlite/session.hpp"
#include "ledger/told_to.hpp"

namespace comfyd::ledger::sqlite {

class AcceptJob {
public:
    using Value = jobs::Accepted;
    using OnlyAdds = void;  // Operation::only_adds()
    // `routing` is asked at once; nullptr: nobody else is told.
    AcceptJob(jobs::NewJob job, const notify::Routing* routing);
    std::size_t bytes() const;
    Result<jobs::Accepted> operator()(Session& session);

private:
    Result<> insert_job(Session& session, std::int64_t number) const;
    Result<> insert_payload(Session& session, std::int64_t number) const;
    Result<> insert_warning(Session& session, std::int64_t number) const;
    Result<> insert_key(Session& session) const;
    Result<> tell(Session& session) const;

    jobs::NewJob new_;
    SpecTexts texts_;
    std::vector<ToldTo> told_;
    std::vector<ToldTo> warned_;
    std::vector<ToldTo> then_told_;
};

class CommitChange {
public:
    using Value = void;
    CommitChange(jobs::Change change, std::vector<ToldTo> told);
    std::size_t bytes() const;
    Result<> operator()(Session& session);

private:
    Result<> update_job(Session& session, std::int64_t number) const;
    Result<> write_result(Session& session, std::int64_t number, bool had_result) const;

    jobs::Change change_;
    ResultTexts texts_;
    std::vector<ToldTo> told_;
};

}  // namespace comfyd::ledger::sqlite
