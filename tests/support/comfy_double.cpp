#include "support/comfy_double.hpp"

#include <unistd.h>

#include <atomic>
#include <future>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>

#include "net/server.hpp"
#include "support/double/core.hpp"
#include "support/double/routes.hpp"
#include "support/double/runner.hpp"

namespace comfyd::support {

class ComfyDouble::Impl {
public:
    Impl(boost::asio::io_context& context, DoubleOptions options)
        : context_(context), core_(context.get_executor(), std::move(options)) {
        port_ = core_.options.port;
        core_.on_crash = [this] { crash_from_inside(); };
    }

    std::uint16_t start() {
        const std::scoped_lock lock(lifecycle_);
        join_crasher();
        if (running_) {
            return port_;
        }
        on_executor([this] {
            core_.forget();
            tasks_.emplace(core_.executor);
            routes_.emplace(core_, *tasks_);
            runner_.emplace(core_);
        });
        net::ServerLimits limits;
        limits.idle_timeout = std::chrono::hours(1);
        server_ = std::make_unique<net::Server>(
            std::vector{&context_},
            limits,
            [this](net::Exchange& exchange) { return routes_->handle(exchange); }
        );
        const auto endpoint = server_->listen({core_.options.host, port_});
        if (!endpoint) {
            server_.reset();
            throw std::runtime_error(endpoint.error().message);
        }
        port_ = endpoint->port;
        on_executor([this] { tasks_->spawn("worker", runner_->run()); });
        running_ = true;
        return port_;
    }

    void stop() {
        const std::scoped_lock lock(lifecycle_);
        join_crasher();
        shut_down();
        join_crasher();
    }

    std::uint16_t port() const { return port_; }
    bool running() const { return running_; }
    const std::string& host() const { return core_.options.host; }

    template <class Work>
    auto on_executor(Work work) -> std::invoke_result_t<Work> {
        std::packaged_task<std::invoke_result_t<Work>()> task(std::move(work));
        auto result = task.get_future();
        boost::asio::post(core_.executor, std::move(task));
        return result.get();
    }

    Core& core() { return core_; }

private:
    void shut_down() {
        if (!running_.exchange(false)) {
            return;
        }
        // First the sockets and then the server, which would say goodbye to them.
        on_executor([this] {
            core_.crashed = true;
            core_.hub.drop_all();
            core_.wake.notify();
        });
        server_->stop(Millis(0));
        server_.reset();
        on_executor([this] { tasks_->cancel(); });
        std::promise<void> joined;
        boost::asio::co_spawn(core_.executor, tasks_->join(), [&joined](const std::exception_ptr&) {
            joined.set_value();
        });
        joined.get_future().wait();
        on_executor([this] {
            runner_.reset();
            routes_.reset();
            tasks_.reset();
            core_.forget();
        });
    }

    // On the executor, where nobody may wait for the server to end.
    void crash_from_inside() {
        if (core_.options.exit_on_crash) {
            ::_exit(9);
        }
        core_.crashed = true;
        core_.hub.drop_all();
        const std::scoped_lock lock(crasher_mutex_);
        if (!crasher_.joinable()) {
            crasher_ = std::thread([this] { shut_down(); });
        }
    }

    void join_crasher() {
        std::thread crasher;
        {
            const std::scoped_lock lock(crasher_mutex_);
            crasher = std::move(crasher_);
        }
        if (crasher.joinable()) {
            crasher.join();
        }
    }

    boost::asio::io_context& context_;
    Core core_;
    std::mutex lifecycle_;      // start and stop from outside
    std::mutex crasher_mutex_;  // crasher_
    std::thread crasher_;
    std::optional<TaskGroup> tasks_;
    std::optional<Routes> routes_;
    std::optional<Runner> runner_;
    std::unique_ptr<net::Server> server_;
    std::atomic<std::uint16_t> port_{0};
    std::atomic<bool> running_{false};
};

ComfyDouble::ComfyDouble(boost::asio::io_context& context, DoubleOptions options)
    : impl_(std::make_unique<Impl>(context, std::move(options))) {}

ComfyDouble::~ComfyDouble() {
    stop();
}

std::uint16_t ComfyDouble::start() {
    return impl_->start();
}
void ComfyDouble::stop() {
    impl_->stop();
}
// A stop has no farewell either: what differs is only that the test means it as a crash.
void ComfyDouble::crash() {
    impl_->stop();
}
std::uint16_t ComfyDouble::port() const {
    return impl_->port();
}
std::string ComfyDouble::url() const {
    return "http://" + impl_->host() + ":" + std::to_string(port());
}
bool ComfyDouble::running() const {
    return impl_->running();
}

void ComfyDouble::set_faults(Faults faults) {
    impl_->on_executor([this, faults = std::move(faults)] {
        impl_->core().faults = faults;
        impl_->core().wake.notify();
    });
}

Executions ComfyDouble::executions() const {
    return impl_->on_executor([this] { return impl_->core().executions; });
}

std::size_t ComfyDouble::queue_remaining() const {
    return impl_->on_executor([this] { return impl_->core().queue.remaining(); });
}

std::size_t ComfyDouble::sockets_open() const {
    return impl_->on_executor([this] { return impl_->core().hub.size(); });
}

std::vector<json::object> ComfyDouble::accepted_prompts() const {
    return impl_->on_executor([this] {
        const auto& accepted = impl_->core().accepted;
        return std::vector<json::object>(accepted.begin(), accepted.end());
    });
}

void ComfyDouble::add_input(std::string name, std::string data) {
    const auto slash = name.rfind('/');
    const std::size_t start = slash == std::string::npos ? 0 : slash + 1;
    FileRef file{name.substr(start), name.substr(0, start == 0 ? 0 : slash), "input"};
    impl_->on_executor([this, file = std::move(file), data = std::move(data)] {
        impl_->core().files.upload(file, data, true);
    });
}

}  // namespace comfyd::support
