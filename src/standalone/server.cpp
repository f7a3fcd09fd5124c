#include "standalone/server.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <future>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_future.hpp>

#include "base/log.hpp"
#include "comfy/server/routes.hpp"
#include "net/host_rules.hpp"
#include "net/io_threads.hpp"
#include "standalone/backend.hpp"
#include "standalone/runner.hpp"
#include "standalone/table.hpp"

namespace comfyd::standalone {
namespace {

namespace fs = std::filesystem;

constexpr Millis kGrace{3'000};

// Held by one server at a time: another one would empty its temp folder.
class FolderLock {
public:
    FolderLock() = default;
    ~FolderLock() {
        if (fd_ >= 0) {
            ::close(fd_);
        }
    }
    FolderLock(const FolderLock&) = delete;
    FolderLock& operator=(const FolderLock&) = delete;

    Result<> take(const fs::path& folder) {
        const fs::path file = folder / ".lock";
        fd_ = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (fd_ < 0) {
            return fail(Code::storage_unavailable, "cannot write in '" + folder.string() + "'");
        }
        if (::flock(fd_, LOCK_EX | LOCK_NB) != 0) {
            return fail(
                Code::conflict,
                "the data folder '" + folder.string() +
                    "' is used by another server: give each its own with --data"
            );
        }
        return {};
    }

private:
    int fd_ = -1;
};

Result<> make_folder(const fs::path& folder) {
    std::error_code error;
    fs::create_directories(folder, error);
    if (error) {
        return fail(
            Code::storage_unavailable,
            "cannot make the folder '" + folder.string() + "': " + error.message()
        );
    }
    return {};
}

Result<> empty_folder(const fs::path& folder) {
    std::error_code error;
    std::vector<fs::path> inside;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
         entry.increment(error)) {
        inside.push_back(entry->path());
    }
    for (const fs::path& path : inside) {
        std::error_code failed;
        fs::remove_all(path, failed);
        error = failed ? failed : error;
    }
    if (error) {
        return fail(
            Code::storage_unavailable,
            "cannot empty the folder '" + folder.string() + "': " + error.message()
        );
    }
    return {};
}

}  // namespace

class Server::Impl {
public:
    explicit Impl(Options options) : options_(std::move(options)) {
        if (options_.listen.is_loopback()) {
            hosts_ = net::HostRules::loopback();
        }
    }
    ~Impl() { stop(); }

    Result<> start() {
        if (auto prepared = prepare_folders(); !prepared) {
            return prepared;
        }
        core_ = std::make_unique<Core>(io_.executor(), options_, engine_options());
        backend_ = std::make_unique<EngineBackend>(*core_);
        add_routes();
        net::ServerLimits limits;
        limits.body_bytes_max = options_.body_bytes_max;
        limits.bodies_bytes_max = std::max(limits.bodies_bytes_max, options_.body_bytes_max);
        limits.connections_max = options_.connections_max;
        server_ = std::make_unique<net::Server>(
            std::vector<boost::asio::io_context*>{&io_.context()},
            limits,
            [this](net::Exchange& exchange) { return handle(exchange); }
        );
        auto bound = server_->listen(options_.listen);
        if (!bound) {
            return fail(std::move(bound.error()));
        }
        endpoint_ = *bound;
        tasks_ = std::make_unique<TaskGroup>(io_.executor());
        boost::asio::post(io_.executor(), [this] {
            tasks_->spawn("prompt runner", run_prompts(*core_));
        });
        io_.start();
        started_ = true;
        return {};
    }

    std::string url() const { return endpoint_.url(); }

    void stop() {
        if (!std::exchange(started_, false)) {
            return;
        }
        auto stopped = boost::asio::co_spawn(io_.executor(), bring_down(), boost::asio::use_future);
        stopped.get();
        server_->stop(kGrace);
        io_.stop();
    }

private:
    void add_routes() {
        for (const comfy::server::Route& route : comfy::server::all_routes()) {
            table_.add(
                route.method,
                route.path,
                [&backend = *backend_, handler = route.handler](Call& call) {
                    return handler(call, backend);
                }
            );
        }
        table_.add(net::Method::post, std::string(comfy::kLeadRoute), [this](Call& call) {
            return hear_leader(call);
        });
    }

