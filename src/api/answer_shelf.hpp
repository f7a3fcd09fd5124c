// Answers about ended jobs, as the bytes that were sent: nothing changes about most of them any
// more, and clients ask again and again. What was put here is good as long as the ledger's stamp of
// the job is the one that it was made of (jobs::Ledger::stamp()), whoever changed the job on
// whichever node; and for a minute at most, because there are signed links in it. Any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/id.hpp"
#include "base/mutex.hpp"
#include "base/task.hpp"
#include "base/time.hpp"
#include "jobs/ledger.hpp"

namespace comfyd::api {

struct Call;
struct Services;

class AnswerShelf {
public:
    static constexpr std::size_t kBytesMax = 8 * 1024 * 1024;
    static constexpr std::size_t kAnswerBytesMax = 32 * 1024;  // larger ones are not kept

    struct Answer {
        std::string tenant;
        int revision = 0;
        std::optional<bool> webhook_delivered{};  // where the answer tells of it
        Time good_until{};
        std::string body;
        // ledger::Storage::changes() when it was last known to be so.
        std::shared_ptr<std::atomic<std::uint64_t>> seen_at =
            std::make_shared<std::atomic<std::uint64_t>>(0);

        bool is_of(const jobs::Stamp& stamp) const;
    };
    using AnswerPtr = std::shared_ptr<const Answer>;
    // What the ledger says of its changes, where nobody else writes into it: then a stamp need not
    // be asked for as long as there are none. Begins at 1.
    using Changes = std::function<std::optional<std::uint64_t>()>;

    explicit AnswerShelf(Changes changes = {}) : changes_(std::move(changes)) {}

    std::optional<std::uint64_t> changes() const { return changes_ ? changes_() : std::nullopt; }
    // `form`: what tells answers about one job apart. nullptr: there is none.
    AnswerPtr find(const JobId& job, std::string_view form) const;
    // The ones that were put here longest ago go.
    void put(const JobId& job, std::string form, Answer answer);
    std::size_t bytes() const;

private:
    struct Entry {
        JobId job;
        std::string form;
        AnswerPtr answer;
        std::size_t bytes() const;
    };
    // Each has its share of the jobs, so that threads seldom wait for each other.
    struct Part {
        mutable Mutex mutex;
        std::list<Entry> entries COMFYD_GUARDED_BY(mutex);  // the oldest first
        std::unordered_multimap<JobId, std::list<Entry>::iterator> index COMFYD_GUARDED_BY(mutex);
        std::size_t bytes COMFYD_GUARDED_BY(mutex) = 0;

        using Found = std::unordered_multimap<JobId, std::list<Entry>::iterator>::const_iterator;
        Found find(const JobId& job, std::string_view form) const COMFYD_REQUIRES(mutex);
        void erase(Found found) COMFYD_REQUIRES(mutex);
    };
    static constexpr std::size_t kParts = 8;

    Part& part_of(const JobId& job) { return parts_[std::hash<JobId>()(job) % kParts]; }
    const Part& part_of(const JobId& job) const { return parts_[std::hash<JobId>()(job) % kParts]; }

    const Changes changes_;
    std::array<Part, kParts> parts_;
};

// The answer to one request about a job: an earlier one, or that which is made now and may be kept.
class KeptAnswer {
public:
    // `dialect`: and whatever else its answers about one job differ in. What is handed over
    // outlives it.
    KeptAnswer(
        const Call& call, const Services& services, const JobId& job, std::string_view dialect
    );

    // nullptr: it must be made.
    Task<AnswerShelf::AnswerPtr> find();
    // Of what it is being made. `webhook_delivered`: where the answer tells of it.
    void made_of(const jobs::Job& job, std::optional<bool> webhook_delivered = std::nullopt);
    // Here it is. An answer of something that changes by itself is not kept.
    void keep(const std::string& body);

private:
    const Call& call_;
    const Services& services_;
    const JobId job_;
    const std::string form_;
    std::optional<std::uint64_t> asked_at_;  // AnswerShelf::changes(), before anything was read
    std::optional<AnswerShelf::Answer> made_;
};

}  // namespace comfyd::api
