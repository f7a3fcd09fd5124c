// comfyd and its workers, each of which can be troubled in every way that a machine, a network and
// a disk know, and the journal of what was done to them. From one thread.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "support/comfyd.hpp"
#include "support/fault_proxy.hpp"
#include "support/shared_number.hpp"

namespace comfyd::support {

// A stand-in for ComfyUI as a process of its own, behind a network that can fail.
class TroubledWorker {
public:
    TroubledWorker(std::string journal, std::chrono::milliseconds delay);

    std::string url() const;
    FaultProxy& network() { return *network_; }
    bool running() { return process_->running(); }
    void kill();  // and start anew, without its memory
    void freeze();
    void thaw();
    // comfyd may take it for lost between these, with what it runs.
    void goes_away();
    void comes_back();
    // As POST /_double/faults takes them.
    void misbehave(const std::string& faults);

private:
    void start();
    void note(const std::string& what);

    std::string journal_;
    std::chrono::milliseconds delay_;
    std::uint16_t port_ = 0;
    int away_ = 0;  // reasons for it
    std::unique_ptr<Process> process_;
    std::unique_ptr<FaultProxy> network_;
};

class Troubled {
public:
    explicit Troubled(unsigned seed);

    Comfyd& comfyd() { return *comfyd_; }
    // Some trouble of those there are, and its end later on; in words.
    std::string trouble();
    // What has lasted long enough ends.
    void end_what_is_over();
    // No trouble any more, and everything runs.
    void heal();
    std::string journal() const { return read_file(journal_); }
    std::size_t resident_mb();
    std::size_t peak_mb() const { return peak_mb_; }

private:
    using Steady = std::chrono::steady_clock;
    struct Lasting {
        Steady::time_point until;
        std::function<void()> end;
    };

    int below(int limit) { return static_cast<int>(random_() % static_cast<unsigned>(limit)); }
    std::chrono::milliseconds some_time(int least_ms, int most_ms);
    void lasts(std::chrono::milliseconds time, std::function<void()> end);
    std::string trouble_comfyd(int kind);
    std::string trouble_disk(int kind);
    std::string trouble_worker(TroubledWorker& worker, int kind);
    std::string trouble_network(TroubledWorker& worker, int kind);

    std::mt19937 random_;
    TempDir folder_;
    std::string journal_ = folder_ / "journal";
    SharedNumber disk_{folder_ / "disk"};
    SharedNumber clock_{folder_ / "clock"};
    bool disk_fails_ = false;
    std::vector<std::unique_ptr<TroubledWorker>> workers_;
    std::vector<Lasting> lasting_;
    std::size_t peak_mb_ = 0;
    std::unique_ptr<Comfyd> comfyd_;
};

}  // namespace comfyd::support
