#include "agent/agent.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <system_error>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_future.hpp>

#include "base/deadline.hpp"
#include "base/disk.hpp"
#include "base/json.hpp"
#include "base/log.hpp"
#include "net/io_threads.hpp"

namespace comfyd::agent {
namespace {

namespace fs = std::filesystem;
using Ticks = std::chrono::steady_clock;

constexpr Millis kCutOff{1'000};
constexpr Millis kLookForWork{200};

net::ServerLimits server_limits() {
    net::ServerLimits limits;
    limits.body_bytes_max = 1024ULL * 1024 * 1024;
    limits.bodies_bytes_max = 256ULL * 1024 * 1024;
    limits.connections_max = 512;
    limits.strangers_per_address_max = 64;
    limits.body_timeout = std::chrono::hours(1);
    return limits;
}

net::ClientOptions client_options(const AgentOptions& options) {
    net::ClientOptions made;
    made.ca_file = options.ca_file;
    return made;
}

// Held until the agent's end, and by the system given back where that is a sudden one.
Result<net::Descriptor> lock_folder(const fs::path& folder) {
    std::error_code error;
    fs::create_directories(folder, error);
    const fs::path path = folder / "worker.lock";
    net::Descriptor lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!lock) {
        return disk_error(path, errno);
    }
    if (::flock(lock.number(), LOCK_EX | LOCK_NB) != 0) {
        return fail(
            Code::conflict,
            "another agent uses '" + folder.string() + "': give each a folder of its own"
        );
    }
    return lock;
}

}  // namespace

class Agent::Impl {
public:
    explicit Impl(AgentOptions options)
        : options_(std::move(options)),
          thread_("agent"),
          pool_(2),
          models_pool_(2),
          http_(thread_.executor(), client_options(options_)),
          tasks_(thread_.executor()) {}

    ~Impl() {
        stop();
        if (lock_) {  // else it is another agent's
            std::error_code ignored;
            fs::remove(options_.folder / "worker.json", ignored);
        }
    }

    Result<> start() {
        options_.folder = fs::absolute(options_.folder);
        auto lock = lock_folder(options_.folder);
        if (!lock) {
            return fail(std::move(lock.error()));
        }
        lock_ = std::move(*lock);
        if (options_.comfyui.address.empty()) {
            if (auto prepared = prepare_comfyui(); !prepared) {
                return prepared;
            }
        }
        if (auto told = tell_where(options_.listen); !told) {
            return told;
        }
        make_parts();
        if (models_) {
            if (auto opened = models_->open(); !opened) {
                return opened;
            }
        }
        server_ = std::make_unique<net::Server>(
            std::vector{&thread_.context()},
            server_limits(),
            [this](net::Exchange& exchange) { return front_->handle(exchange); }
        );
        auto bound = server_->listen(options_.listen);
        if (!bound) {
            return fail(std::move(bound.error()));
        }
        endpoint_ = *bound;
        if (auto told = tell_where(endpoint_); !told) {
            stop_server();
            return told;
        }
        boost::asio::post(thread_.executor(), [this] { begin(); });
        thread_.start();
        started_ = true;
        return {};
    }

    std::string url() const { return endpoint_.url(); }

