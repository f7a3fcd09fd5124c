#include "base/gpus.hpp"

#include <system_error>
#include <thread>
#include <utility>

#include "base/mutex.hpp"
#include "base/nvidia_smi.hpp"
#include "base/nvml.hpp"

namespace comfyd {

struct GpuReader::State {
    explicit State(GpuSources from) : sources(std::move(from)) {}

    // On the thread of a look, of which there is one at a time.
    static void run(std::shared_ptr<State> state) {
        GpuReading reading = state->read();
        const Lock lock(state->mutex);
        state->latest = std::move(reading);
        state->looks = false;
        ++state->looks_ended;
        state->changed.notify_all();
    }

    GpuReading read() {
        std::string problem;
        if (!sources.library.empty()) {
            auto gpus = ask_library();
            if (gpus) {
                return {std::move(*gpus), "NVML", ""};
            }
            library = nullptr;  // a driver that was replaced is opened anew
            problem = gpus.error().message;
        }
        if (!sources.program.empty()) {
            auto gpus = ask_nvidia_smi(sources.program, sources.time_max);
            if (gpus) {
                return {std::move(*gpus), "nvidia-smi", ""};
            }
            problem += (problem.empty() ? "" : "; ") + gpus.error().message;
        }
        return {{}, "", problem.empty() ? "no way to ask for them is configured" : problem};
    }

    Result<std::vector<Gpu>> ask_library() {
        if (library == nullptr) {
            auto opened = Nvml::open(sources.library);
            if (!opened) {
                return fail(std::move(opened.error()));
            }
            library = std::move(*opened);
        }
        return library->look();
    }

    const GpuSources sources;
    std::unique_ptr<Nvml> library;  // of the look that is under way
    Mutex mutex;
    Condition changed;
    bool looks COMFYD_GUARDED_BY(mutex) = false;
    std::uint64_t looks_ended COMFYD_GUARDED_BY(mutex) = 0;
    GpuReading latest COMFYD_GUARDED_BY(mutex);
};

GpuReader::GpuReader(GpuSources sources) : state_(std::make_shared<State>(std::move(sources))) {}
GpuReader::~GpuReader() = default;

GpuReading GpuReader::look() const {
    State& state = *state_;
    Lock lock(state.mutex);
    const std::uint64_t before = state.looks_ended;
    if (!state.looks) {
        try {
            std::thread(&State::run, state_).detach();
        } catch (const std::system_error& error) {
            return {{}, "", std::string("no thread to look for GPUs: ") + error.what()};
        }
        state.looks = true;
    }
    // Whoever comes while another looks is told the same.
    const bool is_told = state.changed.wait_for(
        lock,
        state.sources.time_max,
        [&state, before]() COMFYD_REQUIRES(state.mutex) { return state.looks_ended != before; }
    );
    if (is_told) {
        return state.latest;
    }
    return {
        {},
        "",
        "the GPU driver did not answer within " + std::to_string(state.sources.time_max.count()) +
            " ms"
    };
}

}  // namespace comfyd
