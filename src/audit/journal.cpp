#include "audit/journal.hpp"

#include <signal.h>

#include <algorithm>
#include <utility>

#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>

#include "audit/cut_address.hpp"
#include "base/log.hpp"

namespace comfyd::audit {
namespace {

using Steady = Refusals::Steady;

constexpr std::size_t kWaitingMax = 20'000;
constexpr std::chrono::seconds kSyncEvery{1};
constexpr Millis kStorePatience{2'000};
constexpr std::string_view kLost = "audit.lost";

}  // namespace

// Its executor's, but for the executor itself.
struct Journal::Waiter {
    explicit Waiter(Executor on) : executor(on), woken(on) {}
    const Executor executor;
    Signal woken;
    bool is_done = false;
    bool is_stored = false;
};

Journal::Journal(JournalOptions options, Signer signer, Clock& clock, std::unique_ptr<Files> files)
    : options_(std::move(options)),
      signer_(std::move(signer)),
      clock_(clock),
      files_(std::move(files)),
      link_(files_->found().link),
      sealed_seq_(link_.seq),
      sealed_at_(Steady::now()),
      synced_at_(Steady::now()) {
    tell_how_found();
    // Signals are for the threads that expect them.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    thread_ = std::thread([this] { run(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Result<std::unique_ptr<Journal>> Journal::open(
    JournalOptions options, Signer signer, Clock& clock
) {
    auto files = Files::open(options.folder, options.files);
    if (!files) {
        return fail(std::move(files.error()));
    }
    return std::unique_ptr<Journal>(
        new Journal(std::move(options), std::move(signer), clock, std::move(*files))
    );
}

Journal::~Journal() {
    stop();
}

void Journal::tell_how_found() {
    const auto tell = [this](std::string_view action, std::string note) {
        Event event;
        event.at = clock_.now();
        event.action = action;
        event.note = std::move(note);
        record(std::move(event));
    };
    const Files::Found& found = files_->found();
    if (!found.damaged.empty()) {
        log::error(
            "the end of the audit log cannot be read: a new chain begins", {{"file", found.damaged}}
        );
        tell(kBegin, "the last line of " + found.damaged + " cannot be read");
    } else if (found.link.seq == 0) {
        tell(kBegin, "");
    }
    if (found.torn_bytes > 0) {
        tell("audit.torn", std::to_string(found.torn_bytes) + " bytes of a line were cut off");
    }
    tell("comfyd.start", "version " COMFYD_VERSION ", public key " + signer_.public_key());
}

void Journal::record(Event event) {
    add({std::move(event)});
}

Task<bool> Journal::store(Event event) {
    const Executor executor = co_await boost::asio::this_coro::executor;
    const auto waiter = std::make_shared<Waiter>(executor);
    if (!add({std::move(event), waiter})) {
        co_return false;
    }
    const auto until = Steady::now() + kStorePatience;
    bool goes_on = true;
    while (!waiter->is_done && goes_on) {
        const auto left = std::chrono::ceil<Millis>(until - Steady::now());
        goes_on = left > Millis(0);
        if (goes_on) {
            goes_on = co_await waiter->woken.wait_for(left);
        }
    }
    co_return waiter->is_stored;
}

bool Journal::add(Entry entry) {
    if (options_.cuts_addresses) {
        entry.event.from = cut_address(entry.event.from);
    }
    bool is_first = false;
    {
        const Lock lock(mutex_);
        if (!entry.waiter && is_refusal(entry.event) &&
            !refusals_.is_first(entry.event, Steady::now())) {
            return true;
        }
        if (stopping_ || waiting_.size() >= kWaitingMax) {
            ++lost_untold_;
            ++counts_.lost;
            return false;
        }
        is_first = waiting_.empty();
        waiting_.push_back(std::move(entry));
    }
    if (is_first) {
        changed_.notify_all();
    }
    return true;
}

void Journal::stop() {
    {
        const Lock lock(mutex_);
        stopping_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) {
        thread_.join();
    }
}

JournalCounts Journal::counts() const {
    const Lock lock(mutex_);
    return counts_;
}

void Journal::run() {
    bool is_last = false;
    while (!is_last) {
        std::vector<Entry> entries;
        {
            Lock lock(mutex_);
            changed_.wait_for(lock, kSyncEvery, [this]() COMFYD_REQUIRES(mutex_) {
                return stopping_ || !waiting_.empty();
            });
            is_last = stopping_;
            entries.swap(waiting_);
            for (Event& event : refusals_.take(Steady::now(), is_last)) {
                event.at = clock_.now();
                entries.push_back({std::move(event)});
            }
            if (const auto lost = std::exchange(lost_untold_, 0); lost > 0) {
                Event event;
                event.at = clock_.now();
                event.action = kLost;
                event.count = lost;
                entries.push_back({std::move(event)});
            }
        }
        write(entries, is_last);
    }
}

std::string Journal::next_checkpoint(Link& link) const {
    const Time now = clock_.now();
    auto signature = signer_.sign(sealed_text(to_rfc3339(now), options_.node, link));
    if (!signature) {
        log::error("the audit log has no checkpoint", {{"error", signature.error().message}});
        return {};
    }
    return make_checkpoint(now, options_.node, {signer_.public_key(), *signature}, link);
}

void Journal::write(const std::vector<Entry>& entries, bool is_last) {
    Link link = link_;
    std::string text;
    for (const Entry& entry : entries) {
        text += make_line(entry.event, options_.node, link) + '\n';
    }
    const bool is_due = is_last || Steady::now() - sealed_at_ >= options_.checkpoint_every;
    std::string checkpoint;
    if (is_due && link.seq > sealed_seq_) {
        checkpoint = next_checkpoint(link);
        text += checkpoint.empty() ? "" : checkpoint + '\n';
    }
    auto written = text.empty() ? Result<>() : files_->append(text);
    count(entries, written.has_value());
    if (written && !text.empty()) {
        link_ = link;
        is_dirty_ = true;
    }
    const bool is_awaited =
        std::ranges::any_of(entries, [](const Entry& entry) { return entry.waiter != nullptr; });
    auto synced = sync_where_due(is_awaited || is_last);
    if (written && !checkpoint.empty()) {
        sealed_seq_ = link_.seq;
        sealed_at_ = Steady::now();
        log::info("audit checkpoint", {{"line", checkpoint}});
        options_.deliver(checkpoint);
    }
    const auto outcome = written ? std::move(synced) : std::move(written);
    if (!outcome && !is_failing_) {
        log::error("the audit log cannot be written", {{"error", outcome.error().message}});
    }
    is_failing_ = !outcome;
    wake(entries, outcome.has_value());
}

void Journal::count(const std::vector<Entry>& entries, bool is_written) {
    const Lock lock(mutex_);
    if (is_written) {
        counts_.lines += entries.size();
        return;
    }
    for (const Entry& entry : entries) {
        const bool is_told_again = entry.event.action == kLost;
        lost_untold_ += is_told_again ? entry.event.count : 1;
        counts_.lost += is_told_again ? 0 : 1;
    }
}

Result<> Journal::sync_where_due(bool now) {
    if (!is_dirty_ || (!now && Steady::now() - synced_at_ < kSyncEvery)) {
        return {};
    }
    auto synced = files_->sync();
    synced_at_ = Steady::now();
    is_dirty_ = !synced;
    return synced;
}

void Journal::wake(const std::vector<Entry>& entries, bool is_stored) {
    for (const Entry& entry : entries) {
        if (entry.waiter) {
            boost::asio::post(entry.waiter->executor, [waiter = entry.waiter, is_stored] {
                waiter->is_done = true;
                waiter->is_stored = is_stored;
                waiter->woken.notify();
            });
        }
    }
}

}  // namespace comfyd::audit
