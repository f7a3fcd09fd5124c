#include "base/supervisor.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <optional>

#include <boost/asio/io_context.hpp>

namespace comfyd {
namespace {

ChildCommand shell(std::string script) {
    return {"test", "/bin/sh", {"-c", std::move(script)}, {}};
}

bool is_alive(pid_t pid) {
    return ::kill(pid, 0) == 0;
}

Task<> wait_for_end(ChildProcess& child, std::string& end) {
    end = co_await child.wait();
}

std::string end_of(const ChildCommand& command) {
    boost::asio::io_context context;
    auto child = ChildProcess::start(context.get_executor(), command);
    if (!child) {
        return child.error().message;
    }
    TaskGroup group(context.get_executor());
    std::string end;
    group.spawn("wait", wait_for_end(**child, end));
    context.run();
    return end;
}

TEST(ChildProcess, SaysHowItEnded) {
    EXPECT_EQ(end_of(shell("exit 0")), "status 0");
    EXPECT_EQ(end_of(shell("exit 7")), "status 7");
    EXPECT_EQ(end_of(shell("kill -9 $$")), "signal 9 (Killed)");
    EXPECT_NE(end_of({"test", "/no/such/program"}).find("No such file"), std::string::npos);
}

TEST(ChildProcess, InheritsNeitherEnvironmentNorFiles) {
    ::setenv("COMFYD_TEST_SECRET", "x", 1);
    const int file = ::dup(STDOUT_FILENO);  // open in a child, unless somebody closes it
    auto command = shell(
        "[ -z \"$COMFYD_TEST_SECRET\" ] && [ \"$GIVEN\" = 1 ] && [ ! -e /proc/self/fd/" +
        std::to_string(file) + " ]"
    );
    command.environment = {"GIVEN=1"};
    EXPECT_EQ(end_of(command), "status 0");
    ::close(file);
    ::unsetenv("COMFYD_TEST_SECRET");
}

TEST(ChildProcess, DoesNotOutliveItsOwner) {
    boost::asio::io_context context;
    auto child = ChildProcess::start(
        context.get_executor(), shell("trap '' TERM; while true; do sleep 0.01; done")
    );
    ASSERT_TRUE(child) << child.error().message;
    const pid_t pid = (*child)->pid();
    EXPECT_TRUE(is_alive(pid));
    child->reset();
    EXPECT_FALSE(is_alive(pid));
}

class SupervisorTest : public testing::Test {
protected:
    // Runs `command` until `ends` children have ended, each killed by `end`, then stops.
    void supervise(ChildCommand command, std::uint64_t ends) {
        TaskGroup group(context_.get_executor());
        Supervisor supervisor(context_.get_executor(), std::move(command), options_, [this] {
            ended_.notify();
        });
        supervisor.start(group);
        group.spawn("test", end_children(supervisor, ends));
        context_.run();
        EXPECT_EQ(supervisor.ends(), ends);
        EXPECT_EQ(supervisor.pid(), 0);
    }

    Task<> end_children(Supervisor& supervisor, std::uint64_t ends) {
        while (supervisor.ends() < ends) {
            if (supervisor.pid() != 0) {
                pids_.push_back(supervisor.pid());
                supervisor.end_child();
            }
            co_await ended_.wait_for(Millis(1));
        }
        while (supervisor.pid() == 0) {
            co_await sleep_for(Millis(1));
        }
        pids_.push_back(supervisor.pid());
        co_await supervisor.stop();
    }

    boost::asio::io_context context_;
    SupervisorOptions options_;
    Signal ended_{context_.get_executor()};
    std::vector<pid_t> pids_;
};

TEST_F(SupervisorTest, AChildThatIsEndedIsFollowedByTheNext) {
    options_.pause_min = options_.pause_max = std::chrono::hours(1);  // not after our own hand
    supervise(shell("exec sleep 1000"), 3);
    for (const pid_t pid : pids_) {
        EXPECT_FALSE(is_alive(pid));
    }
}

TEST_F(SupervisorTest, AChildThatDoesNotGoIsKilled) {
    options_.grace = Millis(10);
    supervise(shell("trap '' TERM; while true; do sleep 0.01; done"), 0);
    EXPECT_FALSE(is_alive(pids_.back()));
}

TEST_F(SupervisorTest, AChildThatDiesAgainAndAgainIsStartedAgain) {
    options_.pause_min = Millis(1);
    options_.pause_max = Millis(4);
    TaskGroup group(context_.get_executor());
    int deaths = 0;
    std::optional<Supervisor> supervisor;
    supervisor.emplace(context_.get_executor(), shell("exit 1"), options_, [&] {
        if (++deaths == 5) {
            group.spawn("stop", supervisor->stop());
        }
    });
    supervisor->start(group);
    context_.run();
    EXPECT_EQ(deaths, 5);
}

}  // namespace
}  // namespace comfyd
