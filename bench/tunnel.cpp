// bench-tunnel [BYTES [ROUNDS]]: bytes per second from an agent's ComfyUI to a client, directly and
// over a line that the agent has opened. All of it is on this machine: what is compared is the work
// of the processors, which a wire hides up to its own width. Beside it what of that work is the
// programs' own (user time: of the agent, and of client, gateway and ComfyUI together).
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>

#include "agent/calls.hpp"
#include "agent/switchboard.hpp"
#include "net/client.hpp"
#include "net/io_threads.hpp"
#include "net/server.hpp"
#include "support/process.hpp"
#include "support/temp_dir.hpp"
#include "support/wait.hpp"

namespace {

using namespace comfyd;

constexpr const char* kToken = "token-of-the-bench-0123456789";

// Stands in for a ComfyUI whose /view has a large file.
Task<> serve_file(net::Exchange& exchange, std::string path, std::uint64_t bytes) {
    net::Response response;
    if (exchange.request().path == "/view") {
        auto sent = co_await exchange.send_file(std::move(response), {path, 0, bytes});
        static_cast<void>(sent);
        co_return;
    }
    response.headers.set("Content-Type", "application/json");
    response.body = R"({"exec_info": {"queue_remaining": 0}, "system": {"comfyui_version": "0"}})";
    auto sent = co_await exchange.send(std::move(response));
    static_cast<void>(sent);
}

Task<> take_call(net::Exchange& exchange, agent::Switchboard& switchboard) {
    auto instance = switchboard.identify(exchange.request());
    if (!instance) {
        co_return;
    }
    if (exchange.request().path == agent::kControlRoute) {
        co_await switchboard.take_control(exchange, std::move(*instance));
    } else {
        co_await switchboard.take_line(exchange, std::move(*instance));
    }
}

Task<double> download(net::Client& client, std::string url, std::string socket) {
    net::ClientRequest request;
    request.url = std::move(url);
    request.socket = std::move(socket);
    request.timeout = std::chrono::minutes(10);
    request.response_bytes_max = std::uint64_t{1} << 40;
    request.headers.set("Authorization", std::string("Bearer ") + kToken);
    std::uint64_t bytes = 0;
    const auto begun = std::chrono::steady_clock::now();
    auto answer = co_await client.download(std::move(request), [&bytes](std::string_view piece) {
        bytes += piece.size();
        return Result<>();
    });
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
    if (!answer || answer->status != 200) {
        std::fprintf(
            stderr, "%s\n", answer ? answer->body.c_str() : answer.error().message.c_str()
        );
        std::exit(1);
    }
    co_return static_cast<double>(bytes) / took.count() / 1e6;
}

// Seconds in user mode, of this process and of another.
double own_work() {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_utime.tv_sec) +
           static_cast<double>(usage.ru_utime.tv_usec) / 1e6;
}
double work_of(pid_t pid) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    std::stringstream text;
    text << file.rdbuf();
    std::istringstream rest(text.str().substr(text.str().rfind(')') + 1));
    std::string word;
    constexpr int kUserTime = 12;  // fields after the name
    for (int field = 0; field < kUserTime; ++field) {
        rest >> word;
    }
    return std::stod(word) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

struct Round {
    double rate;    // MB/s
    double agent;   // seconds
    double others;  // likewise
};

double median(const std::vector<Round>& rounds, double Round::* what) {
    std::vector<double> values;
    for (const Round& round : rounds) {
        values.push_back(round.*what);
    }
    std::ranges::sort(values);
    return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
    const std::uint64_t bytes = argc > 1 ? std::stoull(argv[1]) : 1'000'000'000;
    const int rounds = argc > 2 ? std::atoi(argv[2]) : 5;
    const support::TempDir folder;
    const std::string file = folder.write("file", "");
    std::filesystem::resize_file(file, bytes);

    net::IoThread comfyui_thread("comfyui");
    net::Server comfyui({&comfyui_thread.context()}, {}, [&](net::Exchange& exchange) {
        return serve_file(exchange, file, bytes);
    });
    net::IoThread gateway_thread("gateway");
    const agent::TokenBook tokens({{"bench", kToken}});
    const auto switchboard = std::make_shared<agent::Switchboard>(tokens);
    net::Server gateway({&gateway_thread.context()}, {}, [&](net::Exchange& exchange) {
        return take_call(exchange, *switchboard);
    });
    net::IoThread client_thread("client");
    net::ClientOptions options;
    options.lines = switchboard;
    net::Client client(client_thread.executor(), options);
    comfyui_thread.start();
    gateway_thread.start();
    client_thread.start();
    const auto comfyui_at = comfyui.listen({"127.0.0.1", 0});
    const auto gateway_at = gateway.listen({"127.0.0.1", 0});

    support::Process agent(support::ProcessOptions{
        .arguments =
            {COMFYD_BINARY, "worker", "--listen", "127.0.0.1:0", "--folder", folder / "agent"},
        .environment =
            {{"COMFYUI_SERVER_ADDRESS", "127.0.0.1:" + std::to_string(comfyui_at->port)},
             {"COMFYD_GATEWAY", gateway_at->url()},
             {"COMFYD_INSTANCE", "bench"},
             {"COMFYD_WORKER_TOKEN", kToken},
             {"LOG_LEVEL", "error"}},
    });
    const auto direct_url = agent.wait_for_line("listening on ");
    if (!direct_url || !support::wait_until([&] { return switchboard->parked("bench") == 4; })) {
        std::fprintf(stderr, "the agent does not call: %s\n", agent.errors().c_str());
        return 1;
    }
    std::vector<Round> direct;
    std::vector<Round> tunnel;
    const auto measure = [&](std::string url, std::string socket) {
        const double agent_before = work_of(agent.pid());
        const double others_before = own_work();
        Round round{};
        round.rate = boost::asio::co_spawn(
                         client_thread.executor(),
                         download(client, std::move(url), std::move(socket)),
                         boost::asio::use_future
        )
                         .get();
        round.agent = work_of(agent.pid()) - agent_before;
        round.others = own_work() - others_before;
        return round;
    };
    for (int round = 0; round < rounds; ++round) {
        direct.push_back(measure(*direct_url + "/view", ""));
        tunnel.push_back(measure("http://localhost/view", "worker://bench"));
        std::printf(
            "direct %7.0f MB/s   tunnel %7.0f MB/s\n", direct.back().rate, tunnel.back().rate
        );
        std::fflush(stdout);
    }
    std::printf(
        "median: direct %.0f MB/s, tunnel %.0f MB/s, %.0f %%\n",
        median(direct, &Round::rate),
        median(tunnel, &Round::rate),
        100 * median(tunnel, &Round::rate) / median(direct, &Round::rate)
    );
    std::printf(
        "median user time: direct %.2f + %.2f s, tunnel %.2f + %.2f s (agent + others)\n",
        median(direct, &Round::agent),
        median(direct, &Round::others),
        median(tunnel, &Round::agent),
        median(tunnel, &Round::others)
    );
    agent.stop();
    gateway.stop(Millis(100));
    comfyui.stop(Millis(100));
    client_thread.stop();
    gateway_thread.stop();
    comfyui_thread.stop();
    return 0;
}
