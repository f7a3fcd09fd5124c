// How far something is, for whoever runs a command. One thread.
#pragma once

#include <unistd.h>

#include <cstdio>
#include <string>

namespace comfyd::app {

// A bar that redraws itself on a terminal; a line per change otherwise.
class ProgressDisplay {
public:
    void show(const std::string& status, double fraction, const std::string& message) {
        const int percent = static_cast<int>(fraction * 100);
        if (is_terminal_) {
            constexpr int kWidth = 30;
            std::string bar(static_cast<std::size_t>(fraction * kWidth), '#');
            bar.resize(kWidth, '.');
            std::fprintf(
                stderr,
                "\r\033[K%-9s [%s] %3d %%  %.60s",
                status.c_str(),
                bar.c_str(),
                percent,
                message.c_str()
            );
            std::fflush(stderr);
        } else if (status != last_status_ || percent / 10 != last_percent_ / 10) {
            std::fprintf(stderr, "%s %d %% %s\n", status.c_str(), percent, message.c_str());
        }
        last_status_ = status;
        last_percent_ = percent;
    }
    void end() const {
        if (is_terminal_) {
            std::fputs("\r\033[K", stderr);
        }
    }

private:
    bool is_terminal_ = isatty(2) != 0;
    std::string last_status_;
    int last_percent_ = -1;
};

}  // namespace comfyd::app
