#include "agent/comfyui.hpp"

#include <signal.h>

#include <algorithm>
#include <utility>

#include "agent/comfyui_command.hpp"
#include "base/log.hpp"
#include "base/secret_names.hpp"
#include "comfy/members.hpp"

namespace comfyd::agent {
namespace {

constexpr std::uint64_t kAnswerBytesMax = 1024 * 1024;

std::int64_t queue_remaining(const json::object& answer) {
    const json::object* info = comfy::object_of(answer, "exec_info");
    return info == nullptr ? 0 : comfy::integer_of(*info, "queue_remaining");
}

}  // namespace

std::string_view to_string(ComfyUi::State state) {
    switch (state) {
        case ComfyUi::State::starting:
            return "starting";
        case ComfyUi::State::ready:
            return "ready";
        case ComfyUi::State::restarting:
            return "restarting";
        case ComfyUi::State::failed:
            break;
    }
    return "failed";
}

ComfyUi::ComfyUi(
    Executor executor, net::Client& http, ComfyUiOptions options, std::function<void()> changed
)
    : executor_(executor),
      http_(http),
      options_(std::move(options)),
      changed_(std::move(changed)),
      last_words_(secrets_in(own_environment())),
      wake_(executor),
      look_soon_(executor) {
    if (is_ours()) {
        log_.emplace(options_.log);
    }
}

ComfyUi::~ComfyUi() = default;

std::string ComfyUi::url() const {
    if (!is_ours()) {
        return "http://" + options_.address;
    }
    return port_ == 0 ? std::string() : "http://127.0.0.1:" + std::to_string(port_);
}

void ComfyUi::start(TaskGroup& group) {
    started_ = answered_ = worked_ = Ticks::now();
    if (is_ours()) {
        running_ = true;
        group.spawn("ComfyUI's process", run());
    }
    group.spawn("watch over ComfyUI", watch());
}

Task<> ComfyUi::stop() {
    stopping_ = true;
    furnishing_.request_stop();
    wake_.notify();
    if (program_) {
        program_->signal(SIGTERM);
    }
    while (running_) {
        const bool changed = co_await wake_.wait_for(options_.times.grace);
        if (!changed && program_) {
            program_->signal(SIGKILL);
        }
        const bool cancelled = co_await is_cancelled();
        if (cancelled) {
            co_return;
        }
    }
}

void ComfyUi::restart(std::string reason) {
    crashes_.clear();
    if (program_) {
        end_program(std::move(reason), false);
    } else if (is_ours() && state_ == State::failed) {
        set(State::restarting, std::move(reason));
        wake_.notify();
    }
}

void ComfyUi::note_work(bool is_prompt) {
    worked_ = Ticks::now();
    jobs_ += is_prompt ? 1 : 0;
    queued_ += is_prompt ? 1 : 0;  // until it tells by itself
}

Millis ComfyUi::idle_for() const {
    return queued_ > 0 ? Millis(0) : std::chrono::duration_cast<Millis>(Ticks::now() - worked_);
}

void ComfyUi::set(State state, std::string reason) {
    if (state == state_ && reason == reason_) {
        return;
    }
    state_ = state;
    reason_ = std::move(reason);
    log::info(
        "ComfyUI", {{"state", to_string(state_)}, {"reason", reason_}, {"restarts", restarts_}}
    );
    changed_();
}

void ComfyUi::end_program(std::string reason, bool is_crash) {
    if (program_ && why_ended_.empty()) {
        why_ended_ = std::move(reason);
        ended_for_good_ = !is_crash;
        program_->signal(SIGKILL);
    }
}

Task<> ComfyUi::run() {
    bool go_on = co_await furnish();
    while (go_on) {
        co_await run_once();
        const bool cancelled = co_await is_cancelled();
        go_on = !cancelled && !stopping_;
    }
    running_ = false;
    wake_.notify();
}

// False: it was stopped before it had all.
Task<bool> ComfyUi::furnish() {
    bool is_done = !options_.furnish;
    bool go_on = true;
    while (!is_done && go_on) {
        set(State::starting, "its node packs are being fetched");
        auto done = co_await options_.furnish(furnishing_.get_token());
        is_done = done.has_value();
        if (!is_done && !stopping_) {
            co_await rest_in_failure(std::move(done.error().message));
        }
        const bool cancelled = co_await is_cancelled();
        go_on = !cancelled && !stopping_;
    }
    co_return go_on;
}

// Until somebody wants it to be tried again.
Task<> ComfyUi::rest_in_failure(std::string reason) {
    set(State::failed, std::move(reason));
    bool go_on = true;
    while (go_on && state_ == State::failed && !stopping_) {
        go_on = co_await wake_.wait();
    }
}

// One life of the process, and the pause after it.
Task<> ComfyUi::run_once() {
    port_ = free_port(options_.port);
    if (options_.port != 0 && port_ != options_.port) {
        log::warning(
            "the port for ComfyUI is taken: it gets another one",
            {{"wanted", options_.port}, {"port", port_}}
        );
    }
    auto command = options_.command(port_);
    last_words_.forget();
    auto begun = command ? Program::start(
                               executor_,
                               *command,
                               options_.home,
                               [this](std::string_view bytes) {
                                   log_->append(bytes);
                                   last_words_.hear(bytes);
                               }
                           )
                         : Result<std::unique_ptr<Program>>(fail(command.error()));
    std::string end;
    bool is_crash = true;
    if (begun) {
        program_ = std::move(*begun);
        ++life_;
        jobs_ = 0;
        queued_ = 0;
        started_ = answered_ = worked_ = Ticks::now();
        why_ended_.clear();
        ended_for_good_ = false;
        due_since_.reset();
        set(State::starting, "ComfyUI is starting");
        end = co_await program_->wait();
        is_crash = !ended_for_good_;
        program_.reset();
        queued_ = 0;
    } else {
        end = begun.error().message;
    }
    const bool cancelled = co_await is_cancelled();
    if (cancelled || stopping_) {
        co_return;
    }
    ++restarts_;
    std::string reason = why_ended_.empty() ? "ComfyUI has ended: " + end : why_ended_;
    if (!is_crash) {
        set(State::restarting, std::move(reason));
        co_return;
    }
    if (const std::string said = last_words_.said(); !said.empty()) {
        reason += "; it said last: " + said;
    }
    const Millis pause = count_crash();
    log::warning(
        "ComfyUI has ended", {{"end", end}, {"reason", reason}, {"pause_ms", pause.count()}}
    );
    if (static_cast<int>(crashes_.size()) < options_.times.crashes_max) {
        set(State::restarting, std::move(reason));
        co_await wake_.wait_for(pause);
        co_return;
    }
    co_await rest_in_failure(reason + "; it ended " + std::to_string(crashes_.size()) + " times");
}

// How long to wait before the next start.
Millis ComfyUi::count_crash() {
    const ComfyUiTimes& times = options_.times;
    const auto now = Ticks::now();
    crashes_.push_back(now);
    while (now - crashes_.front() > times.crash_window) {
        crashes_.pop_front();
    }
    constexpr std::size_t kDoublingsMax = 16;
    return std::min<Millis>(
        times.pause_min * (1 << std::min(crashes_.size() - 1, kDoublingsMax)), times.pause_max
    );
}

Task<> ComfyUi::watch() {
    bool go_on = true;
    while (go_on && !stopping_) {
        co_await look();
        const bool is_steady = state_ == State::ready && !looks_often_;
        co_await look_soon_.wait_for(
            is_steady ? options_.times.look : options_.times.look_starting
        );
        const bool cancelled = co_await is_cancelled();
        go_on = !cancelled;
    }
}

void ComfyUi::look_often() {
    looks_often_ = true;
    look_soon_.notify();
}

Task<Result<std::string>> ComfyUi::ask(std::string target) {
    net::ClientRequest request;
    request.url = url() + target;
    request.timeout = std::min(options_.times.answer_max, options_.times.silent_max);
    request.response_bytes_max = kAnswerBytesMax;
    auto answer = co_await http_.send(std::move(request));
    if (!answer) {
        co_return fail(std::move(answer.error()));
    }
    if (answer->status != 200) {
        co_return fail(
            Code::upstream_error, target + " was answered " + std::to_string(answer->status)
        );
    }
    co_return std::move(answer->body);
}

Task<> ComfyUi::look() {
    if (url().empty() || (is_ours() && !program_)) {
        co_return;
    }
    const std::uint64_t life = life_;
    auto answer = co_await ask("/prompt");
    if (life != life_ || stopping_ || (is_ours() && !program_)) {
        co_return;
    }
    const auto document =
        answer ? json::parse_object(*answer) : Result<json::object>(fail(answer.error()));
    if (!document) {
        judge_silence();
        co_return;
    }
    answered_ = Ticks::now();
    queued_ = queue_remaining(*document);
    if (queued_ > 0) {
        worked_ = answered_;
    }
    if (state_ != State::ready) {
        auto stats = co_await ask("/system_stats");
        const auto told =
            stats ? json::parse_object(*stats) : Result<json::object>(fail(stats.error()));
        const json::object* system = told ? comfy::object_of(*told, "system") : nullptr;
        if (system == nullptr || life != life_) {
            co_return;
        }
        version_ = comfy::text_of(*system, "comfyui_version");
        set(State::ready, "");
    }
    recycle_if_due();
}

void ComfyUi::judge_silence() {
    const auto now = Ticks::now();
    const ComfyUiTimes& times = options_.times;
    const bool is_starting = state_ != State::ready;
    if (!is_ours()) {
        if (now - answered_ > times.answer_max || is_starting) {
            set(is_starting ? state_ : State::restarting,
                "ComfyUI at " + options_.address + " does not answer");
        }
        return;
    }
    if (is_starting && now - started_ > times.start_max) {
        end_program("ComfyUI did not answer in time after its start", true);
    } else if (!is_starting && now - answered_ > times.silent_max) {
        end_program("ComfyUI hung: it did not answer any more", true);
    }
}

bool ComfyUi::wants_rest() const {
    return due_since_ && Ticks::now() - *due_since_ < options_.times.rest_asked;
}

// Empty: it may go on.
std::string ComfyUi::why_anew() const {
    if (options_.recycle_jobs > 0 && jobs_ >= options_.recycle_jobs) {
        return "made anew after " + std::to_string(jobs_) + " jobs";
    }
    const std::uint64_t limit = options_.recycle_ram_bytes;
    if (limit > 0 && memory_of(program_->pid()) > limit) {
        return "made anew: it held more than " + std::to_string(limit >> 20) + " MB";
    }
    return "";
}

void ComfyUi::recycle_if_due() {
    if (!is_ours() || !program_) {
        return;
    }
    std::string why = why_anew();
    if (why.empty()) {
        due_since_.reset();
    } else if (is_idle()) {
        end_program(std::move(why), false);
    } else if (!due_since_) {
        due_since_ = Ticks::now();
        changed_();
    }
}

}  // namespace comfyd::agent
