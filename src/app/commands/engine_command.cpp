#include "app/commands/engine_command.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <thread>

#include "app/commands/cli.hpp"
#include "app/commands/stop_signals.hpp"
#include "base/confinement.hpp"
#include "base/log.hpp"
#include "base/sandbox.hpp"
#include "net/open_files.hpp"
#include "standalone/server.hpp"

namespace comfyd::app {
namespace {

int complain(const Error& error) {
    std::fprintf(stderr, "comfyd: %s\n", error.message.c_str());
    const bool usage = error.code == Code::config_invalid || error.code == Code::invalid_argument;
    return usage ? kExitUsage : kExitUnavailable;
}

Result<standalone::Options> to_options(const EngineFlags& flags) {
    auto endpoint = net::Endpoint::parse(flags.listen);
    if (!endpoint) {
        return fail(std::move(endpoint.error()));
    }
    if (!endpoint->is_loopback() && !flags.allow_remote) {
        return fail(
            Code::config_invalid,
            "ComfyUI's protocol has no authentication: whoever reaches " + endpoint->to_string() +
                " may run workflows and read and replace files. Listen on 127.0.0.1, put "
                "`comfyd serve` with API keys in front, or say --allow-remote where the network "
                "is trusted"
        );
    }
    standalone::Options options;
    options.listen = *endpoint;
    options.connections_max = std::min(
        options.connections_max, net::connections_within(net::raise_open_files_limit(), 0)
    );
    options.data = flags.data;
    options.frontend = flags.frontend;
    options.threads = flags.threads;
    options.memory_bytes_max = flags.memory_mb << 20;
    if (flags.supervisor != 0) {
        constexpr std::size_t kHistoryMax = 64;  // the gateway looks at each once, at its end
        options.behind_gateway = true;
        options.history_max = kHistoryMax;
    }
    std::error_code error;
    if (!flags.frontend.empty() &&
        !std::filesystem::is_regular_file(options.frontend / "index.html", error)) {
        return fail(
            Code::config_invalid, "--frontend: there is no index.html in '" + flags.frontend + "'"
        );
    }
    return options;
}

// Beside the results of nodes: the program itself, its threads, bodies of requests, the history.
std::uint64_t memory_reserve() {
    constexpr std::uint64_t kProgram = 2ULL << 30;
    constexpr std::uint64_t kThread = 16ULL << 20;
    return kProgram + kThread * std::thread::hardware_concurrency();
}

// As the engine of a gateway: it computes what strangers ask for, and nothing that this breaks may
// be the gateway's. Returns what the kernel cannot do.
Result<std::vector<std::string>> confine_to(
    const standalone::Options& options, const EngineFlags& flags
) {
    std::error_code error;
    std::filesystem::create_directories(options.data, error);
    if (!options.listen.socket.empty()) {
        ::unlink(options.listen.socket.c_str());  // of the engine before this one
    }
    Confinement limits;
    limits.parent = flags.supervisor;
    limits.has_walls = flags.sandbox != to_string(SandboxLevel::minimal);
    limits.memory_bytes_max = options.memory_bytes_max + memory_reserve();
    // A job's time is what it may compute; meanwhile the gateway answers.
    limits.niceness = 5;
    limits.folders = {options.data, std::filesystem::path(options.listen.socket).parent_path()};
    return confine(limits);
}

}  // namespace

int run_engine(const EngineFlags& flags) {
    auto options = to_options(flags);
    if (!options) {
        return complain(options.error());
    }
    std::vector<std::string> unconfined;
    if (flags.supervisor != 0) {
        auto confined = confine_to(*options, flags);
        if (!confined) {
            return complain(confined.error());
        }
        unconfined = std::move(*confined);
    }
    static const std::map<std::string, log::Level> kLevels{
        {"debug", log::Level::debug},
        {"info", log::Level::info},
        {"warning", log::Level::warning},
        {"error", log::Level::error},
    };
    log::configure(kLevels.at(flags.log_level), log::Format::automatic);
    for (const std::string& missing : unconfined) {
        log::error("the engine is less confined than it could be", {{"missing", missing}});
    }
    if (flags.sandbox_required && !unconfined.empty()) {
        return kExitUnavailable;
    }
    const StopSignals stop_signals;
    auto server = standalone::Server::start(std::move(*options));
    if (!server) {
        return complain(server.error());
    }
    if (flags.supervisor == 0) {
        std::printf("listening on %s\n", (*server)->url().c_str());
        std::fflush(stdout);
    }
    stop_signals.wait();
    (*server)->stop();
    return kExitOk;
}

}  // namespace comfyd::app
