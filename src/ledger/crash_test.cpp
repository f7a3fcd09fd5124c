// A process that is killed in the middle of writing loses nothing that it was told is durable.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "ledger/sqlite/database.hpp"
#include "ledger/test_support.hpp"
#include "support/postgres.hpp"

namespace comfyd::ledger::test {
namespace {

constexpr char kUrlVariable[] = "COMFYD_CRASH_TEST_URL";
constexpr int kReportDescriptor = 3;

// One line per durable step: "<job> <revision>".
void report(const JobId& id, int revision) {
    const auto line = id.to_string() + " " + std::to_string(revision) + "\n";
    if (::write(kReportDescriptor, line.data(), line.size()) < 0) {
        std::_Exit(1);
    }
}

constexpr std::string_view kSqlite = "sqlite:";

std::unique_ptr<ledger::Storage> open_in_child(std::string_view url, Clock& clock) {
    if (!url.starts_with(kSqlite)) {
        return get(open_storage(url, {}, clock));
    }
    SqliteLedger::Options options;
    options.path = url.substr(kSqlite.size());
    options.wal_bytes_soft = 256 * 1024;  // so that kills also fall into checkpoints
    options.wal_bytes_max = 1024 * 1024;
    return get(SqliteLedger::open(options, clock));
}

Task<> write_forever(ledger::Storage& ledger, const Clock& clock) {
    while (true) {
        jobs::NewJob made;
        made.spec = full_spec();
        made.spec.idempotency_key.clear();
        made.change = jobs::make_job(JobId::make(clock.now()), made.spec, clock.now());
        auto job = made.change.job;
        auto accepted = co_await ledger.accept(std::move(made));
        get(std::move(accepted));
        report(job.id, job.revision);
        auto started = get(jobs::start(job, "worker", 2, clock.now()));
        auto first = co_await ledger.commit(started);
        get(std::move(first));
        report(job.id, started.job.revision);
        auto completed = get(jobs::complete(started.job, {}, {}, 3, clock.now()));
        jobs::Usage usage;
        usage.gpu = Millis(7);
        jobs::add_usage(completed, usage);
        auto second = co_await ledger.commit(completed);
        get(std::move(second));
        report(job.id, completed.job.revision);
    }
}

// Runs in the process that is killed; disabled, because on its own it would never end.
TEST(CrashChild, DISABLED_Writes) {
    const char* url = std::getenv(kUrlVariable);
    ASSERT_NE(url, nullptr);
    SystemClock clock;
    const auto ledger = open_in_child(url, clock);
    boost::asio::io_context io(1);
    for (int i = 0; i < 16; ++i) {
        boost::asio::co_spawn(io, write_forever(*ledger, clock), [](std::exception_ptr) {
            std::_Exit(1);
        });
    }
    io.run();
}

// Each job has a record of an output, and some have a delivery that was made.
Task<> end_forever(ledger::Storage& ledger, const Clock& clock) {
    while (true) {
        jobs::NewJob made;
        made.spec = full_spec();
        made.spec.webhook.reset();
        made.change = jobs::make_job(JobId::make(clock.now()), made.spec, clock.now());
        made.spec.idempotency_key = made.change.job.id.to_string();
        const auto job = made.change.job;
        auto accepted = co_await ledger.accept(std::move(made));
        get(std::move(accepted));
        auto started = get(jobs::start(job, "worker", 2, clock.now()));
        auto first = co_await ledger.commit(started);
        get(std::move(first));
        jobs::Output output = full_output(clock.now());
        output.bytes = std::make_shared<const std::string>(output.asset.to_string());
        output.hash = "blake3:" + *output.bytes;
        auto completed = get(jobs::complete(started.job, {output}, {}, 3, clock.now()));
        auto second = co_await ledger.commit(completed);
        get(std::move(second));
    }
}

Task<> purge_forever(ledger::Storage& ledger, const Clock& clock) {
    while (true) {
        auto purged = co_await ledger.purge(clock.now() - Millis(50), 8);
        if (get(std::move(purged)).jobs > 0) {
            report(JobId{}, 1);
        }
    }
}

TEST(CrashChild, DISABLED_Purges) {
    const char* url = std::getenv(kUrlVariable);
    ASSERT_NE(url, nullptr);
    SystemClock clock;
    const auto ledger = open_in_child(url, clock);
    boost::asio::io_context io(1);
    const auto fail_loudly = [](std::exception_ptr) { std::_Exit(1); };
    for (int i = 0; i < 8; ++i) {
        boost::asio::co_spawn(io, end_forever(*ledger, clock), fail_loudly);
    }
    boost::asio::co_spawn(io, purge_forever(*ledger, clock), fail_loudly);
    io.run();
}

struct Child {
    pid_t id = 0;
    std::FILE* report = nullptr;
};

Child start_child(const std::string& url, const std::string& test = "CrashChild.DISABLED_Writes") {
    std::array<int, 2> pipe{};
    if (::pipe2(pipe.data(), O_CLOEXEC) != 0) {
        throw std::runtime_error("no pipe");
    }
    const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
    std::vector<std::string> arguments{
        self, "--gtest_filter=" + test, "--gtest_also_run_disabled_tests"
    };
    std::vector<char*> argv;
    for (auto& argument : arguments) {
        argv.push_back(argument.data());
    }
    argv.push_back(nullptr);
    ::setenv(kUrlVariable, url.c_str(), 1);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, pipe[1], kReportDescriptor);
    ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    Child child;
    const int failed =
        ::posix_spawn(&child.id, self.c_str(), &actions, nullptr, argv.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(pipe[1]);
    if (failed != 0) {
        throw std::runtime_error("cannot start " + self);
    }
    child.report = ::fdopen(pipe[0], "r");
    return child;
}

// Reads reports, kills the child after `lines` of them, and reads what it had still said.
std::map<std::string, int> collect_and_kill(Child child, int lines) {
    std::map<std::string, int> durable;
    std::array<char, 37> id{};
    int revision = 0;
    int seen = 0;
    char end = 0;
    // A last line that was cut off has no newline and does not count.
    while (std::fscanf(child.report, "%36s %d%c", id.data(), &revision, &end) == 3) {
        durable[id.data()] = revision;
        if (++seen == lines) {
            ::kill(child.id, SIGKILL);
        }
    }
    std::fclose(child.report);
    int status = 0;
    ::waitpid(child.id, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status)) << "the child ended by itself";
    return durable;
}

class CrashTest : public testing::TestWithParam<std::string> {
protected:
    bool is_sqlite() const { return GetParam() == "sqlite"; }
    std::unique_ptr<ledger::Storage> open() {
        if (!is_sqlite()) {
            // The server may be at work still on what the child had sent.
            EXPECT_TRUE(support::wait_until([this] {
                return count(
                           "SELECT count(*) FROM pg_stat_activity WHERE datname = "
                           "current_database() AND pid <> pg_backend_pid()"
                       ) == 0;
            }));
        }
        return get(open_storage(url_, {}, clock_));
    }
    std::int64_t count(const char* sql) {
        if (!is_sqlite()) {
            return std::stoll(support::run_sql(url_, sql));
        }
        return get(raw()->integer(sql));
    }
    std::unique_ptr<sqlite::Database> raw() {
        return get(sqlite::Database::open(path(), sqlite::Mode::read_write, Millis(0)));
    }
    void check_file() {
        if (is_sqlite()) {
            const auto db = raw();
            sqlite::Query query(*db, "PRAGMA integrity_check");
            ASSERT_TRUE(get(query.bind().next()));
            EXPECT_EQ(query.text(0), "ok");
        }
    }

