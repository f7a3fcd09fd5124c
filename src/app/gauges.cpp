#include "app/gauges.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <string>

#include "app/breakers.hpp"
#include "base/hop.hpp"
#include "base/log.hpp"

namespace comfyd::app {

Task<Readings> take_readings(Measured parts) {
    Readings readings;
    readings.queue = co_await parts.jobs.queue_counts();
    readings.workers = co_await parts.jobs.workers();
    auto counts = co_await parts.jobs.counts(std::nullopt);
    readings.jobs = counts.value_or(jobs::StateCounts{});
    notify::Outbox& deliveries = parts.ledger;
    auto outbox = co_await deliveries.counts();
    readings.outbox = outbox.value_or(notify::Outbox::Counts{});
    auto stores = co_await parts.ledger.waiting();
    readings.stores = stores.value_or(assets::BlobRecords::Waiting{});
    for (const assets::BreakerStore* store : parts.stores) {
        readings.stores_elsewhere[store->name()] = store->state();
    }
    readings.senders = co_await parts.notifier.breakers();
    readings.taken_at = parts.clock.now();
    readings.ledger = parts.ledger.storage_stats();
    readings.notified = parts.notifier.counters();
    readings.server = parts.server.counters();
    readings.engine_ends = co_await parts.machines.engine_ends();
    co_return readings;
}

void collect(const Readings& readings, observe::Metrics::Gauges& gauges) {
    const auto set = [&gauges](const char* name, const char* help, auto value) {
        gauges.set(name, help, {}, static_cast<double>(value));
    };
    const auto queue = [&gauges](const char* state, std::size_t jobs) {
        gauges.set(
            "comfyd_queue_jobs",
            "Unfinished jobs by state.",
            {{"state", state}},
            static_cast<double>(jobs)
        );
    };
    set("comfyd_engine_ends",
        "Ends of the engine's processes while comfyd runs; each is started again.",
        readings.engine_ends);
    queue("queued", readings.queue.queued);
    queue("running", readings.queue.running);
    queue("retry_waiting", readings.queue.retry_waiting);

    set("comfyd_retries_held",
        "Attempts that waited because the fleet repeats too much, since start.",
        readings.queue.retries_held);
    for (std::size_t i = 0; i < readings.queue.queued_by_class.size(); ++i) {
        const auto wait_class = static_cast<scheduler::WaitClass>(i);
        gauges.set(
            "comfyd_queue_class_jobs",
            "Jobs that wait for a worker by class.",
            {{"class", std::string(scheduler::to_string(wait_class))}},
            static_cast<double>(readings.queue.queued_by_class[i])
        );
    }

    for (int i = 0; i < 7; ++i) {
        const auto state = static_cast<jobs::State>(i);
        gauges.set(
            "comfyd_stored_jobs",
            "Jobs in the ledger by state.",
            {{"state", std::string(to_string(state))}},
            static_cast<double>(readings.jobs.of(state))
        );
    }

    std::map<std::string, int> by_status{
        {"starting", 0}, {"idle", 0}, {"running", 0}, {"draining", 0}, {"down", 0}
    };
    for (const jobs::WorkerInfo& worker : readings.workers) {
        ++by_status[std::string(to_string(worker.status))];
        const auto of_worker = [&](const char* name, const char* help, double value) {
            gauges.set(name, help, {{"worker", worker.id}}, value);
        };
        gauges.set(
            "comfyd_worker_up",
            "1 while the worker answers.",
            {{"worker", worker.id}, {"pool", worker.pool}},
            worker.status == jobs::WorkerStatus::down ? 0 : 1
        );
        of_worker(
            "comfyd_worker_completed_jobs",
            "Jobs that the worker completed.",
            static_cast<double>(worker.completed)
        );
        of_worker(
            "comfyd_worker_failed_jobs",
            "Attempts that failed on the worker.",
            static_cast<double>(worker.failed)
        );
        of_worker(
            "comfyd_worker_breaker_state",
            "How a worker is trusted: 0 closed, 1 open (it rests), 2 half-open (it is tried).",
            static_cast<double>(worker.breaker)
        );
        of_worker(
            "comfyd_worker_vram_total_bytes",
            "GPU memory of the worker.",
            static_cast<double>(worker.vram_total)
        );
        of_worker(
            "comfyd_worker_vram_free_bytes",
            "Free GPU memory of the worker.",
            static_cast<double>(worker.vram_free)
        );
    }
    for (const auto& [status, count] : by_status) {
        gauges.set("comfyd_workers", "Workers by status.", {{"status", status}}, count);
    }

    set("comfyd_ledger_commits", "Durable operations since start.", readings.ledger.commits);
    set("comfyd_ledger_batches",
        "Transactions, each with one fsync, since start.",
        readings.ledger.batches);
    set("comfyd_ledger_failed_batches",
        "Transactions that failed since start.",
        readings.ledger.failed_batches);
    set("comfyd_ledger_last_batch_size",
        "Operations in the latest transaction.",
        readings.ledger.last_batch_size);
    set("comfyd_ledger_queue_depth",
        "Operations that wait for the writer.",
        readings.ledger.queue_depth);
    set("comfyd_ledger_wal_bytes", "Size of the write-ahead log.", readings.ledger.wal_bytes);
    set("comfyd_ledger_commit_seconds_sum",
        "Time from request to durable, summed.",
        readings.ledger.latency.sum_seconds);

    set("comfyd_webhooks_pending",
        "Webhook deliveries that are due or wait.",
        readings.outbox.pending);
    set("comfyd_webhooks_dead", "Webhook deliveries that were given up.", readings.outbox.dead);
    set("comfyd_webhooks_delivered", "Webhooks delivered since start.", readings.notified.delivered
    );
    set("comfyd_webhooks_failed_attempts",
        "Failed delivery attempts since start.",
        readings.notified.failed_attempts);
    set("comfyd_webhooks_in_flight",
        "Webhook deliveries that are being attempted.",
        readings.notified.in_flight);
    set("comfyd_webhooks_resting",
        "Receivers of webhooks that are left alone for a while, because they failed in a row.",
        readings.notified.resting);

    const assets::BlobRecords::Waiting& stores = readings.stores;
    const Time oldest = stores.oldest_upload.value_or(readings.taken_at);
    set("comfyd_uploads_waiting",
        "Contents that are to be brought to another store.",
        stores.uploads);
    set("comfyd_uploads_waiting_bytes", "Bytes of those contents.", stores.upload_bytes);
    set("comfyd_uploads_oldest_seconds",
        "For how long the oldest of those contents has waited.",
        std::max(0.0, std::chrono::duration<double>(readings.taken_at - oldest).count()));
    set("comfyd_store_removals_waiting",
        "Contents that are to be removed from a store.",
        stores.removals);

    show_breaker("ledger", readings.ledger.breaker, gauges);
    for (const auto& [sender, state] : readings.senders) {
        show_breaker(sender, state, gauges);
    }
    for (const auto& [store, state] : readings.stores_elsewhere) {
        show_breaker("store:" + store, state, gauges);
        gauges.set(
            "comfyd_store_breaker_state",
            "How a store elsewhere is asked: 0 closed, 1 open (it rests), 2 half-open (it is "
            "tried).",
            {{"store", store}},
            static_cast<double>(state)
        );
    }

    set("comfyd_http_connections", "Open connections.", readings.server.connections_open);
    set("comfyd_http_connections_accepted",
        "Connections accepted since start.",
        readings.server.connections_total);
    set("comfyd_http_connections_refused",
        "Connections refused since start.",
        readings.server.connections_refused);
    set("comfyd_http_body_bytes", "Bytes of request bodies in memory.", readings.server.bodies_bytes
    );
    set("comfyd_log_dropped_lines",
        "Lines of the log that nobody read in time, since start.",
        log::dropped());
    set("comfyd_event_streams", "Open event streams.", readings.queue.event_streams);
}

}  // namespace comfyd::app
