// Lives and ends of ComfyUI's process, with the double in its place.
#include "agent/comfyui.hpp"

#include <gtest/gtest.h>
#include <signal.h>

#include <future>
#include <memory>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>

#include "net/io_threads.hpp"
#include "support/http.hpp"
#include "support/temp_dir.hpp"
#include "support/wait.hpp"

namespace comfyd::agent {
namespace {

using State = ComfyUi::State;
using support::wait_until;

bool is_alive(pid_t pid) {
    return ::kill(pid, 0) == 0;
}

// The double on the port, after what `before` says in a shell.
std::function<Result<ChildCommand>(std::uint16_t)> shell(std::string before) {
    return [before](std::uint16_t port) -> Result<ChildCommand> {
        const std::string script =
            before + "\nexec " COMFY_DOUBLE " --listen 127.0.0.1:" + std::to_string(port);
        return ChildCommand{"ComfyUI", "/bin/sh", {"-c", script}, {"PATH=/usr/bin:/bin"}};
    };
}

Task<Result<>> furnish(int tries) {
    if (tries == 1) {
        co_return fail(Code::not_found, "no nodes at try 1");
    }
    co_return Result<>();
}

Task<Result<>> wait_for_stop(std::stop_token stop) {
    while (!stop.stop_requested()) {
        co_await sleep_for(Millis(5));
    }
    co_return fail(Code::cancelled, "stopped");
}

class ComfyUiTest : public testing::Test {
protected:
    ComfyUiTest() {
        options_.log = folder_ / "comfyui.log";
        options_.times.pause_min = Millis(10);
        options_.times.pause_max = Millis(40);
        options_.times.look = Millis(20);
        options_.times.look_starting = Millis(20);
        options_.times.answer_max = Millis(2'000);
        options_.times.silent_max = Millis(500);
        options_.times.quiet = Millis(0);
        thread_.start();
    }
    ~ComfyUiTest() override {
        if (comfyui_) {
            on_thread(end());
        }
        thread_.stop();
    }

    void start(std::string before) {
        options_.command = shell(std::move(before));
        on_thread(begin());
    }
    Task<bool> begin() {
        http_ = std::make_unique<net::Client>(thread_.executor(), net::ClientOptions{});
        tasks_ = std::make_unique<TaskGroup>(thread_.executor());
        comfyui_ = std::make_unique<ComfyUi>(thread_.executor(), *http_, options_, [] {});
        comfyui_->start(*tasks_);
        co_return true;
    }
    Task<bool> end() {
        co_await comfyui_->stop();
        tasks_->cancel();
        co_await tasks_->join();
        comfyui_.reset();
        tasks_.reset();
        http_.reset();
        co_return true;
    }
    template <class T>
    T on_thread(Task<T> task) {
        return boost::asio::co_spawn(thread_.executor(), std::move(task), boost::asio::use_future)
            .get();
    }

    struct Seen {
        State state{};
        std::string reason;
        std::string url;
        std::string version;
        pid_t pid = 0;
        std::uint64_t restarts = 0;
        bool wants_rest = false;
    };
    Task<Seen> look() {
        co_return Seen{
            comfyui_->state(),
            comfyui_->reason(),
            comfyui_->url(),
            comfyui_->version(),
            comfyui_->pid(),
            comfyui_->restarts(),
            comfyui_->wants_rest()
        };
    }
    Seen seen() { return on_thread(look()); }
    bool wait_for(State state) {
        return wait_until([&] { return seen().state == state; });
    }
    Task<bool> work(int prompts) {
        for (int i = 0; i < prompts; ++i) {
            comfyui_->note_work(true);
        }
        co_return true;
    }
    Task<bool> restart() {
        comfyui_->restart("asked");
        co_return true;
    }

    support::TempDir folder_;
    ComfyUiOptions options_;
    net::IoThread thread_{"test"};
    std::unique_ptr<net::Client> http_;
    std::unique_ptr<TaskGroup> tasks_;
    std::unique_ptr<ComfyUi> comfyui_;
};

TEST_F(ComfyUiTest, IsReadyWhenItAnswers) {
    start("echo hello from ComfyUI");
    ASSERT_TRUE(wait_for(State::ready)) << seen().reason;
    EXPECT_FALSE(seen().version.empty());
    EXPECT_EQ(support::Http(seen().url).get("/prompt").status, 200);
    const pid_t pid = seen().pid;
    EXPECT_TRUE(is_alive(pid));
    EXPECT_NE(support::read_file(folder_ / "comfyui.log").find("hello"), std::string::npos);
    on_thread(end());
    EXPECT_FALSE(is_alive(pid));
}

TEST_F(ComfyUiTest, OneThatCrashedIsStartedAgain) {
    start("");
    ASSERT_TRUE(wait_for(State::ready));
    const pid_t first = seen().pid;
    ::kill(first, SIGKILL);
    ASSERT_TRUE(wait_until([&] { return seen().restarts == 1; }));
    ASSERT_TRUE(wait_for(State::ready));
    EXPECT_NE(seen().pid, first);
}

TEST_F(ComfyUiTest, FiveCrashesAreEnoughUntilSomebodyAsks) {
    start(
        "if [ -e " + (folder_ / "healed") +
        " ]; then :; else echo 'ImportError: no torch' >&2; exit 3; fi"
    );
    ASSERT_TRUE(wait_for(State::failed));
    EXPECT_EQ(seen().restarts, 5U);
    EXPECT_NE(seen().reason.find("status 3"), std::string::npos) << seen().reason;
    EXPECT_NE(seen().reason.find("ImportError: no torch"), std::string::npos) << seen().reason;
    folder_.write("healed", "");
    on_thread(restart());
    EXPECT_TRUE(wait_for(State::ready));
}

TEST_F(ComfyUiTest, OneThatHangsIsKilledWithAllItStarted) {
    const std::string file = folder_ / "child";
    start("sleep 1000 & echo $! > " + file);
    ASSERT_TRUE(wait_for(State::ready));
    const pid_t first = seen().pid;
    const pid_t child = std::stoi(support::read_file(file));
    ASSERT_TRUE(is_alive(child));
    ::kill(first, SIGSTOP);
    ASSERT_TRUE(wait_until([&] { return seen().restarts == 1; }));
    EXPECT_TRUE(wait_until([&] { return !is_alive(child) && !is_alive(first); }));
    ASSERT_TRUE(wait_for(State::ready));
}

TEST_F(ComfyUiTest, IsMadeAnewAfterItsJobsWhenIdle) {
    options_.recycle_jobs = 3;
    start("");
    ASSERT_TRUE(wait_for(State::ready));
    const pid_t first = seen().pid;
    on_thread(work(2));
    EXPECT_EQ(seen().restarts, 0U);
    on_thread(work(1));
    ASSERT_TRUE(wait_until([&] { return seen().restarts == 1; }));
    ASSERT_TRUE(wait_for(State::ready));
    EXPECT_NE(seen().pid, first);
}

TEST_F(ComfyUiTest, IsNotMadeAnewWhileItWorks) {
    options_.recycle_jobs = 1;
    start("");
    ASSERT_TRUE(wait_for(State::ready));
    support::Http http(seen().url);
    ASSERT_EQ(http.post("/_double/faults", R"({"dead_worker": true})").status, 200);
    const std::string prompt =
        R"({"prompt": {"1": {"class_type": "EmptyImage", "inputs": {"width": 64, "height": 64, "batch_size": 1, "color": 0}},
            "2": {"class_type": "SaveImage", "inputs": {"images": ["1", 0], "filename_prefix": "x"}}}})";
    ASSERT_EQ(http.post("/prompt", prompt).status, 200);
    on_thread(work(1));
    // Several looks, each of which sees the prompt that waits.
    std::size_t looks = 0;
    ASSERT_TRUE(wait_until([&] {
        ++looks;
        return http.get("/queue").json_at("/queue_pending/0").is_array() && looks > 30;
    }));
    EXPECT_EQ(seen().restarts, 0U);
    EXPECT_TRUE(wait_until([&] { return seen().wants_rest; }));
    ASSERT_EQ(http.post("/queue", R"({"clear": true})").status, 200);
    EXPECT_TRUE(wait_until([&] { return seen().restarts == 1; }));
    EXPECT_FALSE(seen().wants_rest);
}

