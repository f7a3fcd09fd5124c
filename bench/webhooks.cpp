// Deliveries to ten receivers of which one is dead: out of a ledger on disk, signed, by HTTP, and
// what came of them written down. Everything is in this process, the receivers on a thread of their
// own.
//
//   bench-webhooks 50000
#include <stdlib.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>

#include "ledger/sqlite_ledger.hpp"
#include "net/io_threads.hpp"
#include "net/server.hpp"
#include "notify/channels.hpp"
#include "notify/notifier.hpp"

namespace comfyd::bench {
namespace {

constexpr int kReceivers = 10;  // the last one is dead
constexpr int kAtOnce = 256;    // accepts

struct Receivers {
    std::atomic<int> received{0};
    net::IoThreads threads{1};
    std::vector<std::unique_ptr<net::Server>> servers;
    std::vector<std::string> urls;

    static Task<> answer(Receivers& self, net::Exchange& exchange, bool is_dead) {
        auto body = co_await exchange.read_body(1'000'000);
        if (is_dead || !body) {
            co_await exchange.wait_closed(std::chrono::hours(1));
            co_return;
        }
        net::Response response;
        response.status = 204;
        auto sent = co_await exchange.send(std::move(response));
        static_cast<void>(sent);
        ++self.received;
    }
    Receivers() {
        threads.start();
        for (int i = 0; i < kReceivers; ++i) {
            const bool is_dead = i == kReceivers - 1;
            servers.push_back(std::make_unique<net::Server>(
                threads.contexts(),
                net::ServerLimits{},
                [this, is_dead](net::Exchange& exchange) {
                    return answer(*this, exchange, is_dead);
                }
            ));
            urls.push_back("http://127.0.0.1:" + std::to_string(servers.back()->listen({})->port));
        }
    }
    ~Receivers() {
        for (auto& server : servers) {
            server->stop(Millis(0));
        }
    }
};

template <class T>
T wait_for(Executor executor, Task<T> task) {
    return boost::asio::co_spawn(executor, std::move(task), boost::asio::use_future).get();
}

Task<Result<>> accept(ledger::SqliteLedger& ledger, const std::string& url, Time now) {
    jobs::Spec spec;
    spec.dialect = "bench";
    spec.workflow = "{}";
    spec.webhook.emplace();
    spec.webhook->url = url;
    spec.webhook->secret = "secret";
    spec.webhook->events = {"execution.queued"};
    jobs::NewJob job{jobs::make_job(JobId::make(now), spec, now), spec};
    auto accepted = co_await ledger.accept(std::move(job));
    co_return accepted ? Result<>() : fail(std::move(accepted.error()));
}

Task<> start(notify::Notifier& notifier) {
    notifier.start();
    co_return;
}

int run(int count) {
    auto pattern = (std::filesystem::temp_directory_path() / "bench-webhooks-XXXXXX").string();
    const std::filesystem::path folder = ::mkdtemp(pattern.data());
    SystemClock clock;
    net::IoThread thread("webhooks");
    thread.start();
    Receivers receivers;
    auto ledger = ledger::SqliteLedger::open({.path = folder / "ledger.db"}, clock);
    std::vector<std::future<Result<>>> under_way;
    for (int i = 0; i < count; ++i) {
        const std::string& url = receivers.urls[static_cast<std::size_t>(i % kReceivers)];
        under_way.push_back(boost::asio::co_spawn(
            thread.executor(), accept(**ledger, url, clock.now()), boost::asio::use_future
        ));
        if (under_way.size() == kAtOnce || i + 1 == count) {
            for (auto& one : under_way) {
                static_cast<void>(one.get());
            }
            under_way.clear();
        }
    }
    notify::ChannelOptions channels;
    channels.webhook.allow_private_addresses = true;
    notify::Notifier notifier(
        thread.executor(),
        clock,
        **ledger,
        **ledger,
        notify::make_channels(thread.executor(), clock, std::move(channels)),
        {}
    );
    const int expected = count / kReceivers * (kReceivers - 1);
    const auto begun = std::chrono::steady_clock::now();
    wait_for(thread.executor(), start(notifier));
    while (notifier.counters().delivered < static_cast<std::uint64_t>(expected)) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
    std::printf(
        "webhooks receivers=%d dead=1 delivered=%d seconds=%.2f per_second=%.0f\n",
        kReceivers,
        expected,
        seconds,
        expected / seconds
    );
    wait_for(thread.executor(), notifier.stop());
    (*ledger)->stop();
    thread.stop();
    std::filesystem::remove_all(folder);
    return 0;
}

}  // namespace
}  // namespace comfyd::bench

int main(int argc, char** argv) {
    return comfyd::bench::run(argc > 1 ? std::stoi(argv[1]) : 50'000);
}
