#include "fleet/providers/process.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/deadline.hpp"
#include "base/on_executor.hpp"
#include "base/pool.hpp"
#include "fleet/providers/local_machines.hpp"

namespace comfyd::fleet {
namespace {

namespace asio = boost::asio;
using Descriptor = asio::posix::basic_stream_descriptor<Executor>;

constexpr asio::use_awaitable_t<Executor> kAwait{};
constexpr Millis kLookInterval{20};
constexpr int kLinesMax = 10'000;

class ProcessProvider final : public MachineProvider {
public:
    ProcessProvider(Executor executor, ProcessOptions options)
        : executor_(executor),
          name_(options.name),
          gpu_kinds_(options.gpu_kinds),
          grace_(options.grace),
          machines_(std::move(options)),
          watches_(executor),
          pool_(2),
          fetching_(1) {}

    std::string_view name() const override { return name_; }
    MachineTraits traits() const override { return {.is_local = true, .gpus = gpu_kinds_}; }

    Task<Result<std::vector<Offer>>> offers(OfferWish wish) override {
        auto offers = co_await pool_.run([this, &wish] { return machines_.offers(wish); });
        co_return offers;
    }

    Task<Result<std::string>> create(MachineOrder order) override {
        const auto record = co_await pool_.run([this, &order] { return machines_.reserve(order); });
        if (!record) {
            co_return fail(record.error());
        }
        if (record->has_value()) {
            auto furnished =
                co_await fetching_.run([this, &record] { return machines_.furnish(**record); });
            auto begun = co_await pool_.run([this, &record, &furnished] {
                return machines_.begin(**record, std::move(furnished));
            });
            if (!begun) {
                co_return fail(std::move(begun.error()));
            }
            co_await watch_all();
        }
        co_return order.name;
    }

    Task<Result<std::vector<Machine>>> list(std::string fleet) override {
        auto machines = co_await pool_.run([this, &fleet] { return machines_.list(fleet); });
        co_await watch_all();
        co_return machines;
    }

    Task<Result<>> start(std::string id) override {
        auto started = co_await pool_.run([this, &id] { return machines_.start(id); });
        co_await watch_all();
        co_return started;
    }

    Task<Result<>> stop(std::string id) override {
        const auto known = co_await pool_.run([this, &id] { return machines_.ask_to_end(id); });
        const Deadline deadline = Deadline::in(grace_);
        for (;;) {
            const bool runs = co_await pool_.run([this, &id] { return machines_.agent_runs(id); });
            if (!runs || deadline.has_passed()) {
                break;
            }
            const bool goes_on = co_await sleep_for(kLookInterval);
            if (!goes_on) {
                co_return fail(Code::cancelled, "the wait for a process was given up");
            }
        }
        auto killed = co_await pool_.run([this, &id, &known] { return machines_.kill(id, known); });
        co_return killed;
    }

    Task<Result<>> remove(std::string id) override {
        auto stopped = co_await stop(id);
        if (!stopped) {
            co_return stopped;
        }
        auto removed = co_await pool_.run([this, &id] { return machines_.forget(id); });
        co_return removed;
    }

    Task<Result<std::string>> logs(std::string id, int lines) override {
        const int most = std::min(lines, kLinesMax);
        auto text = co_await pool_.run([this, &id, most] { return machines_.logs(id, most); });
        co_return text;
    }

    void on_change(std::function<void()> changed) override { changed_ = std::move(changed); }

    Task<> end() override {
        watches_.cancel();
        co_await watches_.join();
    }

private:
    // Tells when agents end, of which each is watched once.
    Task<> watch_all() {
        const auto running = co_await pool_.run([this] { return machines_.running(); });
        for (const auto& [name, agent] : running) {
            if (const auto [at, is_new] = watched_.try_emplace(agent.pid, agent);
                is_new || at->second != agent) {
                at->second = agent;
                watches_.spawn("an agent's end", watch(agent));
            }
        }
    }

    Task<> watch(ProcessMark agent) {
        const int fd = open_process(agent);
        if (fd >= 0) {
            Descriptor end(executor_, fd);
            boost::system::error_code error;
            co_await end.async_wait(Descriptor::wait_read, asio::redirect_error(kAwait, error));
        }
        if (const auto at = watched_.find(agent.pid); at != watched_.end() && at->second == agent) {
            watched_.erase(at);
        }
        const bool is_over = co_await is_cancelled();
        if (!is_over && changed_) {
            changed_();
        }
    }

    Executor executor_;
    const std::string name_;
    const std::vector<std::string> gpu_kinds_;
    const Millis grace_;
    LocalMachines machines_;
    std::map<pid_t, ProcessMark> watched_;
    std::function<void()> changed_;
    TaskGroup watches_;
    Pool pool_;
    // Packs may take minutes, and nobody shall wait for them who needs none; one after the other,
    // so that what the first has fetched is there for the next.
    Pool fetching_;
};

}  // namespace

std::unique_ptr<MachineProvider> make_process_provider(Executor executor, ProcessOptions options) {
    return std::make_unique<ProcessProvider>(executor, std::move(options));
}

}  // namespace comfyd::fleet
