// The two ways in which jobs are written: a new one, and a change of one. Text forms are made by
// the constructors, on the caller's thread, so that the writer thread only binds them.
//
// An operation that answers Code::conflict or Code::not_found has written nothing.
#pragma once

#include <optional>
#include <string>

#include "jobs/ledger.hpp"
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
    std::string spec_;
    std::optional<std::string> extra_data_;
    std::optional<std::string> metadata_;
    std::optional<std::string> dialect_data_;
    std::optional<std::string> profile_;
    std::optional<std::string> queued_data_;
    std::optional<std::string> webhook_events_;
    MentionedAssets used_assets_;
    bool announces_ = false;  // the webhook wants to hear of "queued"
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
    bool has_result() const { return failure_ || outputs_ || ui_outputs_ || usage_; }

    jobs::Change change_;
    std::optional<std::string> failure_;
    std::optional<std::string> outputs_;
    std::optional<std::string> ui_outputs_;
    std::optional<std::string> usage_;
    std::optional<std::string> event_data_;
};

}  // namespace comfyd::ledger::sqlite