TEST_F(ComfyUiTest, IsMadeAnewWhenItHoldsTooMuch) {
    options_.recycle_ram_bytes = 1;
    start("");
    EXPECT_TRUE(wait_until([&] { return seen().restarts >= 1; }));
}

TEST_F(ComfyUiTest, OneOfSomebodyElseIsOnlyWatched) {
    options_.port = 0;
    options_.address = "127.0.0.1:1";
    start("");
    ASSERT_TRUE(wait_until([&] { return !seen().reason.empty(); }));
    EXPECT_EQ(seen().state, State::starting);
    EXPECT_EQ(seen().pid, 0);
    EXPECT_EQ(seen().url, "http://127.0.0.1:1");
}

TEST_F(ComfyUiTest, IsStartedOnceItHasWhatItNeeds) {
    int tries = 0;
    options_.furnish = [&](std::stop_token) { return furnish(++tries); };
    start("");
    ASSERT_TRUE(wait_for(State::failed));
    EXPECT_EQ(seen().reason, "no nodes at try 1");
    EXPECT_EQ(seen().pid, 0);
    on_thread(restart());
    ASSERT_TRUE(wait_for(State::ready));
    EXPECT_EQ(tries, 2);
    on_thread(restart());
    EXPECT_TRUE(wait_until([&] { return seen().restarts == 1; }));
    ASSERT_TRUE(wait_for(State::ready));
    EXPECT_EQ(tries, 2) << "it has them";
}

TEST_F(ComfyUiTest, AStopEndsTheWaitForWhatItNeeds) {
    options_.furnish = [](std::stop_token stop) { return wait_for_stop(std::move(stop)); };
    start("");
    EXPECT_TRUE(wait_until([&] { return seen().reason == "its node packs are being fetched"; }));
    EXPECT_EQ(seen().state, State::starting);
    on_thread(end());
    EXPECT_FALSE(comfyui_);
}

}  // namespace
}  // namespace comfyd::agent
