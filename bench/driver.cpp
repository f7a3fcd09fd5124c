// The parts of the benchmark that wrk cannot do: `bench-driver COMMAND …`. Prints one line of
// key=value results each.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "direct.hpp"
#include "listeners.hpp"
#include "load.hpp"
#include "placement.hpp"
#include "support/comfyd.hpp"
#include "tools.hpp"

namespace {

using namespace comfyd;
using namespace comfyd::bench;
using namespace comfyd::support;

// What a program that drives ComfyUI itself does for one picture.
std::vector<double> drive_directly(const std::string& worker, int count) {
    DirectWorker comfyui(worker);
    std::vector<double> times;
    for (int i = 0; i < count; ++i) {
        const auto start = SteadyClock::now();
        const std::string id = comfyui.run(text_to_image("direct " + std::to_string(i)));
        const Reply history = comfyui.http().get("/history/" + id);
        const json::value file = history.json_at("/" + id + "/outputs/9/images/0/filename");
        comfyui.http().get("/view?type=output&filename=" + std::string(file.as_string()));
        times.push_back(ms_since(start));
    }
    return times;
}

std::vector<double> drive_through_comfyd(const std::string& url, int count) {
    Http http(url);
    std::vector<double> times;
    for (int i = 0; i < count; ++i) {
        const auto start = SteadyClock::now();
        const Reply reply = http.post_json(
            "/api/v2/jobs",
            json::object{{"workflow", text_to_image("through " + std::to_string(i))}}
        );
        const std::string id(reply.json_at("/id").as_string());
        auto stream = http.events("/api/v2/jobs/" + id + "/events");
        stream->wait_for([](const SseEvent& event) {
            return event.data.find("\"succeeded\"") != std::string::npos;
        });
        const std::string link(http.get("/api/v2/jobs/" + id).json_at("/outputs/0/url").as_string()
        );
        http.get(link.substr(url.size()));
        times.push_back(ms_since(start));
    }
    return times;
}

int overhead(const std::string& url, const std::string& worker, int count) {
    drive_directly(worker, 50);
    drive_through_comfyd(url, 50);
    const auto direct = drive_directly(worker, count);
    const auto through = drive_through_comfyd(url, count);
    std::printf(
        "direct_p50_ms=%.3f through_p50_ms=%.3f overhead_p50_ms=%.3f direct_p99_ms=%.3f "
        "through_p99_ms=%.3f\n",
        percentile(direct, 0.5),
        percentile(through, 0.5),
        percentile(through, 0.5) - percentile(direct, 0.5),
        percentile(direct, 0.99),
        percentile(through, 0.99)
    );
    return 0;
}

int utilisation(const std::string& url, int workers, int job_ms, int count) {
    const auto completed = [&](Http& http) {
        return http.get("/api/v1/queue/metrics").json_at("/completed_tasks").to_number<int>();
    };
    Http http(url);
    const int before = completed(http);
    const auto start = SteadyClock::now();
    std::atomic<int> next{0};
    std::vector<std::thread> clients;
    for (int t = 0; t < 4; ++t) {
        clients.emplace_back([&] {
            BareClient client(url);
            for (int i = next++; i < count; i = next++) {
                client.post(
                    "/api/v2/jobs",
                    json::serialize(
                        json::object{{"workflow", text_to_image("u " + std::to_string(i))}}
                    )
                );
            }
        });
    }
    for (std::thread& client : clients) {
        client.join();
    }
    const double submitted_ms = ms_since(start);
    while (completed(http) - before < count) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    const double wall_ms = ms_since(start);
    const double ideal_ms = static_cast<double>(count) * job_ms / workers;
    std::printf(
        "jobs=%d submitted_ms=%.0f wall_ms=%.0f ideal_ms=%.0f utilisation_percent=%.1f\n",
        count,
        submitted_ms,
        wall_ms,
        ideal_ms,
        100 * ideal_ms / wall_ms
    );
    return 0;
}

// Plain sockets: ten thousand coroutines of our own would be the larger part of what is measured.
int streams(const std::string& url, const std::string& job, int count) {
    raise_limit_of_files();
    boost::asio::io_context context;
    const auto endpoint = endpoint_of(url);
    const std::string request =
        "GET /api/v2/jobs/" + job +
        "/events HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n";
    std::vector<boost::asio::ip::tcp::socket> sockets;
    for (int i = 0; i < count; ++i) {
        sockets.emplace_back(context);
        sockets.back().connect(endpoint);
        boost::asio::write(sockets.back(), boost::asio::buffer(request));
        char first[1];
        boost::asio::read(sockets.back(), boost::asio::buffer(first));
    }
    std::printf("open=%d\n", count);
    std::fflush(stdout);
    std::getchar();
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    if (arguments.size() == 4 && arguments[0] == "overhead") {
        return overhead(arguments[1], arguments[2], std::stoi(arguments[3]));
    }
    if (arguments.size() == 5 && arguments[0] == "utilisation") {
        return utilisation(
            arguments[1], std::stoi(arguments[2]), std::stoi(arguments[3]), std::stoi(arguments[4])
        );
    }
    if (arguments.size() == 4 && arguments[0] == "streams") {
        return streams(arguments[1], arguments[2], std::stoi(arguments[3]));
    }
    if (arguments.size() == 6 && arguments[0] == "load") {
        return load({
            .url = arguments[1],
            .process = arguments[2],
            .streams = std::stoi(arguments[3]),
            .rate = std::stoi(arguments[4]),
            .seconds = std::stoi(arguments[5]),
        });
    }
    if (arguments.size() == 6 && arguments[0] == "listeners") {
        return listeners({
            .url = arguments[1],
            .process = arguments[2],
            .sockets = std::stoi(arguments[3]),
            .rate = std::stoi(arguments[4]),
            .seconds = std::stoi(arguments[5]),
        });
    }
    if (arguments.size() >= 7 && arguments[0] == "placement") {
        const ManyModels setup{
            .run_ms = std::stoi(arguments[2]),
            .load_ms = std::stoi(arguments[3]),
            .models = std::stoi(arguments[4]),
            .jobs = std::stoi(arguments[5]),
            .workers = {arguments.begin() + 6, arguments.end()}
        };
        return arguments[1] == "pressure" ? place_by_pressure(setup)
                                          : place_many_models(arguments[1], setup);
    }
    std::fprintf(
        stderr,
        "usage: bench-driver overhead URL WORKER_URL COUNT\n"
        "       bench-driver utilisation URL WORKERS JOB_MS COUNT\n"
        "       bench-driver streams URL JOB COUNT\n"
        "       bench-driver load URL PROCESS STREAMS SUBMITS_PER_S SECONDS\n"
        "       bench-driver listeners URL PROCESS SOCKETS SUBMITS_PER_S SECONDS\n"
        "       bench-driver placement URL|pressure RUN_MS LOAD_MS MODELS JOBS WORKER_URL...\n"
    );
    return 2;
}
