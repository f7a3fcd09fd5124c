// The outbox table: deliveries, in order for each receiver of a job.
//
// Of each thread at most one entry is due or waits for its next attempt; the later ones are blocked
// behind it, out of the index that due() reads. Ending an entry frees the next. So a receiver that
// is down costs nothing to pass over.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "jobs/ledger.hpp"
#include "ledger/sqlite/session.hpp"
#include "ledger/told_to.hpp"
#include "notify/outbox.hpp"

namespace comfyd::ledger::sqlite {

inline constexpr int kDueLimitMax = 10'000;
inline constexpr std::size_t kDeliveryErrorBytesMax = 1024;

// Inside the operation that writes the event: to the job's own webhook, or to whoever else is told.
Result<> add_delivery(
    Session& session, const jobs::Job& job, const jobs::Event& event, std::string_view endpoint
);
Result<> add_deliveries(
    Session& session,
    const jobs::Job& job,
    const jobs::Event& event,
    const std::vector<ToldTo>& told
);
// Whom deliveries of a job under this name go to.
Result<> add_target(
    Session& session, const JobId& job, std::string_view endpoint, std::string_view target
);

// An entry that has ended already stays as it is; Code::not_found for one that never was.
struct EndDelivery {
    using Value = void;
    notify::Delivery delivery;
    bool is_delivered = false;  // else given up
    Time now;
    std::string error{};

    std::size_t bytes() const { return 1024 + error.size(); }
    Result<> operator()(Session& session);
};
struct PostponeDelivery {
    using Value = void;
    notify::Delivery delivery;
    Time next_attempt_at;
    std::string error;
    bool is_attempt = true;  // else it was not even tried

    std::size_t bytes() const { return 1024 + error.size(); }
    Result<> operator()(Session& session);
};

struct GiveUpWaiting {
    using Value = int;
    std::string endpoint;
    Time now;
    std::string why;
    int limit;

    std::size_t bytes() const { return 128 + why.size(); }
    Result<int> operator()(Session& session);
};

struct HastenDeliveries {
    using Value = void;
    Time now;
    Millis by;

    std::size_t bytes() const { return 128; }
    Result<> operator()(Session& session);
};

Result<std::vector<notify::Delivery>> find_due(Database& db, Time now, int limit);
Result<std::optional<Time>> find_next_due(Database& db);
Result<notify::Outbox::Counts> count_deliveries(Database& db);
Result<jobs::WebhookStatus> find_webhook_status(Database& db, const JobId& id);

}  // namespace comfyd::ledger::sqlite
