#include "app/engine_process.hpp"

#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "app/child_environment.hpp"
#include "engine/engine.hpp"

namespace comfyd::app {
namespace {

namespace fs = std::filesystem;

// In the engine's folder, or in one that is made for it where the path would be too long for a
// socket.
fs::path socket_in(const fs::path& folder) {
    constexpr std::size_t kPathBytesMax = sizeof(sockaddr_un::sun_path) - 1;
    const fs::path path = folder / "engine.sock";
    if (path.native().size() <= kPathBytesMax) {
        return path;
    }
    std::string made = fs::temp_directory_path() / "comfyd-XXXXXX";
    return ::mkdtemp(made.data()) == nullptr ? path : fs::path(made) / "engine.sock";
}

std::string engine_id(int number) {
    return number == 1 ? "engine" : "engine-" + std::to_string(number);
}

int engine_count(const Config& config) {
    return config.engine_enabled ? std::max(config.engine_slots, 1) : 0;
}

fs::path engine_folder(const fs::path& data, int number) {
    return fs::absolute(data / engine_id(number));
}

// `number`: 1, 2, …
fleet::EngineConfig engine_process(
    const Config& config,
    const fs::path& data,
    int number,
    std::shared_ptr<const workflow::NodeClasses> classes
) {
    fleet::EngineConfig engine;
    engine.id = engine_id(number);
    const fs::path folder = engine_folder(data, number);
    engine.socket = socket_in(folder);
    engine.pool = config.engine_pool;
    engine.classes = std::move(classes);
    // One memory for all, so that the setting says what the engine takes.
    constexpr int kMemoryMbMin = 64;
    const int memory_mb =
        std::max(config.engine_memory_mb / std::max(config.engine_slots, 1), kMemoryMbMin);
    const bool is_walled_in = config.sandbox_level == SandboxLevel::strict;
    engine.command = {
        engine.id,
        is_walled_in ? own_program().string() : "/proc/self/exe",
        {"engine",
         "--supervisor",
         std::to_string(is_walled_in ? kBubblewrapParent : ::getpid()),
         "--sandbox",
         std::string(to_string(config.sandbox_level)),
         "--listen",
         "unix:" + engine.socket,
         "--data",
         folder,
         "--memory-mb",
         std::to_string(memory_mb),
         "--log-level",
         "error"},
        child_environment()
    };
    if (config.sandbox_required) {
        engine.command.arguments.emplace_back("--sandbox-required");
    }
    if (is_walled_in) {
        const fs::path place = fs::path(engine.socket).parent_path();
        std::error_code error;
        fs::create_directories(folder, error);
        SandboxNeeds needs;
        needs.readable = {own_program()};
        needs.writable = {folder};
        if (place != folder) {
            needs.writable.push_back(place);
        }
        engine.command = in_bubblewrap(std::move(engine.command), needs, config.sandbox_bubblewrap);
    }
    return engine;
}

}  // namespace

Result<std::vector<fleet::EngineConfig>> engine_processes(
    const Config& config, const fs::path& data
) {
    std::vector<fleet::EngineConfig> engines;
    if (engine_count(config) == 0) {
        return engines;
    }
    // What they can run.
    const engine::Engine engine(engine::EngineOptions{});
    auto classes = workflow::NodeClasses::from_object_info(engine.object_info());
    if (!classes) {
        return fail(std::move(classes.error()));
    }
    for (int number = 1; number <= engine_count(config); ++number) {
        engines.push_back(engine_process(config, data, number, *classes));
    }
    return engines;
}

std::vector<fs::path> engine_folders(const Config& config, const fs::path& data) {
    std::vector<fs::path> folders;
    for (int number = 1; number <= engine_count(config); ++number) {
        folders.push_back(engine_folder(data, number));
    }
    return folders;
}

}  // namespace comfyd::app