    void stop() {
        if (!std::exchange(started_, false)) {
            return;
        }
        boost::asio::co_spawn(thread_.executor(), drain(), boost::asio::use_future).get();
        // Lines bring connections to the server: they end first.
        boost::asio::co_spawn(thread_.executor(), end(), boost::asio::use_future).get();
        server_->stop(kCutOff);
        thread_.stop();
        std::error_code ignored;
        fs::remove(options_.folder / "worker.json", ignored);
        lock_.reset();
    }

private:
    Result<> prepare_comfyui() {
        options_.command.folder = options_.folder;
        models::ContentsOptions& contents = options_.models.library.contents;
        if (contents.folder.empty()) {
            contents.folder = options_.folder / "models";
        }
        contents.models = options_.command.comfyui / "models";
        contents.owner = options_.folder;
        for (const models::ModelWish& wish : options_.models.wishes) {
            contents.pinned.insert(wish.path());
        }
        std::error_code error;
        fs::create_directories(contents.folder, error);
        if (error) {
            return disk_error(contents.folder, error.value());
        }
        // Its models are links to there.
        options_.command.readable.push_back(fs::absolute(contents.folder));
        options_.command.has_packs = !options_.packs.empty();
        if (auto prepared = prepare(options_.command); !prepared) {
            return prepared;
        }
        const SandboxSupport support =
            look_at_sandbox_support(options_.command.sandbox == SandboxLevel::strict);
        options_.comfyui.home = options_.command.comfyui;
        options_.comfyui.log = options_.folder / "comfyui.log";
        options_.comfyui.command = [command = options_.command, support](std::uint16_t port) {
            return comfyui_command(command, port, support);
        };
        if (!options_.packs.empty()) {
            options_.comfyui.furnish = [this](std::stop_token stop) {
                return furnish(std::move(stop));
            };
        }
        // What is wrong with it is told now, not by a process that does not come up.
        const auto tried = options_.comfyui.command(options_.comfyui.port);
        return tried ? Result<>() : Result<>(fail(tried.error()));
    }

    // Whoever named the packs has looked whether they may be.
    Task<Result<>> furnish(std::stop_token stop) {
        PackRules rules;
        rules.allows_all = true;
        rules.comfyui = options_.command.comfyui;
        rules.stop = std::move(stop);
        const fs::path kept =
            options_.packs_folder.empty() ? options_.folder / "packs" : options_.packs_folder;
        auto done = co_await pool_.run([this, &rules, &kept] {
            const fs::path into = packs_of(options_.command);
            std::error_code ignored;
            for (const NodePack& pack : options_.packs) {
                fs::remove_all(into / pack_name(pack), ignored);  // of an attempt before
            }
            return lay_out_packs(options_.packs, rules, kept, into);
        });
        co_return done;
    }

    void make_parts() {
        comfyui_ = std::make_unique<ComfyUi>(thread_.executor(), http_, options_.comfyui, [this] {
            tell();
        });
        if (comfyui_->is_ours()) {
            files_ = std::make_unique<ModelFiles>(
                pool_,
                ModelFilesOptions{
                    options_.command.comfyui / "models", options_.folder / "hashes.json"
                },
                [this] { return comfyui_->state() == ComfyUi::State::ready && comfyui_->is_idle(); }
            );
            models_ = std::make_unique<Models>(
                thread_.executor(),
                models_pool_,
                options_.models,
                Models::Events{
                    [this] { tell(); },
                    [this](models::ModelWish wish, std::string sha256) {
                        return files_->note(wish.folder, wish.name, std::move(sha256));
                    }
                }
            );
        }
        status_ = std::make_unique<Status>(
            Status::Parts{http_, pool_, *comfyui_, files_.get(), models_.get()},
            options_.instance,
            options_.folder
        );
        if (!options_.gateways.empty()) {
            options_.front.gateway = options_.gateways.front();
            while (options_.front.gateway.ends_with('/')) {
                options_.front.gateway.pop_back();
            }
        }
        front_ = std::make_unique<Front>(
            Front::Parts{thread_.executor(), http_, pool_, clock_, *comfyui_, *status_},
            options_.front
        );
        if (options_.gateways.empty()) {
            return;
        }
        DialOptions dial;
        dial.gateways = options_.gateways;
        dial.instance = options_.instance;
        dial.token = options_.front.token;
        dial_out_ = std::make_unique<DialOut>(
            DialOut::Parts{
                thread_.executor(), http_, *status_, [this] { return own_connection(); }
            },
            std::move(dial)
        );
    }

    void begin() {
        if (models_) {
            models_->start(tasks_);
        }
        tasks_.spawn("the start of ComfyUI", start_comfyui());
        if (files_) {
            files_->start(tasks_);
        }
        if (dial_out_) {
            dial_out_->start(tasks_);
        }
        if (dial_out_ || options_.is_rented) {
            tasks_.spawn("watch for loneliness", watch_loneliness());
        }
    }

