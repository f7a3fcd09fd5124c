// The two ways in which jobs are written: a new one, and a change of one.
//
// An operation that answers Code::conflict or Code::not_found has written nothing.
#pragma once

#include <optional>
#include <string>

#include "jobs/ledger.hpp"
#include "ledger/job_texts.hpp"
#include "ledger/sqlite/asset_uses.hpp"
#include "ledger/sqlite/session.hpp"

namespace comfyd::ledger::sqlite {

class AcceptJob {
public:
    using Value = jobs::Accepted;
    explicit AcceptJob(jobs::NewJob job);
    std::size_t bytes() const;
    Result<jobs::Accepted> operator()(Session& session);

private:
    Result<> insert_job(Session& session, std::int64_t number) const;
    Result<> insert_payload(Session& session, std::int64_t number) const;
    Result<> insert_warning(Session& session, std::int64_t number) const;
    Result<> insert_key(Session& session) const;

    jobs::NewJob new_;
    SpecTexts texts_;
};

class CommitChange {
public:
    using Value = void;
    explicit CommitChange(jobs::Change change);
    std::size_t bytes() const;
    Result<> operator()(Session& session);

private:
    Result<> update_job(Session& session, std::int64_t number) const;
    Result<> write_result(Session& session, std::int64_t number, bool had_result) const;

    jobs::Change change_;
    ResultTexts texts_;
};

}  // namespace comfyd::ledger::sqlite
