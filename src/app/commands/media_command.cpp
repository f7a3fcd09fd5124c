#include "app/commands/media_command.hpp"

#include <chrono>

#include "media/serve.hpp"

namespace comfyd::app {
namespace {

// What a codec has leaked, or an earlier file has left behind, does not stay for long.
constexpr int kFilesMax = 200;

}  // namespace

int run_media(const MediaFlags& flags) {
    return media::serve(
        {flags.supervisor,
         flags.memory_mb << 20,
         std::chrono::milliseconds(flags.time_ms),
         kFilesMax}
    );
}

}  // namespace comfyd::app