    Task<> start_comfyui() {
        bool go_on = true;
        if (models_) {
            go_on = co_await models_->wait_for_required();
        }
        if (go_on && !status_->is_draining()) {
            comfyui_->start(tasks_);
            tell();
        }
    }

    void tell() {
        if (dial_out_) {
            dial_out_->tell();
        }
    }

    // A connection to our own server, for what comes on a line.
    Result<net::Descriptor> own_connection() {
        auto ends = net::connected_sockets();
        if (!ends) {
            return fail(std::move(ends.error()));
        }
        server_->take(std::move(ends->first));
        return std::move(ends->second);
    }

    // For who looks for agents that are still there after a crash of their own.
    Result<> tell_where(const net::Endpoint& endpoint) const {
        const json::object shown{
            {"pid", ::getpid()},
            {"started", started_at(::getpid())},
            {"listen", endpoint.to_string()},
            {"instance", options_.instance},
        };
        return write_file(options_.folder / "worker.json", json::serialize(shown));
    }

    void stop_server() {
        thread_.start();
        server_->stop(Millis(0));
        thread_.stop();
    }

    Task<> watch_loneliness() {
        bool go_on = true;
        while (go_on) {
            const Millis look =
                std::min<Millis>(options_.lonely_max / 10 + Millis(1), Millis(5'000));
            go_on = co_await sleep_for(look);
            const bool is_lonely = Ticks::now() - heard() > options_.lonely_max;
            const bool is_fetching = models_ && models_->is_missing();
            if (go_on && is_lonely && !is_fetching && comfyui_->is_idle() && front_->busy() == 0) {
                log::warning("no gateway for too long and nothing to do: the agent ends itself");
                if (options_.lonely) {
                    options_.lonely();
                }
                go_on = false;
            }
        }
    }

    // When a gateway was last there: one that we call, or one that asks us.
    Ticks::time_point heard() const {
        return dial_out_ ? std::max(dial_out_->heard(), front_->asked()) : front_->asked();
    }

    Task<> drain() {
        status_->set_draining();
        comfyui_->look_often();
        tell();
        const Deadline deadline = Deadline::in(options_.grace);
        bool go_on = true;
        while (go_on && !deadline.has_passed()) {
            const bool is_done = front_->busy() == 0 && comfyui_->queued() == 0 &&
                                 comfyui_->idle_for() >= options_.quiet;
            go_on = !is_done;
            if (go_on) {
                go_on = co_await sleep_for(kLookForWork);
            }
        }
    }

    Task<> end() {
        co_await comfyui_->stop();
        if (models_) {
            co_await models_->end();
        }
        tasks_.cancel();
        co_await tasks_.join();
        http_.close_idle();
    }

    AgentOptions options_;
    SystemClock clock_;
    net::Descriptor lock_;
    net::IoThread thread_;
    Pool pool_;         // after the thread's context: its threads post to it until they are joined
    Pool models_pool_;  // apart: who writes gigabytes holds up nobody
    net::Client http_;
    TaskGroup tasks_;
    std::unique_ptr<ComfyUi> comfyui_;
    std::unique_ptr<ModelFiles> files_;  // none: ComfyUI is somebody else's
    std::unique_ptr<Models> models_;     // likewise
    std::unique_ptr<Status> status_;
    std::unique_ptr<Front> front_;
    std::unique_ptr<DialOut> dial_out_;  // none: it calls nobody
    std::unique_ptr<net::Server> server_;
    net::Endpoint endpoint_;
    bool started_ = false;
};

Agent::Agent(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Agent::~Agent() = default;

Result<std::unique_ptr<Agent>> Agent::start(AgentOptions options) {
    auto impl = std::make_unique<Impl>(std::move(options));
    if (auto started = impl->start(); !started) {
        return fail(std::move(started.error()));
    }
    return std::unique_ptr<Agent>(new Agent(std::move(impl)));
}

std::string Agent::url() const {
    return impl_->url();
}

void Agent::stop() {
    impl_->stop();
}

}  // namespace comfyd::agent
