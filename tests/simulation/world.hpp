// What there is besides the process, and outlives it.
#pragma once

#include <cstdint>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>

#include "base/virtual_time.hpp"
#include "jobs/service.hpp"
#include "ledger/memory_ledger.hpp"
#include "simulation/chance.hpp"
#include "simulation/journal.hpp"
#include "simulation/machines.hpp"
#include "simulation/rules.hpp"
#include "simulation/storage.hpp"

namespace comfyd::simulation {

struct World {
    static constexpr Time kStart = Time(Millis(1'700'000'000'000));

    World(std::uint64_t seed, bool keeps_journal)
        : time(io, kStart),
          chance(seed),
          journal(time, kStart, keeps_journal),
          stored(time),
          rules(time, stored),
          machines(time, rules, chance, journal) {}

    boost::asio::io_context io{1};
    boost::asio::executor_work_guard<Executor> keep{io.get_executor()};
    VirtualTime time;
    Chance chance;
    Journal journal;
    ledger::MemoryLedger stored;
    Rules rules;
    StorageTrouble trouble;
    Machines machines;
    jobs::ServiceOptions options;  // the same for every process
};

}  // namespace comfyd::simulation
