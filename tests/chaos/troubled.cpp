#include "chaos/troubled.hpp"

#include <algorithm>
#include <fstream>
#include <stdexcept>

namespace comfyd::support {
namespace {

using Millis = std::chrono::milliseconds;
using Fault = FaultProxy::Fault;

constexpr int kWorkers = 4;
// What is stored while the clock is ahead is late by as much where comfyd is killed before it goes
// back.
constexpr int kJumpS = 30;

// Of a worker that lies, floods and breaks, each for a few prompts. The last ones are over with a
// new process only.
const std::vector<std::string> kMisbehaviours{
    R"({"garbage": true, "prompts": 5})",
    R"({"bad_json": true, "prompts": 5})",
    R"({"duplicate": true, "out_of_order": true, "prompts": 5})",
    R"({"big_preview": 20000000, "prompts": 1})",
    R"({"lose_prompt": true, "prompts": 2})",
    R"({"ws_silence": true, "prompts": 5})",
    R"({"ws_disconnect": 3, "prompts": 5})",
    R"({"ws_refuse": true})",
    R"({"missing_output": 3})",
    R"({"http_500": 20})",
    R"({"no_response": 2})",
    R"({"slow_http": 300})",
    R"({"interrupted": true, "prompts": 2})",
    R"({"node_error": true, "prompts": 1})",
    R"({"oom": true, "prompts": 2})",
    R"({"hang_interruptible": true, "prompts": 1})",
    R"({"hang": true, "prompts": 1})",
    R"({"dead_worker": true})",
    R"({"crash_mid_job": true, "prompts": 1})",
    R"({"cuda_fault": true, "prompts": 1})",
    R"({"big_preview": 140000000, "prompts": 1})",
};
constexpr std::size_t kNeedANewProcess = 5;

}  // namespace

TroubledWorker::TroubledWorker(std::string journal, Millis delay)
    : journal_(std::move(journal)), delay_(delay) {
    start();
    network_ = std::make_unique<FaultProxy>(port_);
}

void TroubledWorker::start() {
    const std::vector<std::string> arguments{
        COMFY_DOUBLE,
        "--listen",
        "127.0.0.1:" + std::to_string(port_),
        "--delay-ms",
        std::to_string(delay_.count()),
        "--journal",
        journal_,
    };
    // The port may be taken for a moment by a connection of somebody else.
    std::optional<std::string> told;
    wait_until([&] {
        process_ = std::make_unique<Process>(arguments);
        told = process_->wait_for_line("listening on ");
        return told.has_value();
    });
    if (!told) {
        throw std::runtime_error("a worker did not start: " + process_->errors());
    }
    port_ = static_cast<std::uint16_t>(std::stoi(told->substr(told->rfind(':') + 1)));
}

std::string TroubledWorker::url() const {
    return "http://127.0.0.1:" + std::to_string(network_->port());
}

void TroubledWorker::note(const std::string& what) {
    std::ofstream(journal_, std::ios::app) << what + " " + std::to_string(process_->pid()) + "\n"
                                           << std::flush;
}

void TroubledWorker::kill() {
    process_->kill(SIGKILL);
    process_->wait();
    note("gone");
    start();
    for (int i = 0; i < away_; ++i) {
        note("away");
    }
}

void TroubledWorker::goes_away() {
    ++away_;
    note("away");
}

void TroubledWorker::comes_back() {
    --away_;
    note("back");
}

void TroubledWorker::freeze() {
    process_->kill(SIGSTOP);
}

void TroubledWorker::thaw() {
    process_->kill(SIGCONT);
}

void TroubledWorker::misbehave(const std::string& faults) {
    Http direct("http://127.0.0.1:" + std::to_string(port_));
    net::ClientRequest request;
    request.method = "POST";
    request.url = "/_double/faults";
    request.body = faults;
    request.timeout = Millis(1000);  // it may be past answering
    direct.send(std::move(request));
}

Troubled::Troubled(unsigned seed) : random_(seed) {
    ComfydOptions options;
    options.arguments = {
        "--no-engine",
        "--log-level",
        "warning",
    };
    for (const char* setting :
         {"fleet.poll_ms=100",
          "fleet.lost_after_s=1",
          "fleet.silent_after_s=5",
          "fleet.breaker_open_s=1",
          "retries.per_minute=100000"}) {
        options.arguments.insert(options.arguments.end(), {"--set", setting});
    }
    for (int i = 0; i < kWorkers; ++i) {
        workers_.push_back(std::make_unique<TroubledWorker>(journal_, Millis(5 + 40 * i)));
        options.arguments.insert(options.arguments.end(), {"--worker", workers_.back()->url()});
    }
    options.environment = {
        {"LD_PRELOAD", std::string(COMFYD_FAULTY_DISK) + ":" + COMFYD_SHIFTED_CLOCK},
        {"COMFYD_TEST_DISK", disk_.path()},
        {"COMFYD_TEST_CLOCK", clock_.path()},
    };
    comfyd_ = std::make_unique<Comfyd>(options);
}

Millis Troubled::some_time(int least_ms, int most_ms) {
    return Millis(least_ms + below(most_ms - least_ms));
}

void Troubled::lasts(Millis time, std::function<void()> end) {
    lasting_.push_back({Steady::now() + time, std::move(end)});
}

std::string Troubled::trouble() {
    const int of_all = below(20);
    const int kind = below(1000);
    TroubledWorker& worker = *workers_[static_cast<std::size_t>(below(kWorkers))];
    resident_mb();
    if (of_all < 3) {
        return trouble_comfyd(kind);
    }
    if (of_all < 5) {
        return trouble_disk(kind);
    }
    return of_all < 12 ? trouble_network(worker, kind) : trouble_worker(worker, kind);
}

std::string Troubled::trouble_comfyd(int kind) {
    if (kind % 3 == 0 || disk_fails_) {  // without a disk it would not start
        const Millis time = some_time(100, 3000);
        comfyd_->process().kill(SIGSTOP);
        lasts(time, [this] { comfyd_->process().kill(SIGCONT); });
        return "comfyd stands still for " + std::to_string(time.count()) + " ms";
    }
    comfyd_->restart();
    return "comfyd was killed";
}

std::string Troubled::trouble_disk(int kind) {
    if (kind % 3 == 0) {
        const int jump = below(2) == 0 ? kJumpS : -kJumpS;
        clock_.set(jump);
        lasts(some_time(500, 4000), [this] { clock_.set(0); });
        return "comfyd's clock jumps by " + std::to_string(jump) + " s";
    }
    const bool is_full = kind % 3 == 1;
    disk_fails_ = true;
    disk_.set(is_full ? kDiskIsFull : kDiskDoesNotSync);
    lasts(some_time(200, 2000), [this] {
        disk_.set(0);
        disk_fails_ = false;
    });
    return is_full ? "comfyd's disk is full" : "comfyd's disk does not sync";
}

std::string Troubled::trouble_network(TroubledWorker& worker, int kind) {
    const Millis time = some_time(200, 3000);
    worker.goes_away();
    lasts(time, [&worker, was_silent = kind % 6 == 3] {
        worker.network().heal();
        if (was_silent) {  // nothing else tells that what was sent is lost
            worker.network().inflict(Fault::cut);
        }
        worker.comes_back();
    });
    const std::string until = " for " + std::to_string(time.count()) + " ms";
    switch (kind % 6) {
        case 0:
            worker.network().inflict(Fault::cut);
            return "connections to a worker are cut";
        case 1:
            worker.network().inflict(Fault::half_close);
            return "connections to a worker are half closed";
        case 2:
            worker.network().delay(Millis(50));
            return "a worker is far away" + until;
        case 3:
            worker.network().inflict_on_all(Fault::swallow_both);
            return "nothing reaches a worker" + until;
        case 4:
            worker.network().inflict_after(
                FaultProxy::Way::to_server, "POST /prompt", Fault::lose_answer
            );
            return "the answer to a prompt is lost";
        default:
            worker.network().refuse(true);
            worker.network().inflict(Fault::cut);
            return "a worker refuses connections" + until;
    }
}

std::string Troubled::trouble_worker(TroubledWorker& worker, int kind) {
    if (kind % 4 == 0) {
        worker.kill();
        return "a worker was killed";
    }
    if (kind % 4 == 1) {
        const Millis time = some_time(100, 4000);
        worker.freeze();
        worker.goes_away();
        lasts(time, [&worker] {
            worker.thaw();
            worker.comes_back();
        });
        return "a worker stands still for " + std::to_string(time.count()) + " ms";
    }
    const std::size_t which = random_() % kMisbehaviours.size();
    worker.thaw();
    worker.goes_away();
    worker.misbehave(kMisbehaviours[which]);
    lasts(some_time(1000, 4000), [&worker, which] {
        worker.comes_back();
        if (which + kNeedANewProcess >= kMisbehaviours.size() || !worker.running()) {
            worker.kill();
        } else {
            worker.thaw();
            worker.misbehave(R"({"clear": true})");
        }
    });
    return "a worker misbehaves: " + kMisbehaviours[which];
}

void Troubled::end_what_is_over() {
    const auto now = Steady::now();
    std::vector<Lasting> over;
    std::erase_if(lasting_, [&](Lasting& one) {
        if (one.until > now) {
            return false;
        }
        over.push_back(std::move(one));
        return true;
    });
    for (const Lasting& one : over) {
        one.end();
    }
}

void Troubled::heal() {
    for (const Lasting& one : std::exchange(lasting_, {})) {
        one.end();
    }
    for (const auto& worker : workers_) {
        worker->network().heal();
        worker->network().inflict(Fault::cut);
        worker->thaw();
        if (!worker->running()) {
            worker->kill();
        }
        worker->misbehave(R"({"clear": true})");
    }
    comfyd_->process().kill(SIGCONT);
    resident_mb();
}

std::size_t Troubled::resident_mb() {
    const std::string status =
        read_file("/proc/" + std::to_string(comfyd_->process().pid()) + "/status");
    const auto at = status.find("VmHWM:");
    const std::size_t mb =
        at == std::string::npos ? 0 : std::strtoul(status.c_str() + at + 6, nullptr, 10) / 1024;
    peak_mb_ = std::max(peak_mb_, mb);
    return mb;
}

}  // namespace comfyd::support
