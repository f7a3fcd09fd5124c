// Tells of the end of bulks: to the webhook that came with one, and to the endpoints of its tenant
// that want to hear of it; each until it has heard or is given up. What is left to do is a value
// that the bulk's row keeps. Runs on the executor of whoever calls it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/task.hpp"
#include "jobs/bulk_store.hpp"
#include "notify/announcement.hpp"
#include "notify/channel.hpp"
#include "notify/target.hpp"

namespace comfyd::bulk {

// How others are reached.
struct Messengers {
    std::function<Task<notify::Outcome>(notify::Target, notify::Announcement)> announce;
    std::function<notify::RetryWish(const notify::Target&)> retry_wish;
    // The endpoints of a tenant that want to hear of an event. Empty: there are none.
    std::function<
        std::vector<notify::EndpointId>(const std::string& tenant, std::string_view event)>
        listeners{};
};

struct TellingOptions {
    Millis first_retry{1'000};  // then doubled each time
    Millis retry_max{std::chrono::hours(1)};
    Millis give_up_after{std::chrono::hours(24)};
};

// All who are to hear of a bulk that has just ended; nullopt: nobody.
std::optional<jobs::BulkNews> news_of(
    const jobs::Bulk& bulk, const std::optional<jobs::Webhook>& own, const Messengers& messengers
);

// Tells everybody who has not heard, at once, and gives what is left to do after that; nullopt:
// nothing. Code::cancelled: the task was, and nothing is known. REQUIRES: bulk.news. All but the
// values live in the frame that awaits it.
Task<Result<std::optional<jobs::BulkNews>>> tell_end(
    jobs::BulkStore& store,
    const Messengers& messengers,
    TellingOptions options,
    jobs::Bulk bulk,
    std::optional<jobs::Webhook> own,
    Time now
);

}  // namespace comfyd::bulk
