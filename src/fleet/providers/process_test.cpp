#include "fleet/providers/process.hpp"

#include <gmock/gmock.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <future>
#include <set>
#include <thread>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/use_future.hpp>

#include "base/json.hpp"
#include "base/processes.hpp"
#include "base/text.hpp"
#include "fleet/providers/process_record.hpp"
#include "support/temp_dir.hpp"
#include "support/wait.hpp"

namespace comfyd::fleet {
namespace {

using support::read_file;
using support::wait_until;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsSupersetOf;
using testing::Not;
using testing::SizeIs;
using State = Machine::State;
namespace fs = std::filesystem;

// A port that somebody has.
class TakenPort {
public:
    explicit TakenPort(int wanted = 0) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(static_cast<std::uint16_t>(wanted));
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof address;
        auto* name = reinterpret_cast<sockaddr*>(&address);
        is_ours_ = ::bind(fd_, name, size) == 0 && ::listen(fd_, 1) == 0 &&
                   ::getsockname(fd_, name, &size) == 0;
        port_ = ntohs(address.sin_port);
    }
    ~TakenPort() { ::close(fd_); }
    TakenPort(const TakenPort&) = delete;
    TakenPort& operator=(const TakenPort&) = delete;

    int port() const { return port_; }
    bool is_ours() const { return is_ours_; }

private:
    int fd_;
    int port_ = 0;
    bool is_ours_ = false;
};

class Processes : public testing::Test {
protected:
    Processes() {
        options_.folder = folder_.path() / "machines";
        options_.program = "/usr/bin/python3";
        options_.arguments = {std::string(COMFYD_TEST_DATA) + "/../support/stand_in_agent.py"};
        options_.comfyui = "/opt/ComfyUI";
        options_.python = "/opt/venv/bin/python";
        options_.gpus = {"", folder_ / "nvidia-smi", Millis(30'000)};
        options_.sharing.per_gpu = 4;
        // Away from those of other tests, and from those that the system gives away.
        options_.port_first = 20'000 + ::getpid() % 120 * 100;
        options_.port_last = options_.port_first + 99;
        tell_gpus({"GPU-1, 24000, 24000, NVIDIA GeForce RTX 4090"});
    }
    ~Processes() override {
        open();
        for (const char* fleet : {"main", "other"}) {
            for (const Machine& machine : list(fleet)) {
                EXPECT_TRUE(remove(machine.id));
            }
        }
        close();
        loop_.reset();
        thread_.join();
        EXPECT_THAT(of_ours(), IsEmpty());
    }

    void tell_gpus(const std::vector<std::string>& lines, const std::string& processes = "") {
        std::string all;
        for (const std::string& line : lines) {
            all += line + "\n";
        }
        folder_.write("gpus", all);
        folder_.write("gpu_processes", processes);
        const std::string script = folder_.write(
            "nvidia-smi",
            "#!/bin/sh\ncase $1 in\n--query-gpu*) cat " + folder_ / "gpus" + ";;\n*) cat " +
                folder_ / "gpu_processes" + ";;\nesac\n"
        );
        ::chmod(script.c_str(), 0700);
    }

    // As comfyd does when it starts, and when it ends.
    void open() {
        if (!provider_) {
            provider_ = make_process_provider(context_.get_executor(), options_);
            provider_->on_change([this] { ++changes_; });
        }
    }
    void close() {
        if (provider_) {
            await(provider_->end());
            provider_.reset();
        }
    }
    template <class T>
    T await(Task<T> task) {
        return boost::asio::co_spawn(context_, std::move(task), boost::asio::use_future).get();
    }

    static MachineOrder order_of(const std::string& instance, const std::string& manner = "") {
        MachineOrder order;
        order.fleet = "main";
        order.instance = instance;
        order.name = "comfyd-main-" + instance;
        order.pool = "default";
        order.secrets = {{"COMFYD_WORKER_TOKEN", "token of " + instance}};
        order.made_from.environment = {{"STAND_IN", manner}};
        return order;
    }
    Result<std::string> create(const MachineOrder& order) {
        open();
        return await(provider_->create(order));
    }
    // One that is up.
    std::string make(const std::string& instance, const std::string& manner = "") {
        const auto id = create(order_of(instance, manner));
        EXPECT_TRUE(id) << id.error().message;
        EXPECT_TRUE(wait_until([&] { return find(*id).state == State::running; }))
            << find(*id).reason << read_file(path(*id, "agent.log"));
        return *id;
    }
    std::vector<Machine> list(const std::string& fleet = "main") {
        open();
        auto machines = await(provider_->list(fleet));
        EXPECT_TRUE(machines);
        return *machines;
    }
    Machine find(const std::string& id) {
        for (const Machine& machine : list()) {
            if (machine.id == id) {
                return machine;
            }
        }
        Machine none;
        none.state = State::gone;
        return none;
    }
    Result<> remove(const std::string& id) {
        open();
        return await(provider_->remove(id));
    }

    fs::path path(const std::string& id, const std::string& file) const {
        return options_.folder / id / file;
    }
    json::object read_json(const std::string& id, const std::string& file) const {
        auto object = json::parse_object(read_file(path(id, file)));
        EXPECT_TRUE(object) << file;
        return object ? *object : json::object();
    }
    ProcessRecord record(const std::string& id) const {
        return read_record(options_.folder / id).value();
    }
    std::map<std::string, pid_t> children(const std::string& id) const {
        std::map<std::string, pid_t> pids;
        for (const auto& [name, pid] : read_json(id, "work/children.json")) {
            pids.emplace(view(name), pid.to_number<pid_t>());
        }
        return pids;
    }
    std::string variable(const std::string& id, const std::string& name) const {
        const json::object told = read_json(id, "work/told.json");
        const auto* found = told.at("environment").as_object().if_contains(name);
        return found == nullptr ? "(none)" : std::string(view(found->as_string()));
    }
    // Whatever runs with something of this test's folder in its environment.
    std::vector<pid_t> of_ours() const {
        std::vector<pid_t> found;
        for (const auto& entry : fs::directory_iterator("/proc")) {
            const pid_t pid = std::atoi(entry.path().filename().c_str());
            if (pid > 0 && find_process(pid) && pid != ::getpid() &&
                (read_file(entry.path() / "environ").find(folder_.path().string()) !=
                     std::string::npos ||
                 read_file(entry.path() / "cmdline").find(folder_.path().string()) !=
                     std::string::npos)) {
                found.push_back(pid);
            }
        }
        return found;
    }

    support::TempDir folder_;
    ProcessOptions options_;
    std::atomic<int> changes_ = 0;
    boost::asio::io_context context_;
    std::optional<boost::asio::executor_work_guard<Executor>> loop_{context_.get_executor()};
    std::thread thread_{[this] { context_.run(); }};
    std::unique_ptr<MachineProvider> provider_;
};

std::string ask(const std::string& socket, const std::string& head) {
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    socket.copy(address.sun_path, sizeof address.sun_path - 1);
    std::string answer;
    // It says that it is there before it listens.
    EXPECT_TRUE(wait_until([&] {
        return ::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
    }));
    EXPECT_EQ(::write(fd, head.data(), head.size()), static_cast<ssize_t>(head.size()));
    char bytes[4'096];
    for (ssize_t count = 1; count > 0;) {
        count = ::read(fd, bytes, sizeof bytes);
        answer.append(bytes, static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    }
    ::close(fd);
    return answer;
}

TEST_F(Processes, AnAgentIsStartedWithAllThatItNeeds) {
    ::setenv("COMFYD_SECRET_OF_THE_GATEWAY", "x", 1);
    options_.comfyui_arguments = {"--fast"};
    options_.agent_arguments = {"--sandbox", "basic"};
    options_.environment = {{"OF_ALL", "1"}, {"OF_THE_TEMPLATE", "1"}};
    auto order = order_of("i1");
    order.made_from.command = {"--preview-method", "auto"};
    order.made_from.environment["COMFYD_INSTANCE"] = "another";
    order.made_from.environment["OF_THE_TEMPLATE"] = "2";
    const auto id = create(order);
    ASSERT_TRUE(id) << id.error().message;
    EXPECT_EQ(*id, order.name);
    ASSERT_TRUE(wait_until([&] { return find(*id).state == State::running; }));
    ::unsetenv("COMFYD_SECRET_OF_THE_GATEWAY");

    const Machine machine = find(*id);
    EXPECT_EQ(machine.name, order.name);
    EXPECT_EQ(machine.url, "unix:" + path(*id, "agent.sock").string());
    EXPECT_TRUE(machine.made_at);
    EXPECT_EQ(variable(*id, "CUDA_VISIBLE_DEVICES"), "GPU-1");
    EXPECT_EQ(variable(*id, "COMFYD_INSTANCE"), "i1");
    EXPECT_EQ(variable(*id, "COMFYD_WORKER_TOKEN"), "token of i1");
    EXPECT_EQ(variable(*id, "OF_ALL"), "1");
    EXPECT_EQ(variable(*id, "OF_THE_TEMPLATE"), "2");
    EXPECT_EQ(variable(*id, "PATH"), std::getenv("PATH"));
    EXPECT_EQ(variable(*id, "COMFYD_SECRET_OF_THE_GATEWAY"), "(none)");
    std::vector<std::string> arguments;
    const json::object told = read_json(*id, "work/told.json");
    for (const auto& word : told.at("arguments").as_array()) {
        arguments.emplace_back(view(word.as_string()));
    }
    EXPECT_THAT(
        arguments,
        ElementsAre(
            "--listen",
            "unix:" + path(*id, "agent.sock").string(),
            "--folder",
            path(*id, "work").string(),
            "--comfyui",
            "/opt/ComfyUI",
            "--comfyui-port",
            std::to_string(record(*id).comfyui_port),
            "--python",
            "/opt/venv/bin/python",
            "--sandbox",
            "basic",
            "--",
            "--extra-model-paths-config",
            path(*id, "work/nodes.yaml").string(),
            "--fast",
            "--preview-method",
            "auto"
        )
    );
    EXPECT_EQ(read_file(path(*id, "work/nodes.yaml")), "comfyd:\n  custom_nodes: nodes\n");
    EXPECT_THAT(read_file(path(*id, "work/nodes/comfyd/batch.py")), HasSubstr("ComfydLatentBatch"));
    const auto mode = [&](const char* file) {
        return static_cast<unsigned>(fs::status(path(*id, file)).permissions());
    };
    EXPECT_EQ(mode("."), 0700U);
    EXPECT_EQ(mode("secrets"), 0600U);
    EXPECT_EQ(mode("agent.log"), 0600U);

    const std::string socket = machine.url->substr(5);
    EXPECT_THAT(ask(socket, "GET /healthz HTTP/1.0\r\n\r\n"), HasSubstr("200"));
    EXPECT_THAT(ask(socket, "GET /worker/v1/status HTTP/1.0\r\n\r\n"), HasSubstr("401"));
    EXPECT_THAT(
        ask(socket, "GET /worker/v1/status HTTP/1.0\r\nAuthorization: Bearer token of i1\r\n\r\n"),
        HasSubstr("\"ready\"")
    );
}

TEST_F(Processes, WhatIsRemovedLeavesNothing) {
    const std::string id = make("i1");
    const auto comfyui = children(id).at("comfyui");
    ASSERT_TRUE(find_process(comfyui));
    EXPECT_TRUE(remove(id));
    EXPECT_THAT(list(), IsEmpty());
    EXPECT_FALSE(fs::exists(options_.folder / id));
    EXPECT_FALSE(find_process(comfyui));
    EXPECT_TRUE(remove(id));
    EXPECT_TRUE(remove("comfyd-main-never-there"));
    EXPECT_TRUE(remove("../" + id));
}

TEST_F(Processes, TwoShareAGpuAndAThirdIsRefused) {
    options_.sharing.per_gpu = 2;
    tell_gpus({"GPU-1, 24000, 24000, RTX 4090", "GPU-2, 24000, 20000, RTX 4090"});
    std::map<std::string, int> placed;
    for (const char* instance : {"a", "b", "c", "d"}) {
        ++placed[variable(make(instance), "CUDA_VISIBLE_DEVICES")];
    }
    EXPECT_EQ(placed["GPU-1"], 2);
    EXPECT_EQ(placed["GPU-2"], 2);
    const auto fifth = create(order_of("e"));
    ASSERT_FALSE(fifth);
    EXPECT_EQ(fifth.error().code, Code::out_of_stock);
    EXPECT_THAT(fifth.error().message, HasSubstr("has its 2 processes"));
    EXPECT_FALSE(fs::exists(options_.folder / "comfyd-main-e"));
    const auto offers = await(provider_->offers({}));
    for (const Offer& offer : *offers) {
        EXPECT_EQ(offer.available, 0);
    }
    // Another folder for each, and another port.
    std::set<int> ports;
    for (const Machine& machine : list()) {
        ports.insert(record(machine.id).comfyui_port);
    }
    EXPECT_THAT(ports, SizeIs(4));
    EXPECT_TRUE(remove("comfyd-main-a"));
    EXPECT_TRUE(create(order_of("e")));
}

TEST_F(Processes, ATemplateSaysHowManyShareAGpu) {
    options_.sharing.per_gpu = 1;
    tell_gpus({"GPU-1, 24000, 24000, RTX 4090"});
    auto half = order_of("a");
    half.made_from.per_gpu = 2;
    ASSERT_TRUE(create(half));
    const auto available = [this](int per_gpu) {
        OfferWish wish;
        wish.per_gpu = per_gpu;
        return await(provider_->offers(wish))->front().available;
    };
    EXPECT_EQ(available(2), 1);
    EXPECT_EQ(available(0), 0) << "one that shall have it alone";
    EXPECT_EQ(create(order_of("b")).error().code, Code::out_of_stock);
    half.name = order_of("c").name;
    half.instance = order_of("c").instance;
    close();
    open();  // it is written down
    ASSERT_TRUE(create(half));
    EXPECT_EQ(available(2), 0);
    EXPECT_EQ(record(half.name).gpu, "GPU-1");
}

TEST_F(Processes, WhatDoesNotFitIsRefusedWithTheReason) {
    options_.sharing = {4, 10'000'000'000};
    make("a");
    const pid_t comfyui = children("comfyd-main-a").at("comfyui");
    // It has loaded a model; a game has 8 GB.
    tell_gpus(
        {"GPU-1, 24000, 7000, RTX 4090"},
        "GPU-1, " + std::to_string(comfyui) + ", 9000\nGPU-1, " + std::to_string(::getpid()) +
            ", 8000\n"
    );
    const auto second = create(order_of("b"));
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, Code::out_of_stock);
    EXPECT_THAT(second.error().message, HasSubstr("needs 10.5 GB"));
    EXPECT_THAT(second.error().message, HasSubstr("others use 8.4 GB"));
    tell_gpus({"GPU-1, 24000, 15000, RTX 4090"}, "GPU-1, " + std::to_string(comfyui) + ", 9000\n");
    EXPECT_TRUE(create(order_of("b")));
}

TEST_F(Processes, OffersAreTheGpusThatAreWanted) {
    options_.gpus_used = {"GPU-1", "GPU-2"};
    tell_gpus(
        {"GPU-1, 24000, 24000, NVIDIA GeForce RTX 4090",
         "GPU-2, 80000, 80000, NVIDIA H100",
         "GPU-3, 80000, 80000, NVIDIA H100"}
    );
    open();
    const auto kinds = [this](OfferWish wish) {
        std::vector<std::string> ids;
        const auto offers = await(provider_->offers(std::move(wish)));
        for (const Offer& offer : *offers) {
            ids.push_back(offer.id);
        }
        std::ranges::sort(ids);
        return ids;
    };
    EXPECT_THAT(kinds({}), ElementsAre("GPU-1", "GPU-2"));
    EXPECT_THAT(kinds({.provider = "", .gpus = {"h100"}}), ElementsAre("GPU-2"));
    EXPECT_THAT(kinds({.provider = "", .gpus = {"GPU-1"}}), ElementsAre("GPU-1"));
    EXPECT_THAT(kinds({.provider = "", .gpus = {}, .market = Market::spot}), IsEmpty());
    auto order = order_of("a");
    order.offer.id = "GPU-2";
    ASSERT_TRUE(create(order));
    EXPECT_EQ(record(order.name).gpu, "GPU-2");
    order = order_of("b");
    order.offer.id = "GPU-3";
    EXPECT_EQ(create(order).error().code, Code::not_found);
}

TEST_F(Processes, WithoutGpusTheReasonIsToldAndOthersMayBeFoundByComfyUi) {
    options_.gpus = {"libno-such.so", "/no/such/program", Millis(30'000)};
    const auto none = create(order_of("a"));
    ASSERT_FALSE(none);
    EXPECT_THAT(none.error().message, HasSubstr("no NVIDIA GPU"));
    EXPECT_THAT(none.error().message, HasSubstr("comfyui.gpus: any"));
    close();
    options_.finds_gpu_itself = true;
    options_.sharing.per_gpu = 1;
    const std::string id = make("a");
    EXPECT_EQ(variable(id, "CUDA_VISIBLE_DEVICES"), "(none)");
    EXPECT_EQ(create(order_of("b")).error().code, Code::out_of_stock);
    // One that shall have none does not look for any.
    auto order = order_of("c");
    order.made_from.gpus = 0;
    ASSERT_TRUE(create(order));
    ASSERT_TRUE(wait_until([&] { return find(order.name).state == State::running; }));
    EXPECT_EQ(variable(order.name, "CUDA_VISIBLE_DEVICES"), "");
    order = order_of("d");
    order.made_from.gpus = 2;
    EXPECT_EQ(create(order).error().code, Code::invalid_argument);
}

TEST_F(Processes, ANameThatIsThereIsThatMachine) {
    const std::string id = make("a");
    const ProcessMark agent = record(id).agent;
    const auto again = create(order_of("a"));
    ASSERT_TRUE(again);
    EXPECT_EQ(*again, id);
    EXPECT_EQ(record(id).agent, agent);
    EXPECT_THAT(list(), SizeIs(1));
    for (const char* name : {"", ".", "..", "a/b", ".hidden", "-rf", "a b", "a\nb"}) {
        auto order = order_of("x");
        order.name = name;
        EXPECT_EQ(create(order).error().code, Code::invalid_argument) << name;
    }
    auto order = order_of("x");
    order.secrets["A=B"] = "c";
    EXPECT_EQ(create(order).error().code, Code::invalid_argument);
}

TEST_F(Processes, ManyAtOnceGetPlacesOfTheirOwn) {
    tell_gpus({"GPU-1, 24000, 24000, RTX 4090", "GPU-2, 24000, 24000, RTX 4090"});
    options_.listens_on_sockets = false;
    open();
    std::vector<std::future<Result<std::string>>> made;
    for (int i = 0; i < 10; ++i) {
        made.push_back(boost::asio::co_spawn(
            context_, provider_->create(order_of("i" + std::to_string(i))), boost::asio::use_future
        ));
    }
    int refused = 0;
    for (auto& each : made) {
        const auto id = each.get();
        refused += id ? 0 : 1;
        EXPECT_TRUE(id || id.error().code == Code::out_of_stock);
    }
    EXPECT_EQ(refused, 2);
    std::map<std::string, int> placed;
    std::set<int> ports;
    for (const Machine& machine : list()) {
        ++placed[record(machine.id).gpu];
        ports.insert({record(machine.id).port, record(machine.id).comfyui_port});
    }
    EXPECT_EQ(placed["GPU-1"], 4);
    EXPECT_EQ(placed["GPU-2"], 4);
    EXPECT_THAT(ports, SizeIs(16));
}

TEST_F(Processes, APortThatIsTakenIsLeftToItsOwner) {
    // Two ports side by side, of which the first is another's.
    std::optional<TakenPort> others;
    std::optional<TakenPort> next;
    ASSERT_TRUE(wait_until([&] {
        next.reset();
        others.emplace();
        next.emplace(others->port() + 1);
        return next->is_ours();
    }));
    options_.port_first = others->port();
    options_.port_last = next->port();
    next.reset();
    const std::string id = make("a");
    EXPECT_EQ(record(id).comfyui_port, options_.port_last);
    // The one that it has is not given away, though nobody listens there yet.
    const auto second = create(order_of("b"));
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, Code::out_of_stock);
    EXPECT_THAT(second.error().message, HasSubstr("no port from"));
}

TEST_F(Processes, WhereASocketsPathWouldBeTooLongThereIsAPort) {
    options_.folder = folder_.path() / std::string(100, 'x');
    const std::string id = make("a");
    EXPECT_EQ(find(id).url, "http://127.0.0.1:" + std::to_string(record(id).port));
}

TEST_F(Processes, AnAgentThatCrashesIsSeenAndItsChildrenGoWithIt) {
    const std::string id = make("a", "strays");
    const auto all = children(id);
    const ProcessMark agent = record(id).agent;
    const int before = changes_;
    ASSERT_TRUE(send_signal(agent, SIGKILL));
    EXPECT_TRUE(wait_until([&] { return changes_ > before; }));
    const Machine machine = find(id);
    EXPECT_EQ(machine.state, State::failed);
    EXPECT_THAT(machine.reason, HasSubstr("its agent has ended: the agent begins"));
    EXPECT_FALSE(machine.url);
    EXPECT_TRUE(find_process(all.at("comfyui")));
    EXPECT_TRUE(remove(id));
    for (const auto& [name, pid] : all) {
        EXPECT_FALSE(find_process(pid)) << name;
    }
}

TEST_F(Processes, OneThatCannotBeginSaysWhatItSaid) {
    const auto id = create(order_of("a", "fails"));
    ASSERT_TRUE(id);
    EXPECT_TRUE(wait_until([&] { return find(*id).state == State::failed; }));
    EXPECT_THAT(find(*id).reason, HasSubstr("no room for ComfyUI"));
    EXPECT_THAT(
        await(provider_->logs(*id, 10)).value(),
        HasSubstr("== agent.log\nthe agent begins\nno room")
    );
    EXPECT_EQ(await(provider_->logs("comfyd-main-x", 10)).error().code, Code::not_found);
    // The name is taken, by one that has failed.
    EXPECT_TRUE(create(order_of("a")));
    EXPECT_EQ(find(*id).state, State::failed);
}

TEST_F(Processes, AProgramThatIsNotThereLeavesNoMachine) {
    options_.program = "/no/such/program";
    const auto id = create(order_of("a"));
    ASSERT_FALSE(id);
    EXPECT_EQ(id.error().code, Code::worker_unavailable);
    EXPECT_THAT(list(), IsEmpty());
    EXPECT_FALSE(fs::exists(options_.folder / "comfyd-main-a"));
}

TEST_F(Processes, OneThatIsNotUpYetStarts) {
    const auto id = create(order_of("a", "silent"));
    ASSERT_TRUE(wait_until([&] { return fs::exists(path(*id, "work/told.json")); }));
    EXPECT_EQ(find(*id).state, State::starting);
    EXPECT_FALSE(find(*id).url);
}

TEST_F(Processes, OneThatIsHeldSaysSoAndCanBeRemoved) {
    options_.grace = Millis(30'000);
    const std::string id = make("a");
    ASSERT_TRUE(send_signal(record(id).agent, SIGSTOP));
    EXPECT_TRUE(wait_until([&] { return !find(id).reason.empty(); }));
    EXPECT_THAT(find(id).reason, HasSubstr("held by a signal"));
    EXPECT_EQ(find(id).state, State::running);
    EXPECT_TRUE(remove(id));
    EXPECT_THAT(list(), IsEmpty());
}

TEST_F(Processes, OneThatDoesNotListenIsKilledWithAllThatItStarted) {
    options_.grace = Millis(100);
    const std::string id = make("a", "deaf,strays");
    const ProcessMark agent = record(id).agent;
    const auto all = children(id);
    ASSERT_THAT(all, SizeIs(4));
    EXPECT_TRUE(remove(id));
    EXPECT_FALSE(is_running(agent));
    for (const auto& [name, pid] : all) {
        EXPECT_FALSE(find_process(pid)) << name;
    }
}

TEST_F(Processes, TheyOutliveComfydAndAreFoundAgain) {
    const std::string a = make("a");
    const std::string b = make("b");
    const ProcessMark agent = record(a).agent;
    const auto url = find(a).url;
    close();
    EXPECT_TRUE(is_running(agent));
    EXPECT_EQ(find(a).state, State::running);
    EXPECT_EQ(find(a).url, url);
    EXPECT_EQ(create(order_of("a")).value(), a);
    EXPECT_EQ(record(a).agent, agent);
    // Their places are still theirs.
    EXPECT_EQ(await(provider_->offers({})).value().at(0).available, 2);
    // And their ends are heard of.
    const int before = changes_;
    ASSERT_TRUE(send_signal(record(b).agent, SIGKILL));
    EXPECT_TRUE(wait_until([&] { return changes_ > before; }));
    EXPECT_EQ(find(b).state, State::failed);
    EXPECT_TRUE(remove(a));
    EXPECT_FALSE(is_running(agent));
}

TEST_F(Processes, OneWhoseStartWasNotWrittenDownIsFound) {
    const std::string id = make("a");
    ProcessRecord known = record(id);
    const ProcessMark agent = std::exchange(known.agent, {});
    ASSERT_TRUE(write_record(options_.folder / id, known));
    EXPECT_EQ(find(id).state, State::running);
    EXPECT_EQ(create(order_of("a")).value(), id);
    EXPECT_TRUE(remove(id));
    EXPECT_FALSE(is_running(agent));
}

TEST_F(Processes, OneThatWasNeverStartedIsMadeAnew) {
    const std::string id = make("a");
    ProcessRecord known = record(id);
    EXPECT_TRUE(remove(id));
    known.agent = {};
    known.comfyui_port = 1;
    ASSERT_TRUE(write_record(options_.folder / id, known));
    EXPECT_EQ(find(id).state, State::made);
    EXPECT_EQ(find(id).reason, "it was never started");
    EXPECT_EQ(make("a"), id);
    EXPECT_NE(record(id).comfyui_port, 1);
}

TEST_F(Processes, AfterTheComputersRestartNumbersMeanNothing) {
    const std::string id = make("a");
    ProcessRecord known = record(id);
    EXPECT_TRUE(remove(id));
    const support::TempDir elsewhere;
    known.agent = find_process(::getpid())->mark;  // whoever has the number now
    known.boot = "another";
    ASSERT_TRUE(write_record(options_.folder / id, known));
    EXPECT_EQ(find(id).state, State::failed);
    EXPECT_TRUE(remove(id));
    EXPECT_THAT(list(), IsEmpty());
}

TEST_F(Processes, AnothersProcessUnderAnOldNumberIsNotTouched) {
    const std::string id = make("a");
    ProcessRecord known = record(id);
    EXPECT_TRUE(remove(id));
    const pid_t bystander = ::fork();
    if (bystander == 0) {
        ::setsid();
        ::pause();
        ::_exit(0);
    }
    known.agent = {bystander, known.agent.started};
    ASSERT_TRUE(write_record(options_.folder / id, known));
    EXPECT_EQ(find(id).state, State::failed);
    EXPECT_TRUE(remove(id));
    EXPECT_TRUE(find_process(bystander));
    ::kill(bystander, SIGKILL);
    ::waitpid(bystander, nullptr, 0);
}

TEST_F(Processes, WhatComfyUiWritesInTheAgentsPlaceIsNotBelieved) {
    const std::string id = make("a");
    const fs::path file = path(id, "work/worker.json");
    const std::string url = *find(id).url;
    const ProcessMark agent = record(id).agent;
    const auto claim = [&](const std::string& pid, const std::string& started) {
        return "{\"pid\":" + pid + ",\"started\":" + started +
               ",\"listen\":\"http://evil.example:80\",\"instance\":\"a\"}";
    };
    const std::string own = std::to_string(::getpid());
    std::string deep(100'000, '[');
    for (const std::string& text : {
             std::string(),
             std::string("null"),
             std::string("{"),
             std::string("[1]"),
             std::string("\xff\xfe\0 nonsense", 12),
             deep,
             std::string(10'000'000, ' '),
             claim(own, std::to_string(find_process(::getpid())->mark.started)),
             claim("1", "1"),
             claim("-1", "-1"),
             claim("1e300", "1e300"),
             claim("99999999999999999999", "18446744073709551615"),
             claim("\"" + own + "\"", "null"),
             claim("[]", "{}"),
         }) {
        std::ofstream(file, std::ios::binary | std::ios::trunc) << text;
        EXPECT_EQ(find(id).state, State::starting) << text.substr(0, 100);
        EXPECT_FALSE(find(id).url);
    }
    // What is true in it is taken, and no more.
    std::ofstream(file, std::ios::trunc)
        << claim(std::to_string(agent.pid), std::to_string(agent.started));
    EXPECT_EQ(find(id).state, State::running);
    EXPECT_EQ(find(id).url, url);
    // Neither files.
    fs::remove(file);
    ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
    EXPECT_EQ(find(id).state, State::starting);
    fs::remove(file);
    fs::create_directory(file);
    EXPECT_EQ(find(id).state, State::starting);
    fs::remove(file);
    fs::create_symlink("/dev/zero", file);
    EXPECT_EQ(find(id).state, State::starting);
    // A link is removed and what it leads to is not.
    const support::TempDir others;
    others.write("precious", "x");
    fs::create_directory_symlink(others.path(), path(id, "work/link"));
    fs::create_directories(path(id, "work/locked/inner"));
    fs::permissions(path(id, "work/locked"), fs::perms::none);
    fs::remove(path(id, "work/comfyui.log"));
    fs::create_symlink("/etc/passwd", path(id, "work/comfyui.log"));
    EXPECT_THAT(await(provider_->logs(id, 100)).value(), Not(HasSubstr("root:")));
    EXPECT_TRUE(remove(id));
    EXPECT_FALSE(is_running(agent));
    EXPECT_EQ(read_file(others / "precious"), "x");
}

TEST_F(Processes, ARecordThatCannotBeReadHarmsNoOther) {
    const std::string id = make("a");
    for (const char* text :
         {"", "{", "{\"name\":\"comfyd-main-b\",\"fleet\":5}", "{\"name\":\"x\"}"}) {
        fs::create_directories(options_.folder / "comfyd-main-b");
        std::ofstream(path("comfyd-main-b", "machine.json"), std::ios::trunc) << text;
        EXPECT_THAT(list(), SizeIs(1)) << text;
    }
    EXPECT_TRUE(remove("comfyd-main-b"));
    EXPECT_FALSE(fs::exists(options_.folder / "comfyd-main-b"));
    EXPECT_EQ(find(id).state, State::running);
}

TEST_F(Processes, WhatWasLeftBeforeItHadARecordIsRemoved) {
    const std::string id = make("a");
    const auto leave = [&](const std::string& name, std::chrono::minutes ago) {
        const fs::path folder = options_.folder / name;
        fs::create_directories(folder / "work");
        std::ofstream(folder / "secrets") << "{}";
        fs::last_write_time(folder, fs::file_time_type::clock::now() - ago);
        return folder;
    };
    using std::chrono::minutes;
    const fs::path old = leave("comfyd-main-0123456789ab", minutes(2));
    const fs::path others = leave("comfyd-other-0123456789ab", minutes(2));
    const fs::path strange = leave("models", minutes(2));
    const fs::path latest = leave("comfyd-main-ba9876543210", minutes(0));
    EXPECT_THAT(list(), SizeIs(1));
    EXPECT_FALSE(fs::exists(old));
    EXPECT_TRUE(fs::exists(others));
    EXPECT_TRUE(fs::exists(strange));
    EXPECT_TRUE(fs::exists(latest)) << "its record may be written this moment";
    EXPECT_EQ(find(id).state, State::running);
}

TEST_F(Processes, OtherFleetsAreNotShown) {
    auto order = order_of("a");
    order.fleet = "other";
    order.name = "comfyd-other-a";
    ASSERT_TRUE(create(order));
    const std::string id = make("a");
    EXPECT_THAT(list(), SizeIs(1));
    EXPECT_THAT(list("other"), SizeIs(1));
    EXPECT_THAT(list("nobody"), IsEmpty());
    // Its place counts all the same.
    EXPECT_EQ(await(provider_->offers({})).value().at(0).available, 2);
    EXPECT_TRUE(remove(id));
    EXPECT_THAT(list("other"), SizeIs(1));
}

TEST_F(Processes, OneThatIsStoppedKeepsItsFolderAndStartsAgain) {
    const std::string id = make("a");
    const ProcessMark first = record(id).agent;
    std::ofstream(path(id, "work/kept")) << "x";
    EXPECT_TRUE(await(provider_->stop(id)));
    EXPECT_EQ(find(id).state, State::stopped);
    EXPECT_FALSE(is_running(first));
    EXPECT_TRUE(await(provider_->start(id)));
    EXPECT_TRUE(wait_until([&] { return find(id).state == State::running; }));
    EXPECT_NE(record(id).agent, first);
    EXPECT_EQ(read_file(path(id, "work/kept")), "x");
    EXPECT_EQ(variable(id, "COMFYD_WORKER_TOKEN"), "token of a");
    EXPECT_TRUE(await(provider_->start(id)));  // it runs
    EXPECT_EQ(await(provider_->start("comfyd-main-x")).error().code, Code::not_found);
}

TEST_F(Processes, ALogThatGrowsIsCut) {
    options_.log_bytes_max = 1'000;
    const std::string id = make("a");
    std::ofstream(path(id, "agent.log"), std::ios::app) << std::string(5'000, 'x') << "\n";
    EXPECT_EQ(find(id).state, State::running);
    EXPECT_EQ(fs::file_size(path(id, "agent.log")), 0U);
    EXPECT_GT(fs::file_size(path(id, "agent.log.1")), 5'000U);
}

TEST_F(Processes, PacksAreLaidOutBeforeItStartsOrItDoesNot) {
    folder_.write("packs/mine/__init__.py", "NODE_CLASS_MAPPINGS = {}\n");
    options_.packs = {{.folder = folder_.path() / "packs/mine"}};
    const auto refused = create(order_of("a"));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::forbidden);
    EXPECT_THAT(list(), IsEmpty());
    EXPECT_FALSE(fs::exists(options_.folder / "comfyd-main-a"));
    close();
    options_.pack_rules.allowed = {folder_ / "packs/"};
    const std::string id = make("a");
    EXPECT_THAT(
        read_file(path(id, "work/nodes/mine/__init__.py")), HasSubstr("NODE_CLASS_MAPPINGS")
    );
}

TEST_F(Processes, WhileItsPacksAreFetchedItIsInTheMakingAndMayBeRemoved) {
    const std::string goes_on = folder_ / "goes on";
    const std::string git = folder_.write(
        "git", "#!/bin/sh\nwhile [ ! -e '" + goes_on + "' ]; do sleep 0.01; done; exit 1\n"
    );
    ::chmod(git.c_str(), 0700);
    options_.pack_rules.git = git;
    options_.pack_rules.allowed = {"https://example.com/pack"};
    options_.packs = {{.url = "https://example.com/pack", .commit = std::string(40, 'a')}};
    open();
    auto made =
        boost::asio::co_spawn(context_, provider_->create(order_of("a")), boost::asio::use_future);
    EXPECT_TRUE(wait_until([&] { return list().size() == 1; }));
    EXPECT_EQ(list().at(0).state, State::creating);
    EXPECT_EQ(create(order_of("a")).value(), "comfyd-main-a");
    EXPECT_TRUE(remove("comfyd-main-a"));
    EXPECT_THAT(list(), IsEmpty());
    folder_.write("goes on", "");
    EXPECT_FALSE(made.get());
    EXPECT_THAT(list(), IsEmpty());
    EXPECT_FALSE(fs::exists(options_.folder / "comfyd-main-a"));
}

}  // namespace
}  // namespace comfyd::fleet
