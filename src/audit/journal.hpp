// The audit log of this process: events come from any thread and wait for nothing, a thread of its
// own ties them into the chain and writes them. Every now and then, and at the end, it writes a
// signed checkpoint. What waits is bounded; events beyond that are lost, counted, and the log says
// how many.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "audit/files.hpp"
#include "audit/refusals.hpp"
#include "audit/signing.hpp"
#include "base/mutex.hpp"
#include "base/task.hpp"

namespace comfyd::audit {

struct JournalOptions {
    std::filesystem::path folder{};
    std::string node{};  // whose log it is
    FileLimits files{};
    Millis checkpoint_every{60'000};
    bool cuts_addresses = false;  // to a /24, or a /48 of IPv6
    // Gets each checkpoint's line, on the journal's thread: must not wait.
    std::function<void(const std::string& line)> deliver = [](const std::string&) {};
};

struct JournalCounts {
    std::uint64_t lines = 0;  // since start
    std::uint64_t lost = 0;   // events
};

class Journal {
public:
    // The failures of Files::open().
    static Result<std::unique_ptr<Journal>> open(
        JournalOptions options, Signer signer, Clock& clock
    );
    ~Journal();  // stop()
    Journal(const Journal&) = delete;
    Journal& operator=(const Journal&) = delete;

    void record(Event event);
    // The same, and returns when it is on the disk. False: it is not, or not yet after two seconds.
    Task<bool> store(Event event);
    // Writes what waits, and the last checkpoint. While the executors of those who wait run.
    void stop();

    JournalCounts counts() const;
    const std::string& public_key() const { return signer_.public_key(); }

private:
    struct Waiter;
    struct Entry {
        Event event;
        std::shared_ptr<Waiter> waiter{};  // null: nobody waits
    };

    Journal(JournalOptions options, Signer signer, Clock& clock, std::unique_ptr<Files> files);
    bool add(Entry entry);
    void tell_how_found();
    void run();
    void write(const std::vector<Entry>& entries, bool is_last);
    std::string next_checkpoint(Link& link) const;
    void count(const std::vector<Entry>& entries, bool is_written);
    Result<> sync_where_due(bool now);
    static void wake(const std::vector<Entry>& entries, bool is_stored);

    const JournalOptions options_;
    const Signer signer_;
    Clock& clock_;

    mutable Mutex mutex_;
    Condition changed_;
    std::vector<Entry> waiting_ COMFYD_GUARDED_BY(mutex_);
    Refusals refusals_ COMFYD_GUARDED_BY(mutex_);
    std::uint64_t lost_untold_ COMFYD_GUARDED_BY(mutex_) = 0;
    JournalCounts counts_ COMFYD_GUARDED_BY(mutex_);
    bool stopping_ COMFYD_GUARDED_BY(mutex_) = false;

    // The thread's own.
    std::unique_ptr<Files> files_;
    Link link_;
    std::uint64_t sealed_seq_ = 0;  // of the latest checkpoint
    Refusals::Steady::time_point sealed_at_{};
    Refusals::Steady::time_point synced_at_{};
    bool is_dirty_ = false;
    bool is_failing_ = false;
    std::thread thread_;
};

}  // namespace comfyd::audit
