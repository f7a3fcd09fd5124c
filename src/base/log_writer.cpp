#include "base/log_writer.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <utility>

namespace comfyd::log {
namespace {

constexpr Millis kExitPatience{1000};
constexpr int kPollMs = 50;  // after which the thread looks whether it should end

}  // namespace

LogWriter::LogWriter(int file, std::size_t waiting_bytes_max, TellDropped tell_dropped)
    : file_(file), waiting_bytes_max_(waiting_bytes_max), tell_dropped_(std::move(tell_dropped)) {
    // Signals are for the threads that expect them.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    thread_ = std::thread([this] { run(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

LogWriter::~LogWriter() {
    flush(kExitPatience);
    {
        const Lock lock(mutex_);
        stopping_ = true;
    }
    changed_.notify_all();
    thread_.join();
}

void LogWriter::write(std::string line) {
    line += '\n';
    {
        const Lock lock(mutex_);
        if (waiting_bytes_ + line.size() > waiting_bytes_max_) {
            ++dropped_;
            return;
        }
        if (dropped_ > dropped_told_) {
            waiting_.push_back(
                tell_dropped_(dropped_ - std::exchange(dropped_told_, dropped_)) + '\n'
            );
            waiting_bytes_ += waiting_.back().size();
        }
        waiting_bytes_ += line.size();
        waiting_.push_back(std::move(line));
    }
    changed_.notify_all();
}

bool LogWriter::flush(Millis patience) {
    Lock lock(mutex_);
    return changed_.wait_for(lock, patience, [this]() COMFYD_REQUIRES(mutex_) {
        return waiting_bytes_ == 0;
    });
}

std::uint64_t LogWriter::dropped() const {
    const Lock lock(mutex_);
    return dropped_;
}

void LogWriter::run() {
    Lock lock(mutex_);
    while (true) {
        changed_.wait(lock, [this]() COMFYD_REQUIRES(mutex_) {
            return stopping_ || !waiting_.empty();
        });
        if (waiting_.empty() || stopping_) {
            return;
        }
        const std::string line = std::move(waiting_.front());
        waiting_.pop_front();
        lock.unlock();
        const bool written = write_whole(line);
        lock.lock();
        if (!written) {
            return;
        }
        waiting_bytes_ -= line.size();
        if (waiting_bytes_ == 0) {
            changed_.notify_all();
        }
    }
}

// A pipe that poll() calls writable takes PIPE_BUF bytes without waiting. False when the writer
// ends before somebody reads. What cannot be written at all is gone.
bool LogWriter::write_whole(std::string_view text) {
    while (!text.empty()) {
        pollfd writable{file_, POLLOUT, 0};
        const int ready = ::poll(&writable, 1, kPollMs);
        if (ready == 0) {
            const Lock lock(mutex_);
            if (stopping_) {
                return false;
            }
            continue;
        }
        const auto count =
            ::write(file_, text.data(), std::min<std::size_t>(text.size(), PIPE_BUF));
        if (count < 0 && errno != EINTR && errno != EAGAIN) {
            return true;
        }
        text.remove_prefix(count > 0 ? static_cast<std::size_t>(count) : 0);
    }
    return true;
}

}  // namespace comfyd::log
