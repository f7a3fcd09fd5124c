// The outbox table: deliveries, in order for each receiver of a job, made by whichever node claims
// them.
//
// Of each thread the oldest pending entry alone is due. When that one is put off, so are those
// behind it, out of the index that a claim reads: a receiver that is down costs nothing to pass
// over. Ending an entry frees the next.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "jobs/ledger.hpp"
#include "ledger/postgres/batch.hpp"
#include "ledger/postgres/telling.hpp"
#include "notify/outbox.hpp"

namespace comfyd::ledger::postgres {

inline constexpr int kDueLimitMax = 10'000;
inline constexpr std::size_t kDeliveryErrorBytesMax = 1024;
// For so long nobody else gets what was claimed. Whoever dies with it costs the receiver that much.
inline constexpr Millis kClaim{30'000};

class ClaimDeliveries final : public WriteOf<std::vector<notify::Delivery>> {
public:
    ClaimDeliveries(Time now, int limit, const Telling& telling)
        : now_(now), limit_(limit), telling_(telling) {}
    std::size_t bytes() const override { return 128; }
    bool join(Batch& batch) override;
    void conclude(const Batch& batch) override;

private:
    Time now_;
    int limit_;
    const Telling& telling_;
    std::size_t place_ = 0;
};

// What became of an attempt. An entry that has ended already stays as it is; Code::not_found for
// one that never was.
class NoteDelivery : public WriteOf<void> {
public:
    NoteDelivery(notify::Delivery delivery, const std::string& error);
    std::size_t bytes() const override { return 1024 + (error_ ? error_->size() : 0); }
    bool join(Batch& batch) override;
    void conclude(const Batch& batch) override;

protected:
    virtual Statement statement(const Circumstances& at) const = 0;
    notify::Delivery delivery_;
    std::optional<std::string> error_;
    std::optional<std::string> log_;

private:
    std::size_t place_ = 0;
};
class EndDelivery final : public NoteDelivery {
public:
    EndDelivery(notify::Delivery delivery, bool is_delivered, Time now, const std::string& error)
        : NoteDelivery(std::move(delivery), error), is_delivered_(is_delivered), now_(now) {}

protected:
    Statement statement(const Circumstances& at) const override;

private:
    bool is_delivered_;  // else given up
    Time now_;
};
class PostponeDelivery final : public NoteDelivery {
public:
    PostponeDelivery(
        notify::Delivery delivery, Time next_attempt_at, const std::string& error, bool is_attempt
    )
        : NoteDelivery(std::move(delivery), error),
          next_attempt_at_(next_attempt_at),
          is_attempt_(is_attempt) {}

protected:
    Statement statement(const Circumstances& at) const override;

private:
    Time next_attempt_at_;
    bool is_attempt_;  // else it was not even tried
};

// Claims of other nodes end earlier by it as well: what they deliver now may be delivered twice.
class HastenDeliveries final : public WriteOf<void> {
public:
    HastenDeliveries(Time now, Millis by) : now_(now), by_(by) {}
    std::size_t bytes() const override { return 128; }
    bool join(Batch& batch) override;
    void conclude(const Batch&) override { outcome.emplace(); }

private:
    Time now_;
    Millis by_;
};

Statement find_next_due();
Statement count_deliveries();
notify::Outbox::Counts read_delivery_counts(const Rows& rows);
Statement find_webhook_status(const JobId& id);
jobs::WebhookStatus read_webhook_status(const Rows& rows);

}  // namespace comfyd::ledger::postgres
