// comfy-double: ComfyUI stand-ins as a process of their own, for tests that kill it and for
// benchmarks.
#include <algorithm>
#include <csignal>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>

#include "net/io_threads.hpp"
#include "net/server.hpp"
#include "support/comfy_double.hpp"

namespace {

using comfyd::support::ComfyDouble;
using comfyd::support::DoubleOptions;

struct Arguments {
    std::string listen = "127.0.0.1:0";
    int count = 1;
    std::int64_t delay_ms = 0;
    std::int64_t load_ms = 0;
    std::string nodes_file{};
    std::string faults{};
    unsigned threads = 0;
    DoubleOptions options{};
};

void declare(CLI::App& app, Arguments& arguments) {
    app.add_option(
           "--listen",
           arguments.listen,
           "Address of the first double; the next ones use the next ports"
    )
        ->capture_default_str();
    app.add_option("--count", arguments.count, "How many doubles")->check(CLI::Range(1, 4096));
    app.add_option("--delay-ms", arguments.delay_ms, "Duration of a prompt")
        ->check(CLI::NonNegativeNumber);
    app.add_option("--load-ms", arguments.load_ms, "Further time for another checkpoint")
        ->check(CLI::Range(0, 3'600'000));
    app.add_option("--version", arguments.options.version, "ComfyUI version to behave like")
        ->capture_default_str();
    app.add_option("--nodes", arguments.nodes_file, "object_info JSON with further node classes")
        ->check(CLI::ExistingFile);
    app.add_option(
        "--model",
        arguments.options.models,
        "A further name of a checkpoint and a LoRA (repeatable)"
    );
    app.add_option(
        "--models",
        arguments.options.models_folder,
        "Folder whose checkpoints and loras are listed, too"
    );
    app.add_option("--gpu", arguments.options.gpu, "The name of its GPU")->capture_default_str();
    app.add_option("--vram-bytes", arguments.options.vram_total, "The memory of its GPU")
        ->check(CLI::NonNegativeNumber);
    app.add_option("--ram-bytes", arguments.options.ram_total, "Main memory")
        ->check(CLI::NonNegativeNumber);
    app.add_option("--output-bytes", arguments.options.output_bytes, "Least size of a picture");
    app.add_option(
        "--journal",
        arguments.options.journal,
        "File that gets a line per start and end of an execution"
    );
    app.add_option(
        "--faults", arguments.faults, "Faults from the start, as for POST /_double/faults"
    );
    app.add_option(
        "--threads", arguments.threads, "Threads that share the doubles; default one per processor"
    );
    app.add_flag(
        "--cache", arguments.options.cache, "Answer repeated prompts from the result cache"
    );
    app.add_flag("--batch-pack", arguments.options.batch_pack, "Have the node pack comfyd");
    app.add_flag("--previews", arguments.options.previews, "Send a preview frame per sampler step");
}

// False when a value is wrong; the reason is on stderr.
bool complete(Arguments& arguments) {
    arguments.options.delay = comfyd::Millis(arguments.delay_ms);
    arguments.options.load = comfyd::Millis(arguments.load_ms);
    arguments.options.exit_on_crash = true;
    if (!arguments.nodes_file.empty()) {
        std::ifstream file(arguments.nodes_file);
        arguments.options.nodes_json.assign(std::istreambuf_iterator<char>(file), {});
    }
    if (!arguments.faults.empty()) {
        const auto faults = comfyd::json::parse_object(arguments.faults);
        const auto set = faults ? arguments.options.faults.update(*faults)
                                : comfyd::Result<>(comfyd::fail(faults.error()));
        if (!set) {
            std::cerr << "--faults: " << set.error().message << "\n";
            return false;
        }
    }
    const auto endpoint = comfyd::net::Endpoint::parse(arguments.listen);
    if (!endpoint) {
        std::cerr << "--listen: " << endpoint.error().message << "\n";
        return false;
    }
    arguments.options.host = endpoint->host;
    arguments.options.port = endpoint->port;
    return true;
}

void serve(const Arguments& arguments) {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);

    const unsigned wanted =
        arguments.threads ? arguments.threads : std::max(std::thread::hardware_concurrency(), 1U);
    comfyd::net::IoThreads threads(std::min(wanted, static_cast<unsigned>(arguments.count)));
    threads.start();
    const auto contexts = threads.contexts();
    {
        std::vector<std::unique_ptr<ComfyDouble>> doubles;
        for (std::size_t i = 0; i < static_cast<std::size_t>(arguments.count); ++i) {
            auto options = arguments.options;
            if (options.port != 0) {
                options.port = static_cast<std::uint16_t>(options.port + i);
            }
            doubles.push_back(
                std::make_unique<ComfyDouble>(*contexts[i % contexts.size()], std::move(options))
            );
            doubles.back()->start();
            std::cout << "listening on " << doubles.back()->url() << std::endl;
        }
        int signal = 0;
        sigwait(&signals, &signal);
    }
    threads.stop();
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app("Stands in for ComfyUI servers");
    Arguments arguments;
    declare(app, arguments);
    CLI11_PARSE(app, argc, argv);
    if (!complete(arguments)) {
        return 2;
    }
    try {
        serve(arguments);
    } catch (const std::exception& exception) {
        std::cerr << exception.what() << "\n";
        return 1;
    }
    return 0;
}
