// What /metrics shows besides the counters: readings of every part, taken at each scrape.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "app/machines.hpp"
#include "assets/breaker_store.hpp"
#include "jobs/service.hpp"
#include "ledger/storage.hpp"
#include "net/server.hpp"
#include "notify/notifier.hpp"
#include "observe/metrics.hpp"

namespace comfyd::app {

struct Readings {
    jobs::QueueCounts queue;
    std::vector<jobs::WorkerInfo> workers;
    jobs::StateCounts jobs;
    ledger::StorageStats ledger;
    notify::Outbox::Counts outbox;
    notify::NotifierCounters notified;
    assets::BlobRecords::Waiting stores;
    std::map<std::string, CircuitBreaker::State> stores_elsewhere;
    std::map<std::string, CircuitBreaker::State> senders;  // of mail and short messages
    net::ServerCounters server;
    std::uint64_t engine_ends = 0;
    Time taken_at{};
};

// What is read; all of it outlives the reading.
struct Measured {
    jobs::Service& jobs;
    ledger::Storage& ledger;
    const notify::Notifier& notifier;
    const net::Server& server;
    Machines& machines;
    const std::vector<const assets::BreakerStore*>& stores;
    Clock& clock;
};

Task<Readings> take_readings(Measured parts);
void collect(const Readings& readings, observe::Metrics::Gauges& gauges);

}  // namespace comfyd::app
