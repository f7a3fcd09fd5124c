#include "bulk/news.hpp"

#include <utility>

namespace comfyd::bulk {

json::object encode_counts(const jobs::ItemCounts& counts) {
    return {
        {"total", counts.total},
        {"completed", counts.completed},
        {"failed", counts.failed},
        {"cancelled", counts.cancelled},
        {"running", counts.running},
        {"waiting", counts.waiting()},
    };
}

std::string_view status_of(const jobs::Bulk& bulk) {
    const bool is_paused = bulk.paused && bulk.state == jobs::BulkState::running;
    return is_paused ? "paused" : to_string(bulk.state);
}

json::object encode_item_failure(const jobs::BulkItem& item) {
    return {
        {"index", item.index},
        {"custom_id", item.custom_id.empty() ? json::value(nullptr) : json::value(item.custom_id)},
        {"job_id", item.job ? json::value(item.job->to_string()) : json::value(nullptr)},
        {"error", item.failure ? json::value(item.failure->to_json()) : json::value(nullptr)},
    };
}

std::string end_event_of(const jobs::Bulk& bulk) {
    return "batch." + std::string(to_string(bulk.state));
}

Task<Result<json::object>> describe_end(jobs::BulkStore& store, jobs::Bulk bulk) {
    auto failed = co_await store.bulk_items(
        {.bulk = bulk.id, .state = jobs::ItemState::failed, .limit = kFailuresTold}
    );
    if (!failed) {
        co_return fail(std::move(failed.error()));
    }
    json::array failures;
    for (const jobs::BulkItem& item : *failed) {
        failures.emplace_back(encode_item_failure(item));
    }
    json::object told{
        {"batch_id", bulk.id.to_string()},
        {"status", std::string(status_of(bulk))},
        {"request_counts", encode_counts(bulk.counts)},
        {"created_at", to_rfc3339(bulk.created_at)},
        {"ended_at", to_rfc3339(bulk.ended_at.value_or(bulk.created_at))},
        {"metadata",
         bulk.about.contains("metadata") ? bulk.about.at("metadata") : json::value(json::object())},
        {"failures", std::move(failures)},
        {"failures_left_out", bulk.counts.failed - static_cast<int>(failed->size())},
    };
    co_return told;
}

Task<Result<notify::Announcement>> make_news(jobs::BulkStore& store, jobs::Bulk bulk) {
    auto data = co_await describe_end(store, bulk);
    if (!data) {
        co_return fail(std::move(data.error()));
    }
    const std::string event = end_event_of(bulk);
    const Time at = bulk.ended_at.value_or(bulk.created_at);
    notify::Announcement news;
    news.about = bulk.id.to_string();
    news.id = "msg_" + news.about + "_" + std::to_string(to_unix_ms(at));
    news.event = event;
    news.at = at;
    news.source = "/v2/batches";
    news.body = {
        {"event", event},
        {"type", event},
        {"timestamp", to_rfc3339(at)},
        {"batch_id", bulk.id.to_string()},
        {"data", std::move(*data)},
    };
    co_return news;
}

}  // namespace comfyd::bulk
