#include "media/serve.hpp"

#include <unistd.h>

#include <ctime>

#include "base/confinement.hpp"
#include "base/deadline.hpp"
#include "media/make.hpp"
#include "media/mapped_file.hpp"
#include "media/wire.hpp"

extern "C" {
#include <libavutil/mem.h>
}

namespace comfyd::media {
namespace {

constexpr std::uint64_t kOpenFilesMax = 16;
// A limit that a process which does its work never comes to: it ends by itself long before.
constexpr std::uint64_t kCpuSecondsMax = 1'200;
constexpr std::clock_t kCpuSecondsEnough = 600;

}  // namespace

Confinement confinement_of(const ServeOptions& options) {
    Confinement limits;
    limits.parent = options.parent;
    limits.memory_bytes_max = options.memory_bytes_max;
    limits.cpu_seconds_max = kCpuSecondsMax;
    limits.open_files_max = kOpenFilesMax;
    limits.reads_system = false;
    limits.only_computes = true;
    return limits;
}

int serve(const ServeOptions& options) {
    if (!confine(confinement_of(options))) {
        return 1;
    }
    av_max_alloc(static_cast<std::size_t>(options.memory_bytes_max));
    bool goes_on = true;
    for (int files = 1; goes_on; ++files) {
        auto received = receive_order(STDIN_FILENO);
        if (!received) {
            return 0;
        }
        const MappedFile file(received->file.number());
        const Deadline end = Deadline::in(options.time_max);
        Answer answer = make(received->order, file.bytes(), [end] { return end.has_passed(); });
        answer.is_last =
            files >= options.files_max || std::clock() / CLOCKS_PER_SEC >= kCpuSecondsEnough;
        goes_on = send_answer(STDIN_FILENO, answer) && !answer.is_last;
    }
    return 0;
}

}  // namespace comfyd::media
