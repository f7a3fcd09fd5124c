#include "base/processes.hpp"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <string>

#include "base/cgroup.hpp"
#include "base/daemon.hpp"
#include "support/temp_dir.hpp"
#include "support/wait.hpp"

namespace comfyd {
namespace {

using support::read_file;
using support::wait_until;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsSupersetOf;
using testing::Not;
using testing::SizeIs;

class Daemons : public testing::Test {
protected:
    ~Daemons() override {
        for (const ProcessMark& process : find_family(family())) {
            send_signal(process, SIGKILL);
        }
        for (const ProcessMark& daemon : started_) {
            send_signal(daemon, SIGKILL);  // one that has just begun carries no mark yet
            EXPECT_TRUE(wait_until([&daemon] { return !find_process(daemon.pid); }));
            forget_daemon(daemon.pid);
        }
    }

    ProcessMark start(const std::string& script) {
        const auto mark = start_daemon(
            {"test",
             "/bin/sh",
             {"-c", script},
             {"PATH=/usr/bin:/bin", "MARK=" + folder_.path().string()}},
            {folder_.path(), folder_.path() / "log"}
        );
        EXPECT_TRUE(mark) << mark.error().message;
        started_.push_back(*mark);
        return *mark;
    }
    ProcessFamily family(ProcessMark leader = {}) const {
        return {"MARK", folder_.path().string(), leader};
    }
    // The number that a script wrote there.
    pid_t pid_in(const std::string& file) {
        pid_t pid = 0;
        EXPECT_TRUE(wait_until([&] {
            const std::string text = read_file(folder_.path() / file);
            std::from_chars(text.data(), text.data() + text.size(), pid);
            return text.ends_with("\n");
        }));
        return pid;
    }
    void end(const ProcessMark& process) {
        EXPECT_TRUE(send_signal(process, SIGKILL));
        EXPECT_TRUE(wait_until([&] { return !is_running(process); }));
    }

