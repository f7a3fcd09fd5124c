// The one ComfyUI that an agent is for: started, watched, started again when it ends or hangs, and
// now and then made anew while it has nothing to do. Or one that somebody else runs, which is only
// watched.
//
// One executor: call it only there.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "agent/last_words.hpp"
#include "agent/log_file.hpp"
#include "agent/program.hpp"
#include "base/child_process.hpp"
#include "base/task.hpp"
#include "net/client.hpp"

namespace comfyd::agent {

struct ComfyUiTimes {
    Millis pause_min{1'000};  // from a crash to the next start; doubles
    Millis pause_max{60'000};
    Millis crash_window{600'000};
    int crashes_max = 5;        // in that time: it is started no more
    Millis start_max{600'000};  // to its first answer
    Millis look{5'000};         // between questions whether it is there
    Millis look_starting{500};
    Millis answer_max{10'000};   // it stalls for a second now and then
    Millis silent_max{60'000};   // without an answer: it hangs
    Millis quiet{5'000};         // without work, before it is made anew
    Millis rest_asked{600'000};  // for so long it asks for that
    Millis grace{5'000};         // from SIGTERM to SIGKILL
};

struct ComfyUiOptions {
    std::string address{};  // host:port of one that somebody else runs; empty: ours
    // What is run to have one on that port of loopback.
    std::function<Result<ChildCommand>(std::uint16_t port)> command{};
    // Has what it needs before it is started for the first time; empty: all is there.
    std::function<Task<Result<>>(std::stop_token stop)> furnish{};
    std::filesystem::path home{};         // where it begins
    std::filesystem::path log{};          // gets what it prints
    std::uint16_t port = 0;               // wanted; 0: any
    std::uint64_t recycle_jobs = 0;       // made anew after so many; 0: never
    std::uint64_t recycle_ram_bytes = 0;  // likewise when it holds so much
    ComfyUiTimes times{};
};

class ComfyUi {
public:
    enum class State { starting, ready, restarting, failed };

    // `changed`: of what state() and its neighbours tell.
    ComfyUi(
        Executor executor, net::Client& http, ComfyUiOptions options, std::function<void()> changed
    );
    ~ComfyUi();
    ComfyUi(const ComfyUi&) = delete;
    ComfyUi& operator=(const ComfyUi&) = delete;

    void start(TaskGroup& group);
    // SIGTERM, and SIGKILL to what does not go. Returns when nothing of it is left.
    Task<> stop();

    // Kills it with all that it started, and starts it anew: also one that has failed.
    void restart(std::string reason);
    // Something that is lost with the process is asked for now, or a prompt was queued.
    void note_work(bool is_prompt);

    State state() const { return state_; }
    const std::string& reason() const { return reason_; }  // of a state that is not ready
    std::string url() const;                               // empty: it has no port yet
    pid_t pid() const { return program_ ? program_->pid() : 0; }
    std::uint64_t restarts() const { return restarts_; }
    const std::string& version() const { return version_; }
    std::uint64_t jobs() const { return jobs_; }  // queued since it was started
    // Prompts that wait or run, as it last told.
    std::int64_t queued() const { return queued_; }
    bool is_ours() const { return options_.address.empty(); }
    // It is to be made anew and has work: whoever gives it work lets it have a rest. Asked for some
    // minutes only, as others may go on all the same.
    bool wants_rest() const;
    // For who waits for the end of what it runs.
    void look_often();
    // Since when it has no prompt and nobody has asked for a result.
    Millis idle_for() const;
    // For a while.
    bool is_idle() const { return queued_ == 0 && idle_for() >= options_.times.quiet; }

private:
    using Ticks = std::chrono::steady_clock;

    Task<> run();
    Task<bool> furnish();
    Task<> run_once();
    Task<> rest_in_failure(std::string reason);
    Task<> watch();
    Task<> look();
    Task<Result<std::string>> ask(std::string target);
    void judge_silence();
    std::string why_anew() const;
    void recycle_if_due();
    void end_program(std::string reason, bool is_crash);
    Millis count_crash();
    void set(State state, std::string reason);

    Executor executor_;
    net::Client& http_;
    const ComfyUiOptions options_;
    std::function<void()> changed_;
    std::optional<LogFile> log_;
    LastWords last_words_;  // of this life
    std::unique_ptr<Program> program_;
    State state_ = State::starting;
    std::string reason_;
    std::uint16_t port_ = 0;
    std::uint64_t restarts_ = 0;
    std::string version_;
    std::uint64_t jobs_ = 0;
    std::int64_t queued_ = 0;
    std::deque<Ticks::time_point> crashes_;  // the latest
    Ticks::time_point started_{};
    Ticks::time_point answered_{};
    Ticks::time_point worked_{};
    std::optional<Ticks::time_point> due_since_{};  // to be made anew
    std::uint64_t life_ = 0;                        // how many were started
    bool ended_for_good_ = false;                   // it was us, and no crash
    std::string why_ended_;                         // by us; empty: it ended by itself
    std::stop_source furnishing_;
    bool stopping_ = false;
    bool running_ = false;
    bool looks_often_ = false;
    Signal wake_;
    Signal look_soon_;
};

std::string_view to_string(ComfyUi::State state);

}  // namespace comfyd::agent
