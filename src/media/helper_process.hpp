// One helper process and the conversation with it. It is ended with this object, and after anything
// that goes wrong. Blocks: for a pool. One thread at a time; its thread outlives it, for a process
// ends with the thread that started it.
#pragma once

#include <sys/types.h>

#include <memory>

#include "base/child_process.hpp"
#include "media/wire.hpp"

namespace comfyd::media {

class HelperProcess {
public:
    // Code::worker_unavailable: it cannot be started.
    static Result<std::unique_ptr<HelperProcess>> start(const ChildCommand& command);
    ~HelperProcess();
    HelperProcess(const HelperProcess&) = delete;
    HelperProcess& operator=(const HelperProcess&) = delete;

    // What the helper makes of the file. Code::worker_lost: it has died of it, and how; or what
    // `goes_on` says. After a failure it is of no use any more.
    Result<Answer> ask(const Order& order, int file, const GoesOn& goes_on);

    pid_t pid() const { return pid_; }
    // Somebody has ended it.
    bool has_ended() const;

private:
    HelperProcess(pid_t pid, Descriptor socket) : pid_(pid), socket_(std::move(socket)) {}
    int end();

    pid_t pid_;
    Descriptor socket_;
};

}  // namespace comfyd::media
