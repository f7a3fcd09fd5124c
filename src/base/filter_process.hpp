// A program that is run once: bytes go in, bytes come out, and it ends. For what a stranger's bytes
// may break or hold up: a program that takes too long, writes too much or dies is a failure of this
// one call. Blocks: for a pool. Any thread.
#pragma once

#include <cstddef>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/child_process.hpp"
#include "base/error.hpp"
#include "base/time.hpp"

namespace comfyd {

struct FilterLimits {
    Millis time_max;
    std::size_t output_bytes_max;
    std::stop_token stop{};
};

// What the program wrote to its standard output, when it has ended with status 0. What it writes to
// its standard error goes to ours. Code::worker_unavailable: it cannot be started.
// Code::execution_timeout, Code::payload_too_large: it was ended at a limit. Code::cancelled: by
// `stop`. Code::worker_lost: it
// ended otherwise, and how.
Result<std::string> run_filter(
    const ChildCommand& command, std::string_view input, const FilterLimits& limits
);

}  // namespace comfyd