    support::TempDir folder_;
    std::vector<ProcessMark> started_;
};

TEST_F(Daemons, LeadASessionInTheirFolderAndWriteToTheirLog) {
    const ProcessMark daemon = start("pwd; echo said >&2; cat; sleep 600");
    EXPECT_TRUE(wait_until([&] {
        return read_file(folder_.path() / "log") == folder_.path().string() + "\nsaid\n";
    }));
    const auto facts = find_process(daemon.pid);
    ASSERT_TRUE(facts);
    EXPECT_EQ(facts->mark, daemon);
    EXPECT_EQ(facts->session, daemon.pid);
    EXPECT_EQ(facts->parent, ::getpid());
    struct stat about{};
    ASSERT_EQ(::stat((folder_ / "log").c_str(), &about), 0);
    EXPECT_EQ(about.st_mode & 0777U, 0600U);
}

TEST_F(Daemons, WhatCannotBeStartedSaysWhy) {
    const auto mark =
        start_daemon({"test", "/no/such/program"}, {folder_.path(), folder_.path() / "log"});
    ASSERT_FALSE(mark);
    EXPECT_THAT(mark.error().message, HasSubstr("No such file"));
}

TEST_F(Daemons, OneThatHasEndedIsNotRunningThoughNobodyTookNotice) {
    const ProcessMark daemon = start("exit 0");
    EXPECT_NE(daemon.started, 0U);
    EXPECT_TRUE(wait_until([&] { return !is_running(daemon); }));
    EXPECT_EQ(process_start(daemon.pid), daemon.started);
    EXPECT_FALSE(send_signal(daemon, SIGKILL));
}

TEST_F(Daemons, ANumberThatIsUsedAgainIsNoMistake) {
    const ProcessMark daemon = start("sleep 600");
    const ProcessMark earlier{daemon.pid, daemon.started - 1};
    EXPECT_FALSE(is_running(earlier));
    EXPECT_FALSE(send_signal(earlier, SIGKILL));
    EXPECT_EQ(open_process(earlier), -1);
    EXPECT_TRUE(is_running(daemon));
    for (const pid_t nonsense : {0, -1, -daemon.pid}) {
        EXPECT_FALSE(send_signal({nonsense, daemon.started}, SIGKILL));
    }
}

TEST_F(Daemons, OneThatIsHeldIsSeenSo) {
    const ProcessMark daemon = start("sleep 600");
    EXPECT_FALSE(find_process(daemon.pid)->is_held());
    ASSERT_TRUE(send_signal(daemon, SIGSTOP));
    EXPECT_TRUE(wait_until([&] { return find_process(daemon.pid)->is_held(); }));
}

TEST_F(Daemons, AFamilyIsWhoeverStems) {
    const ProcessMark daemon = start(
        "(setsid sh -c 'echo $$ > own_session; sleep 600' &)\n"           // an orphan, elsewhere
        "env -i /bin/sh -c 'echo $$ > no_variable; sleep 600' &\n"        // a child of the session
        "env -i setsid -w /bin/sh -c 'echo $$ > neither; sleep 600' &\n"  // by its parent alone
        "wait"
    );
    const pid_t own_session = pid_in("own_session");
    const pid_t no_variable = pid_in("no_variable");
    const pid_t neither = pid_in("neither");
    const auto has = [](const std::vector<ProcessMark>& all, pid_t pid) {
        return std::ranges::find(all, pid, &ProcessMark::pid) != all.end();
    };
    const auto all = find_family(family(daemon));
    for (const pid_t pid : {daemon.pid, own_session, no_variable, neither}) {
        EXPECT_TRUE(has(all, pid)) << pid;
    }
    EXPECT_FALSE(has(all, ::getpid()));
    EXPECT_FALSE(has(all, ::getppid()));
    // Without the leader, by the variable and what has it for a parent.
    const auto unled = find_family(family());
    EXPECT_TRUE(has(unled, own_session));
    EXPECT_TRUE(has(unled, neither));
    EXPECT_THAT(find_family({"MARK", "another"}), IsEmpty());
    for (const ProcessMark& process : all) {
        send_signal(process, SIGKILL);
    }
    EXPECT_TRUE(wait_until([&] { return find_family(family(daemon)).empty(); }));
}

TEST_F(Daemons, AfterTheLeadersEndItsSessionIsKnownByWhatItSays) {
    const std::string name = folder_.path().string();
    const ProcessMark daemon = start(
        "env -i /bin/sh -c 'echo $$ > says; sleep 600; :' " + name +
        " &\n"
        "env -i /bin/sh -c 'echo $$ > silent; sleep 600; :' &\n"
        "wait"
    );
    const pid_t says = pid_in("says");
    const pid_t silent = pid_in("silent");
    const auto silent_ones = find_family(family(daemon));
    end(daemon);
    const auto found = find_family(family(daemon));
    const auto has = [&found](pid_t pid) {
        return std::ranges::find(found, pid, &ProcessMark::pid) != found.end();
    };
    EXPECT_TRUE(has(says));
    EXPECT_FALSE(has(silent));  // it might be a stranger's
    for (const ProcessMark& process : silent_ones) {
        send_signal(process, SIGKILL);
    }
    EXPECT_TRUE(wait_until([&] { return !find_process(silent) && !find_process(says); }));
}

TEST_F(Daemons, AControlGroupHoldsThoseThatGotAway) {
    // Its session, environment and parent are all gone.
    const ProcessMark daemon = start(
        "while [ ! -e go ]; do sleep 0.01; done\n"
        "env -i setsid /bin/sh -c '(sleep 600 & echo $! > lost)'\n"
        "sleep 600"
    );
    const std::string name = "comfyd-test-" + std::to_string(daemon.pid);
    const auto cgroup = put_into_cgroup(name, daemon.pid);
    folder_.write("go", "");
    const pid_t lost = pid_in("lost");
    const ProcessMark stray = find_process(lost)->mark;
    ProcessFamily all = family(daemon);
    EXPECT_TRUE(wait_until([&] { return std::ranges::count(find_family(all), stray) == 0; }));
    all.cgroup = cgroup;
    if (cgroup.empty()) {  // not a thing that every system gives to everybody
        EXPECT_THAT(processes_in(cgroup), IsEmpty());
        end(stray);
        return;
    }
    EXPECT_THAT(processes_in(cgroup), IsSupersetOf({daemon.pid, lost}));
    EXPECT_THAT(find_family(all), IsSupersetOf({daemon, stray}));
    EXPECT_EQ(put_into_cgroup(name, daemon.pid), cgroup);  // it is there
    for (const ProcessMark& process : find_family(all)) {
        send_signal(process, SIGKILL);
    }
    EXPECT_TRUE(wait_until([&] { return find_family(all).empty(); }));
    remove_cgroup(cgroup);
    EXPECT_FALSE(std::filesystem::exists(cgroup));
}

TEST_F(Daemons, WhereThereIsNoTreeOfGroupsNothingIsMade) {
    const ProcessMark daemon = start("sleep 600");
    EXPECT_EQ(put_into_cgroup("x", daemon.pid, folder_.path()), "");
    EXPECT_EQ(put_into_cgroup("x", daemon.pid, "/no/such/folder"), "");
    EXPECT_FALSE(std::filesystem::exists(folder_.path() / "x"));
    EXPECT_THAT(processes_in("/no/such/folder"), IsEmpty());
}

TEST_F(Daemons, ALogThatGrewGoesOnFromNothing) {
    start("echo 1234567890; while [ ! -e go ]; do sleep 0.01; done; echo after; sleep 600");
    const auto log = folder_.path() / "log";
    EXPECT_TRUE(wait_until([&] { return read_file(log) == "1234567890\n"; }));
    cut_log(log, 11);
    EXPECT_EQ(read_file(log), "1234567890\n");
    cut_log(log, 10);
    EXPECT_EQ(read_file(log), "");
    EXPECT_EQ(read_file(folder_ / "log.1"), "1234567890\n");
    folder_.write("go", "");
    EXPECT_TRUE(wait_until([&] { return read_file(log) == "after\n"; }));
    cut_log(folder_.path() / "no such file", 10);
}

}  // namespace
}  // namespace comfyd
