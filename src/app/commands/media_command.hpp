// `comfyd media`: looks into the outputs of jobs and makes other forms of them, one file after the
// other (media/serve.hpp). For `comfyd serve` alone.
#pragma once

#include <cstdint>

namespace CLI {
class App;
}

namespace comfyd::app {

struct MediaFlags {
    int supervisor = 0;  // pid of the `comfyd serve` whose helper it is
    std::uint64_t memory_mb = 0;
    std::int64_t time_ms = 0;  // of one file
};

void add_media_flags(CLI::App& command, MediaFlags& flags);
int run_media(const MediaFlags& flags);

}  // namespace comfyd::app
