// The helper processes: at most so many, each with one file at a time, and a bounded number of
// files that wait. They are started when they are first needed, stay, and are renewed now and then.
// Any thread.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <variant>
#include <vector>

#include "base/mutex.hpp"
#include "base/pool.hpp"
#include "base/task.hpp"
#include "media/helper_process.hpp"

namespace comfyd::media {

struct HelpersOptions {
    ChildCommand command{};  // `comfyd media`
    unsigned processes_max = 1;
    std::size_t waiting_max = 1'000;  // files
    Millis time_max{30'000};          // of one file
};

// Where the bytes of a file are.
using Source = std::variant<std::filesystem::path, std::shared_ptr<const std::string>>;

class Helpers {
public:
    explicit Helpers(HelpersOptions options);
    // Ends the processes. REQUIRES: nobody waits for an answer.
    ~Helpers();

    // Code::queue_full: too many files wait. Code::execution_timeout: it took too long.
    // Code::worker_lost: the helper died of it. Code::worker_unavailable: there is none.
    // Code::output_unavailable: the file cannot be opened. Code::cancelled: `stop`.
    Task<Result<Answer>> ask(Order order, Source source, std::stop_token stop);

    // Of the processes that run now; for tests.
    std::vector<pid_t> pids() const;

private:
    Result<Answer> ask_one(const Order& order, const Source& source, const std::stop_token& stop);
    Result<std::unique_ptr<HelperProcess>> take();

    const HelpersOptions options_;
    std::atomic<std::size_t> files_{0};  // that wait or are worked on
    mutable Mutex mutex_;
    std::vector<std::unique_ptr<HelperProcess>> idle_ COMFYD_GUARDED_BY(mutex_);
    std::vector<pid_t> busy_ COMFYD_GUARDED_BY(mutex_);
    Pool pool_;  // one thread for each process; joined first
};

}  // namespace comfyd::media
