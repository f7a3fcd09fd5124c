#include "load.hpp"

#include <array>
#include <atomic>
#include <cstdio>
#include <fstream>
#include <memory>
#include <mutex>
#include <thread>

#include <boost/asio/steady_timer.hpp>

#include "base/json.hpp"
#include "support/comfyd.hpp"
#include "tools.hpp"

namespace comfyd::bench {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr int kClients = 16;
constexpr std::chrono::minutes kReportEvery{1};
constexpr std::chrono::seconds kPause{1};  // of one who watches, between two jobs

// The latest job, which those watch who have seen the end of another.
class Latest {
public:
    void add(std::string id) {
        const std::lock_guard lock(mutex_);
        id_ = std::move(id);
    }
    std::string get() const {
        const std::lock_guard lock(mutex_);
        return id_;
    }

private:
    mutable std::mutex mutex_;
    std::string id_;
};

struct Counts {
    std::atomic<int> open{0};
    std::atomic<std::uint64_t> opened{0};
    std::atomic<std::uint64_t> read_bytes{0};
};

// Watches one job after the other for as long as its context runs.
class Follower : public std::enable_shared_from_this<Follower> {
public:
    Follower(
        asio::io_context& context,
        asio::ip::tcp::endpoint server,
        const Latest& latest,
        Counts& counts
    )
        : socket_(context),
          pause_(context),
          server_(std::move(server)),
          latest_(latest),
          counts_(counts) {}

    void follow(std::string job) {
        job_ = std::move(job);
        socket_ = asio::ip::tcp::socket(socket_.get_executor());
        socket_.async_connect(server_, [self = shared_from_this()](error_code error) {
            if (!error) {
                self->ask();
            }
        });
    }

private:
    void ask() {
        request_ = "GET /api/v2/jobs/" + job_ +
                   "/events HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n"
                   "Connection: close\r\n\r\n";
        asio::async_write(
            socket_,
            asio::buffer(request_),
            [self = shared_from_this()](error_code error, std::size_t) {
                if (!error) {
                    self->read();
                }
            }
        );
    }
    void read() {
        socket_.async_read_some(
            asio::buffer(piece_),
            [self = shared_from_this()](error_code error, std::size_t count) {
                self->took(count);
                error ? self->ended() : self->read();
            }
        );
    }

    void took(std::size_t bytes) {
        counts_.read_bytes += bytes;
        if (bytes > 0 && !is_open_) {
            is_open_ = true;
            ++counts_.open;
            ++counts_.opened;
        }
    }
    void ended() {
        counts_.open -= is_open_ ? 1 : 0;
        is_open_ = false;
        pause_.expires_after(kPause);
        pause_.async_wait([self = shared_from_this()](error_code error) {
            if (!error) {
                self->follow(self->latest_.get());
            }
        });
    }

    asio::ip::tcp::socket socket_;
    asio::steady_timer pause_;
    bool is_open_ = false;
    std::string job_;
    asio::ip::tcp::endpoint server_;
    const Latest& latest_;
    Counts& counts_;
    std::string request_;
    std::array<char, 4096> piece_{};
};

std::string submit(BareClient& client, int number) {
    const json::object body{{"workflow", support::text_to_image("load " + std::to_string(number))}};
    const auto made = json::parse_object(client.post("/api/v2/jobs", json::serialize(body)));
    return made ? std::string(made->at("id").as_string()) : std::string();
}

double resident_mb(const std::string& process) {
    std::ifstream status("/proc/" + process + "/status");
    for (std::string line; std::getline(status, line);) {
        if (line.starts_with("VmRSS:")) {
            return std::strtod(line.c_str() + 6, nullptr) / 1024;
        }
    }
    return 0;
}

}  // namespace

int load(const Load& wanted) {
    raise_limit_of_files();
    Latest latest;
    Counts counts;
    asio::io_context context;
    BareClient first(wanted.url);
    for (int i = 0; i < wanted.streams; ++i) {
        const std::string job = submit(first, -i - 1);
        latest.add(job);
        std::make_shared<Follower>(context, endpoint_of(wanted.url), latest, counts)->follow(job);
    }
    std::thread followers([&context] { context.run(); });
    while (counts.opened < static_cast<std::uint64_t>(wanted.streams)) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }

    // Each has its time, whether those before it were answered or not: a stall is seen by all whom
    // it holds up.
    const auto begun = SteadyClock::now();
    const int submits = wanted.rate * wanted.seconds;
    std::atomic<int> next{0};
    std::vector<std::vector<double>> times(kClients);
    std::vector<std::thread> clients;
    for (int i = 0; i < kClients; ++i) {
        clients.emplace_back([&, i] {
            BareClient client(wanted.url);
            for (int number = next++; number < submits; number = next++) {
                const auto due =
                    begun + std::chrono::microseconds(1'000'000LL * number / wanted.rate);
                std::this_thread::sleep_until(due);
                latest.add(submit(client, number));
                times[static_cast<std::size_t>(i)].push_back(ms_since(due));
            }
        });
    }
    for (auto report = begun + kReportEvery; report < begun + std::chrono::seconds(wanted.seconds);
         report += kReportEvery) {
        std::this_thread::sleep_until(report);
        std::printf(
            "minute=%.0f rss_mb=%.1f streams=%d\n",
            ms_since(begun) / 60'000,
            resident_mb(wanted.process),
            counts.open.load()
        );
        std::fflush(stdout);
    }
    for (std::thread& client : clients) {
        client.join();
    }
    std::vector<double> all;
    for (const auto& some : times) {
        all.insert(all.end(), some.begin(), some.end());
    }
    std::printf(
        "streams=%d opened=%llu stream_mb=%.1f submits=%zu per_s=%.0f p50_ms=%.2f p99_ms=%.2f "
        "max_ms=%.2f rss_mb=%.1f\n",
        counts.open.load(),
        static_cast<unsigned long long>(counts.opened.load()),
        static_cast<double>(counts.read_bytes.load()) / (1 << 20),
        all.size(),
        static_cast<double>(all.size()) / (ms_since(begun) / 1000),
        percentile(all, 0.5),
        percentile(all, 0.99),
        percentile(all, 1),
        resident_mb(wanted.process)
    );
    context.stop();
    followers.join();
    return 0;
}

}  // namespace comfyd::bench
