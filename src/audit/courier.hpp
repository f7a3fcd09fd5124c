// Brings checkpoints to a receiver elsewhere, by HTTP: each as one POST, in their order, again and
// again until it is taken. What waits is bounded; the oldest goes, for a newer checkpoint says
// more.
//
// Its executor's, but for what says otherwise.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <string>

#include "base/task.hpp"
#include "net/client.hpp"

namespace comfyd::audit {

struct CourierOptions {
    std::string url{};
    std::string token{};    // sent as "Authorization: Bearer"; empty: none
    std::string ca_file{};  // further authorities that are trusted
    Millis pause_min{1'000};
    Millis pause_max{60'000};
};

class Courier {
public:
    Courier(Executor executor, CourierOptions options);
    ~Courier();  // REQUIRES: stop() finished, or start() was never called

    void start();
    // What waits is tried once more.
    Task<> stop();

    // Any thread, until stop().
    void deliver(std::string checkpoint);

    struct Counts {
        std::uint64_t delivered = 0;
        std::uint64_t failed = 0;   // attempts
        std::uint64_t dropped = 0;  // checkpoints that never arrived
        std::uint64_t waiting = 0;
    };
    Counts counts() const;  // any thread

private:
    Task<> run();
    Task<bool> send_first();

    Executor executor_;
    const CourierOptions options_;
    net::Client client_;
    std::deque<std::string> waiting_;
    Signal changed_;
    TaskGroup group_;
    bool is_stopping_ = false;
    std::atomic<std::uint64_t> delivered_{0};
    std::atomic<std::uint64_t> failed_{0};
    std::atomic<std::uint64_t> dropped_{0};
    std::atomic<std::uint64_t> count_waiting_{0};
};

}  // namespace comfyd::audit