    SystemClock clock_;
    TempFolder folder_;
    std::filesystem::path path() const { return folder_.path() / "ledger.db"; }
    const std::string url_ =
        is_sqlite() ? std::string(kSqlite) + path().string() : make_postgres_database();
};
INSTANTIATE_TEST_SUITE_P(
    Ledger,
    CrashTest,
    testing::Values("sqlite", "postgres"),
    [](const auto& info) { return info.param; }
);

TEST_P(CrashTest, EverythingReportedDurableIsThereAfterAKill) {
    std::map<std::string, int> durable;
    for (const int lines : {1, 100, 777, 2'000}) {
        durable.merge(collect_and_kill(start_child(url_), lines));
        const auto ledger = open();
        for (const auto& [text, revision] : durable) {
            const auto id = JobId::parse(text).value();
            const auto job = await_value(ledger->find(id));
            ASSERT_TRUE(job) << text;
            ASSERT_GE(job->revision, revision);
            ASSERT_TRUE(await_value(ledger->find_spec(id)));
            const auto events = await_value(ledger->events(id, 0));
            ASSERT_EQ(events.size(), static_cast<std::size_t>(job->revision));
            ASSERT_EQ(events.back().sequence, job->sequence);
        }
        const auto counts = await_value(ledger->counts(std::nullopt));
        std::uint64_t total = 0;
        for (const auto of_state : counts.by_state) {
            total += of_state;
        }
        EXPECT_GE(total, durable.size());
        // The sums were written with the ends that they count: neither more nor less.
        const auto stats = await_value(
            ledger->stats({std::nullopt, clock_.now() - std::chrono::hours(1), clock_.now()})
        );
        EXPECT_EQ(stats.totals.completed, counts.of(jobs::State::completed));
        EXPECT_EQ(stats.totals.gpu, Millis(7 * stats.totals.completed));
    }
    check_file();
    EXPECT_GT(durable.size(), 500U);
}

TEST_P(CrashTest, AKillInTheMiddleOfAPurgeLeavesNothingHalfRemoved) {
    for (const int steps : {1, 20, 100}) {
        collect_and_kill(start_child(url_, "CrashChild.DISABLED_Purges"), steps);
        open().reset();  // recovers
        const auto jobs = count("SELECT count(*) FROM jobs");
        EXPECT_GT(jobs, 0);
        if (is_sqlite()) {
            EXPECT_EQ(count("SELECT count(*) FROM job_details"), jobs);
        }
        EXPECT_EQ(count("SELECT count(*) FROM job_specs"), jobs);
        EXPECT_EQ(count("SELECT count(*) FROM idempotency_keys"), jobs);
        EXPECT_EQ(count("SELECT sum(count) FROM counters WHERE kind = 0"), jobs);
        const auto completed = count("SELECT count(*) FROM jobs WHERE state = 3");
        EXPECT_EQ(count("SELECT count(*) FROM job_results"), completed);
        EXPECT_EQ(count("SELECT count(*) FROM assets"), completed);
        EXPECT_EQ(count("SELECT count(*) FROM contents"), completed);
        EXPECT_EQ(
            count(
                is_sqlite()
                    ? "SELECT count(*) FROM job_events WHERE number NOT IN (SELECT number FROM "
                      "jobs)"
                    : "SELECT count(*) FROM job_events WHERE job NOT IN (SELECT id FROM jobs)"
            ),
            0
        );
        check_file();
    }
}

}  // namespace
}  // namespace comfyd::ledger::test
