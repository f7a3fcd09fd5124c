#include "listeners.hpp"

#include <array>
#include <atomic>
#include <cstdio>
#include <fstream>
#include <memory>
#include <sstream>
#include <thread>

#include "base/json.hpp"
#include "support/comfyd.hpp"
#include "tools.hpp"

namespace comfyd::bench {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr int kClients = 8;
struct Counts {
    std::atomic<int> open{0};
    std::atomic<std::uint64_t> bytes{0};
};

// Asks once and reads whatever comes.
class Listener : public std::enable_shared_from_this<Listener> {
public:
    Listener(asio::io_context& context, std::string request, Counts& counts)
        : socket_(context), request_(std::move(request)), counts_(counts) {}

    void listen(const asio::ip::tcp::endpoint& server) {
        socket_.connect(server);
        asio::write(socket_, asio::buffer(request_));
        read();
    }

private:
    void read() {
        socket_.async_read_some(
            asio::buffer(piece_),
            [self = shared_from_this()](error_code error, std::size_t count) {
                if (!error) {
                    self->counts_.open += std::exchange(self->is_open_, true) ? 0 : 1;
                    self->counts_.bytes += count;
                    self->read();
                } else {
                    self->counts_.open -= std::exchange(self->is_open_, false) ? 1 : 0;
                }
            }
        );
    }

    asio::ip::tcp::socket socket_;
    const std::string request_;
    bool is_open_ = false;
    Counts& counts_;
    std::array<char, 4096> piece_{};
};

std::string socket_request(int number) {
    return "GET /ws?clientId=listener-" + std::to_string(number) +
           " HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
           "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";
}

std::string stream_request(const std::string& job) {
    return "GET /api/v2/jobs/" + job +
           "/events HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n"
           "Connection: close\r\n\r\n";
}

std::string submit(BareClient& client, int number) {
    const json::object body{
        {"workflow", support::text_to_image("listened " + std::to_string(number))}
    };
    const auto made = json::parse_object(client.post("/api/v2/jobs", json::serialize(body)));
    return made ? std::string(made->at("id").as_string()) : std::string();
}

double cpu_seconds(const std::string& process) {
    std::ifstream file("/proc/" + process + "/stat");
    std::stringstream text;
    text << file.rdbuf();
    std::istringstream fields(text.str().substr(text.str().rfind(')') + 2));
    std::string skipped;
    for (int i = 0; i < 11; ++i) {
        fields >> skipped;
    }
    double user = 0;
    double system = 0;
    fields >> user >> system;
    return (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

}  // namespace

int listeners(const Listeners& wanted) {
    raise_limit_of_files();
    Counts sockets;
    Counts streams;
    asio::io_context context;
    const auto work = asio::make_work_guard(context);
    std::thread reader([&context] { context.run(); });
    const auto server = endpoint_of(wanted.url);
    for (int i = 0; i < wanted.sockets; ++i) {
        std::make_shared<Listener>(context, socket_request(i), sockets)->listen(server);
    }
    while (sockets.open < wanted.sockets) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    const std::uint64_t bytes_before = sockets.bytes;
    const double cpu_before = cpu_seconds(wanted.process);
    const auto begun = SteadyClock::now();
    const int submits = wanted.rate * wanted.seconds;
    std::atomic<int> next{0};
    std::vector<std::thread> clients;
    for (int i = 0; i < kClients; ++i) {
        clients.emplace_back([&] {
            BareClient client(wanted.url);
            for (int number = next++; number < submits; number = next++) {
                std::this_thread::sleep_until(
                    begun + std::chrono::microseconds(1'000'000LL * number / wanted.rate)
                );
                const std::string request = stream_request(submit(client, number));
                std::make_shared<Listener>(context, request, streams)->listen(server);
            }
        });
    }
    for (std::thread& client : clients) {
        client.join();
    }
    const double seconds = ms_since(begun) / 1000;
    const auto mb = [seconds](std::uint64_t bytes) {
        return static_cast<double>(bytes) / (1 << 20) / seconds;
    };
    std::printf(
        "sockets=%d submits_per_s=%.0f sockets_mb_per_s=%.2f streams_mb_per_s=%.2f "
        "streams_open=%d cores=%.2f\n",
        sockets.open.load(),
        submits / seconds,
        mb(sockets.bytes - bytes_before),
        mb(streams.bytes),
        streams.open.load(),
        (cpu_seconds(wanted.process) - cpu_before) / seconds
    );
    context.stop();
    reader.join();
    return 0;
}

}  // namespace comfyd::bench
