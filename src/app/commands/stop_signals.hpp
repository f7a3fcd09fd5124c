// How a server command learns that it should stop. Made on the first thread before any other is
// started: threads inherit that the signals wait for wait().
#pragma once

#include <csignal>

namespace comfyd::app {

class StopSignals {
public:
    StopSignals() {
        sigemptyset(&signals_);
        sigaddset(&signals_, SIGINT);
        sigaddset(&signals_, SIGTERM);
        pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
        std::signal(SIGPIPE, SIG_IGN);
        // A file size limit is then an error of that write, as a full disk is.
        std::signal(SIGXFSZ, SIG_IGN);
    }

    // Returns when SIGINT or SIGTERM has come.
    void wait() const {
        int received = 0;
        sigwait(&signals_, &received);
    }

private:
    sigset_t signals_{};
};

}  // namespace comfyd::app
