#include "app/commands/worker_command.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>

#include "agent/agent.hpp"
#include "agent/give_back.hpp"
#include "agent/log_output.hpp"
#include "agent/own_memory.hpp"
#include "app/commands/cli.hpp"
#include "app/commands/stop_signals.hpp"
#include "app/commands/worker_models.hpp"
#include "base/log.hpp"
#include "base/service_manager.hpp"
#include "base/text.hpp"
#include "net/lines.hpp"
#include "net/open_files.hpp"

namespace comfyd::app {
namespace {

int complain(const Error& error) {
    std::fprintf(stderr, "comfyd: %s\n", error.message.c_str());
    const bool usage = error.code == Code::config_invalid || error.code == Code::invalid_argument;
    return usage ? kExitUsage : kExitUnavailable;
}

tl::unexpected<Error> wrong(std::string message) {
    return fail(Code::config_invalid, std::move(message));
}

std::string variable(const char* name, std::string otherwise = {}) {
    const char* value = std::getenv(name);
    return value == nullptr || *value == '\0' ? std::move(otherwise) : value;
}

Result<std::uint64_t> number(const char* name, std::uint64_t otherwise, std::uint64_t most) {
    const std::string text = variable(name);
    std::uint64_t value = otherwise;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool is_number = parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
    if (!text.empty() && (!is_number || value > most)) {
        return wrong(std::string(name) + " must be a number from 0 to " + std::to_string(most));
    }
    return value;
}

template <class T>
Result<T> one_of(const char* name, std::string otherwise, const std::map<std::string, T>& words) {
    std::string text = variable(name, std::move(otherwise));
    std::ranges::transform(text, text.begin(), [](unsigned char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : static_cast<char>(c);
    });
    const auto found = words.find(text);
    if (found != words.end()) {
        return found->second;
    }
    std::string all;
    for (const auto& [word, value] : words) {
        all += (all.empty() ? "" : ", ") + word;
    }
    return wrong(std::string(name) + " must be one of " + all);
}

Result<net::Endpoint> endpoint_of(const WorkerFlags& flags) {
    constexpr std::uint64_t kPortDefault = 18188;
    if (!flags.listen.empty()) {
        return net::Endpoint::parse(flags.listen);
    }
    const auto port = number("SERVER_PORT", kPortDefault, 65'535);
    if (!port) {
        return fail(port.error());
    }
    const std::string host = variable("SERVER_HOST", "0.0.0.0");
    const bool is_v6 = host.find(':') != std::string::npos;
    return net::Endpoint::parse((is_v6 ? "[" + host + "]" : host) + ":" + std::to_string(*port));
}

Result<> read_comfyui(const WorkerFlags& flags, agent::AgentOptions& options) {
    agent::ComfyUiOptions& into = options.comfyui;
    into.address =
        flags.comfyui.empty() ? variable("COMFYUI_SERVER_ADDRESS", "127.0.0.1:8188") : "";
    if (!into.address.empty()) {
        const auto url = net::Url::parse("http://" + into.address);
        if (!url || url->target != "/") {
            return wrong("COMFYUI_SERVER_ADDRESS must look like 127.0.0.1:8188");
        }
    }
    const auto jobs = number("COMFYD_RECYCLE_JOBS", 0, 1'000'000'000);
    const auto megabytes = number("COMFYD_RECYCLE_RAM_MB", 0, 1'000'000'000);
    if (!jobs || !megabytes) {
        return fail(jobs ? megabytes.error() : jobs.error());
    }
    auto packs = agent::read_packs(variable("COMFYD_PACKS"));
    auto checked = packs ? agent::check_packs(*packs, {.allows_all = true}) : Result<>();
    if (!packs || !checked) {
        return wrong("COMFYD_PACKS: " + (packs ? checked.error() : packs.error()).message);
    }
    if (!packs->empty() && !into.address.empty()) {
        return wrong(
            "COMFYD_PACKS is for a ComfyUI that the agent starts: name its folder by --comfyui"
        );
    }
    options.packs = std::move(*packs);
    options.packs_folder = variable("COMFYD_PACKS_FOLDER");
    into.recycle_jobs = *jobs;
    into.recycle_ram_bytes = *megabytes << 20;
    into.port = flags.comfyui_port;
    into.times.silent_max = std::chrono::seconds(flags.hang_s);
    agent::CommandOptions& command = options.command;
    command.comfyui = flags.comfyui;
    command.python = flags.python;
    command.node_pack = flags.node_pack;
    command.arguments = flags.arguments;
    command.environment = flags.environment;
    command.sandbox = flags.sandbox == "strict"  ? SandboxLevel::strict
                      : flags.sandbox == "basic" ? SandboxLevel::basic
                                                 : SandboxLevel::minimal;
    command.readable.assign(flags.readable.begin(), flags.readable.end());
    command.writable.assign(flags.writable.begin(), flags.writable.end());
    return {};
}

Result<> read_gateway(agent::AgentOptions& into) {
    const std::string gateways = variable("COMFYD_GATEWAY");
    for (std::string_view rest = gateways; !rest.empty();) {
        const std::size_t end = std::min(rest.find(','), rest.size());
        into.gateways.emplace_back(trim(rest.substr(0, end)));
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    into.instance = variable("COMFYD_INSTANCE", "worker");
    if (!net::line_name("worker://" + into.instance)) {
        return wrong("COMFYD_INSTANCE must be a name of letters, digits, '.', '_' and '-'");
    }
    for (const std::string& gateway : into.gateways) {
        const auto url = net::Url::parse(gateway);
        if (!url || (url->scheme != "http" && url->scheme != "https")) {
            return wrong(
                "COMFYD_GATEWAY must look like https://comfyd.example.com; several nodes of one "
                "are separated by commas"
            );
        }
    }
    if (into.gateways.empty()) {
        return {};
    }
    if (into.front.token.empty() || variable("COMFYD_INSTANCE").empty()) {
        return wrong(
            "with COMFYD_GATEWAY the agent calls that comfyd: say as whom by COMFYD_INSTANCE and "
            "COMFYD_WORKER_TOKEN"
        );
    }
    return {};
}

Result<agent::AgentOptions> to_options(const WorkerFlags& flags) {
    constexpr std::uint64_t kTimeoutDefault = 300;
    agent::AgentOptions options;
    auto endpoint = endpoint_of(flags);
    if (!endpoint) {
        return fail(std::move(endpoint.error()));
    }
    options.listen = *endpoint;
    options.folder = flags.folder;
    options.ca_file = flags.ca_file;
    options.grace = std::chrono::seconds(flags.grace_s);
    options.lonely_max = std::chrono::seconds(flags.lonely_s);
    options.is_rented = !variable("COMFYD_FLEET").empty();  // by the comfyd that ordered it
    options.front.token = variable("COMFYD_WORKER_TOKEN");
    options.front.requests_max = flags.requests_max;
    constexpr std::size_t kTokenBytesMin = 16;
    if (!options.front.token.empty() && options.front.token.size() < kTokenBytesMin) {
        return wrong("COMFYD_WORKER_TOKEN must have at least 16 characters");
    }
    const auto timeout = number("DEFAULT_TIMEOUT", kTimeoutDefault, 86'400);
    if (!timeout) {
        return fail(timeout.error());
    }
    options.front.timeout_default = std::chrono::seconds(std::max<std::uint64_t>(*timeout, 1));
    if (auto read = read_comfyui(flags, options); !read) {
        return fail(std::move(read.error()));
    }
    if (auto read = read_gateway(options); !read) {
        return fail(std::move(read.error()));
    }
    auto models = read_models_environment();
    if (!models) {
        return fail(std::move(models.error()));
    }
    if (flags.comfyui.empty() && !models->wishes.empty()) {
        return wrong("COMFYD_MODELS is for a ComfyUI that this agent runs: name its --comfyui");
    }
    models->library.web.ca_file = flags.ca_file;
    options.models = std::move(*models);
    if (options.front.token.empty() && !options.listen.is_loopback()) {
        return wrong(
            "whoever reaches " + options.listen.to_string() +
            " could run any workflow: set COMFYD_WORKER_TOKEN (`openssl rand -hex 32` makes one), "
            "or listen on 127.0.0.1"
        );
    }
    return options;
}

// The last deed: what it costs, nobody knows of any more.
void give_machine_back(const std::string& ca_file) {
    const auto rented = agent::find_rented([](const char* name) { return variable(name); });
    if (!rented) {
        return;
    }
    log::warning("the machine is given back", {{"to", rented->service}});
    log::flush();
    const auto given = agent::give_back(*rented, ca_file);
    if (!given) {
        log::error(
            "the machine could not be given back: it still costs",
            {{"to", rented->service}, {"reason", given.error().message}}
        );
    }
}

}  // namespace

int run_worker(const WorkerFlags& flags) {
    // ComfyUI runs as the same user: neither our memory nor our environment is for it to read.
    ::prctl(PR_SET_DUMPABLE, 0);
    const StopSignals stop_signals;
    auto options = to_options(flags);
    if (!options) {
        return complain(options.error());
    }
    const auto level = one_of<log::Level>(
        "LOG_LEVEL",
        "info",
        {{"debug", log::Level::debug},
         {"info", log::Level::info},
         {"warning", log::Level::warning},
         {"error", log::Level::error},
         {"critical", log::Level::error}}
    );
    const auto target = one_of<agent::LogTarget>(
        "LOG_OUTPUT",
        "console",
        {{"console", agent::LogTarget::console},
         {"file", agent::LogTarget::file},
         {"both", agent::LogTarget::both}}
    );
    if (!level || !target) {
        return complain(level ? target.error() : level.error());
    }
    std::error_code ignored;
    std::filesystem::create_directories(options->folder, ignored);
    const agent::LogOutput output(*target, options->folder / "worker.log");
    log::configure(*level, log::Format::automatic);
    net::raise_open_files_limit();
    std::atomic<bool> is_lonely = false;
    options->lonely = [&is_lonely] {
        is_lonely = true;
        ::kill(::getpid(), SIGTERM);
    };
    auto agent = agent::Agent::start(std::move(*options));
    if (!agent) {
        log::flush();
        return complain(agent.error());
    }
    std::printf("listening on %s\n", (*agent)->url().c_str());
    std::fflush(stdout);
    tell_service_manager("READY=1");
    agent::give_back_code();
    stop_signals.wait();
    tell_service_manager("STOPPING=1");
    log::info("stopping");
    (*agent)->stop();
    if (is_lonely) {
        give_machine_back(flags.ca_file);
    }
    log::flush();
    return kExitOk;
}

}  // namespace comfyd::app