    Task<> hear_leader(Call& call) {
        auto body = co_await comfy::server::read_members(call, backend_->limits().json_bytes_max);
        const auto lead = body ? comfy::LeadMark::from_json(*body) : std::nullopt;
        if (!lead) {
            co_await answer(
                call,
                body ? comfy::error_reply(400, "a domain and its epoch are missing")
                     : comfy::server::encode_error(body.error())
            );
            co_return;
        }
        auto refused = core_->fence.announce(*lead);
        co_await answer(
            call,
            refused ? comfy::json_reply(409, json::object{{"error", std::move(*refused)}})
                    : comfy::json_reply(200, lead->to_json())
        );
    }

    Result<> prepare_folders() {
        for (const char* name : {"input", "output", "temp", "user"}) {
            if (auto made = make_folder(options_.data / name); !made) {
                return made;
            }
        }
        if (auto locked = lock_.take(options_.data); !locked) {
            return locked;
        }
        return empty_folder(options_.data / "temp");
    }

    engine::EngineOptions engine_options() const {
        engine::EngineOptions options;
        options.folders = {
            options_.data / "input", options_.data / "output", options_.data / "temp"
        };
        options.threads = options_.threads;
        options.memory_bytes_max = options_.memory_bytes_max;
        options.add_classes = options_.add_classes;
        return options;
    }

    Task<> handle(net::Exchange& exchange) {
        const net::Request& request = exchange.request();
        Call call{exchange};
        if (request.method == net::Method::options) {
            co_await answer(call, comfy::empty_reply(200));
            co_return;
        }
        if (!hosts_.allows(request.headers.get("Host"))) {
            co_await answer(
                call,
                comfy::text_reply(
                    421,
                    "421: this server listens on loopback and is not known by the name in the Host "
                    "header"
                )
            );
            co_return;
        }
        if (is_foreign(request)) {
            co_await answer(call, comfy::empty_reply(403));
            co_return;
        }
        Table::Match match = table_.match(request.method, request.path);
        if (match.function == nullptr && !match.allow.empty()) {
            net::Response refusal = comfy::text_reply(405, "405: Method Not Allowed");
            refusal.headers.set("Allow", match.allow);
            co_await answer(call, std::move(refusal));
            co_return;
        }
        call.parameters = std::move(match.parameters);
        call.query = net::parse_query(request.query);
        if (match.function != nullptr) {
            co_await (*match.function)(call);
        } else {
            co_await comfy::server::get_editor_file(call, *backend_);
        }
    }

    Task<bool> bring_down() {
        core_->interrupt({});
        core_->hub.close();
        tasks_->cancel();
        while (tasks_->size() > 0) {
            co_await tasks_->join();
        }
        co_return true;
    }

    Options options_;
    Table table_;
    net::HostRules hosts_;
    FolderLock lock_;
    net::IoThread io_{"engine-server"};
    std::unique_ptr<Core> core_;  // after the thread's context: its pools post to it
    std::unique_ptr<EngineBackend> backend_;
    std::unique_ptr<TaskGroup> tasks_;
    std::unique_ptr<net::Server> server_;
    net::Endpoint endpoint_;
    bool started_ = false;
};

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::~Server() = default;

Result<std::unique_ptr<Server>> Server::start(Options options) {
    auto impl = std::make_unique<Impl>(std::move(options));
    if (auto started = impl->start(); !started) {
        return fail(std::move(started.error()));
    }
    return std::unique_ptr<Server>(new Server(std::move(impl)));
}

std::string Server::url() const {
    return impl_->url();
}

void Server::stop() {
    impl_->stop();
}

}  // namespace comfyd::standalone
