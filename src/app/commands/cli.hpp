// The command line: `comfyd serve`, `comfyd run`, `comfyd engine`, `comfyd simulate`, `comfyd
// config`, `comfyd version`.
#pragma once

namespace comfyd::app {

// Exit codes, the same for every command.
enum Exit : int {
    kExitOk = 0,
    kExitFailed = 1,       // a job failed
    kExitUsage = 2,        // bad flag, configuration or workflow
    kExitStopped = 3,      // a job was cancelled or expired
    kExitUnavailable = 4,  // server or storage cannot be reached
};

int run_command_line(int argc, char** argv);

}  // namespace comfyd::app
