#include "media/helpers.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <future>
#include <optional>
#include <thread>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/use_future.hpp>

#include "media/serve.hpp"
#include "media/test_support.hpp"

namespace comfyd::media {
namespace {

using test::gradient;
using testing::AnyOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

std::uint64_t number_from(const char* name, std::uint64_t otherwise) {
    const char* value = std::getenv(name);
    return value == nullptr ? otherwise : std::strtoull(value, nullptr, 10);
}

// Not a test: what the helpers of the tests below run.
TEST(Helper, DISABLED_Serves) {
    if (std::getenv("HANGS") != nullptr) {
        const auto received = receive_order(STDIN_FILENO);
        for (;;) {
            ::pause();
        }
    }
    const int status = serve(
        {::getppid(),
         number_from("MEMORY_MB", 2048) << 20,
         std::chrono::milliseconds(number_from("TIME_MS", 30'000)),
         static_cast<int>(number_from("FILES", 100))}
    );
    ::_exit(status);
}

#if !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer)
TEST(Helper, HasNoSocketsNoProgramsAndNoFiles) {
    const pid_t parent = ::getpid();
    const pid_t child = ::fork();
    if (child == 0) {
        const auto missing = confine(confinement_of({parent, 2048ULL << 20, Millis(1'000), 1}));
        if (!missing || !missing->empty()) {
            ::_exit(77);
        }
        const bool has_socket = ::socket(AF_UNIX, SOCK_STREAM, 0) >= 0 || errno != EPERM;
        const bool has_file = ::open("/dev/null", O_RDONLY) >= 0 || errno != EPERM;
        const bool has_child = ::fork() >= 0 || errno != EPERM;
        ::execl("/bin/true", "true", nullptr);
        const bool has_programs = errno != EPERM;
        ::_exit(
            (has_socket ? 1 : 0) + (has_file ? 2 : 0) + (has_child ? 4 : 0) + (has_programs ? 8 : 0)
        );
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77) {
        GTEST_SKIP() << "this kernel cannot do all of it";
    }
    EXPECT_EQ(WEXITSTATUS(status), 0);
}
#endif

class HelpersTest : public testing::Test {
protected:
    HelpersTest() : work_(context_.get_executor()), thread_([this] { context_.run(); }) {}
    ~HelpersTest() override {
        helpers_.reset();
        work_.reset();
        thread_.join();
    }

    void start(unsigned processes = 1, std::vector<std::string> environment = {}) {
        options_.processes_max = processes;
        for (const char* name : {"ASAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS"}) {
            if (const char* value = std::getenv(name)) {
                environment.push_back(std::string(name) + "=" + value);
            }
        }
        options_.command = {
            "the helper",
            "/proc/self/exe",
            {"--gtest_also_run_disabled_tests", "--gtest_filter=Helper.DISABLED_Serves"},
            std::move(environment)
        };
        helpers_.emplace(options_);
    }

    std::future<Result<Answer>> ask(
        Source source, std::string_view wishes = "{}", std::stop_token stop = {}
    ) {
        Order order{
            "a.png", "", *jobs::OutputWishes::from_json(*json::parse_object(std::string(wishes)))
        };
        return boost::asio::co_spawn(
            context_.get_executor(),
            helpers_->ask(std::move(order), std::move(source), std::move(stop)),
            boost::asio::use_future
        );
    }
    static Source source(std::string bytes) {
        return std::make_shared<const std::string>(std::move(bytes));
    }

    // Waits for a helper that is at work.
    pid_t busy_helper() const {
        for (;;) {
            if (const auto pids = helpers_->pids(); !pids.empty()) {
                return pids.front();
            }
            std::this_thread::yield();
        }
    }

    boost::asio::io_context context_;
    boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
    std::thread thread_;
    HelpersOptions options_;
    std::optional<Helpers> helpers_;
};

TEST_F(HelpersTest, MakeWhatIsAskedForFromMemoryAndFromFiles) {
    start();
    const std::string file = test::png(gradient(900, 300));
    const std::string path = testing::TempDir() + "/helpers_test.png";
    std::ofstream(path, std::ios::binary) << file;
    for (const Source& where : {source(file), Source(std::filesystem::path(path))}) {
        const auto answer = ask(where, R"({"thumbnails": [512, 256], "format": "avif"})").get();
        ASSERT_TRUE(answer) << answer.error().message;
        EXPECT_THAT(answer->failed, IsEmpty());
        ASSERT_THAT(answer->variants, SizeIs(3));
        EXPECT_EQ(answer->facts.width, 900U);
        EXPECT_EQ(answer->variants[0].facts.format, "avif");
        EXPECT_EQ(answer->variants[1].facts.width, 512U);
        EXPECT_EQ(answer->variants[2].facts.width, 256U);
    }
    EXPECT_THAT(helpers_->pids(), SizeIs(1));
}

TEST_F(HelpersTest, AreOfNoMoreThanTheirNumberAndStay) {
    start(2);
    std::vector<std::future<Result<Answer>>> answers;
    for (int i = 0; i < 12; ++i) {
        answers.push_back(
            ask(source(test::png(gradient(200 + static_cast<std::size_t>(i), 100))),
                R"({"thumbnails": [256]})")
        );
    }
    for (auto& answer : answers) {
        EXPECT_TRUE(answer.get());
    }
    EXPECT_THAT(helpers_->pids(), AnyOf(SizeIs(1), SizeIs(2)));
    const auto before = helpers_->pids();
    EXPECT_TRUE(ask(source(test::png(gradient(20, 20)))).get());
    EXPECT_EQ(helpers_->pids().size(), before.size());
}

TEST_F(HelpersTest, AreRenewedAfterSomeFiles) {
    start(1, {"FILES=2"});
    const Source file = source(test::png(gradient(20, 20)));
    for (int round = 0; round < 3; ++round) {
        ASSERT_TRUE(ask(file).get());
        EXPECT_THAT(helpers_->pids(), SizeIs(1));
        ASSERT_TRUE(ask(file).get());
        EXPECT_THAT(helpers_->pids(), IsEmpty());
    }
}

TEST_F(HelpersTest, OneThatIsKilledFailsItsFileAlone) {
    start(1, {"HANGS=1"});
    const Source file = source(test::png(gradient(20, 20)));
    auto lost = ask(file);
    auto next = ask(file);
    const pid_t first = busy_helper();
    ::kill(first, SIGKILL);
    const auto answer = lost.get();
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, Code::worker_lost);
    EXPECT_THAT(answer.error().message, HasSubstr("signal 9"));
    const pid_t second = busy_helper();
    EXPECT_NE(first, second);
    ::kill(second, SIGKILL);
    EXPECT_FALSE(next.get());
}

TEST_F(HelpersTest, OneThatWasKilledWhileIdleIsReplaced) {
    start();
    const Source file = source(test::png(gradient(20, 20)));
    ASSERT_TRUE(ask(file).get());
    const pid_t idle = helpers_->pids().at(0);
    ::kill(idle, SIGKILL);
    // Its socket closes a moment later.
    while (::kill(idle, 0) == 0 &&
           !std::ifstream("/proc/" + std::to_string(idle) + "/cmdline").get()) {
        std::this_thread::yield();
    }
    bool is_replaced = false;
    for (int round = 0; round < 100 && !is_replaced; ++round) {
        ask(file).get();
        is_replaced = helpers_->pids().size() == 1 && helpers_->pids()[0] != idle;
    }
    EXPECT_TRUE(is_replaced);
}

TEST_F(HelpersTest, OneThatTakesTooLongIsEnded) {
    options_.time_max = Millis(1);
    start(1, {"HANGS=1"});
    const auto answer = ask(source(test::png(gradient(20, 20)))).get();
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, Code::execution_timeout);
    EXPECT_THAT(helpers_->pids(), IsEmpty());
}

TEST_F(HelpersTest, GiveUpByThemselvesBeforeTheyAreEnded) {
    start(1, {"TIME_MS=0"});
    const auto answer = ask(source(test::png(gradient(20, 20))), R"({"thumbnails": [256]})").get();
    ASSERT_TRUE(answer) << answer.error().message;
    ASSERT_THAT(answer->failed, SizeIs(1));
    EXPECT_THAT(answer->failed[0].reason, HasSubstr("longer"));
}

TEST_F(HelpersTest, HaveNoMoreMemoryThanTheyMay) {
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
    GTEST_SKIP() << "sanitizers take what they like";
#endif
#endif
    start(1, {"MEMORY_MB=300"});
    const auto answer =
        ask(source(test::flat_png(9000, 9000, 1)), R"({"thumbnails": [256]})").get();
    ASSERT_TRUE(answer) << answer.error().message;
    ASSERT_THAT(answer->failed, SizeIs(1));
    EXPECT_THAT(answer->variants, IsEmpty());
    // And do their work afterwards.
    const auto next = ask(source(test::png(gradient(500, 500))), R"({"thumbnails": [256]})").get();
    ASSERT_TRUE(next);
    EXPECT_THAT(next->failed, IsEmpty());
}

TEST_F(HelpersTest, LeaveAFileWhoseJobIsStopped) {
    start(1, {"HANGS=1"});
    const Source file = source(test::png(gradient(20, 20)));
    std::stop_source stop;
    auto running = ask(file, "{}", stop.get_token());
    auto waiting = ask(file, "{}", stop.get_token());
    busy_helper();
    stop.request_stop();
    EXPECT_EQ(running.get().error().code, Code::cancelled);
    EXPECT_EQ(waiting.get().error().code, Code::cancelled);
}

TEST_F(HelpersTest, SoManyFilesMayWaitAndNoMore) {
    options_.waiting_max = 2;
    start(1, {"HANGS=1"});
    const Source file = source(test::png(gradient(20, 20)));
    std::stop_source stop;
    std::vector<std::future<Result<Answer>>> answers;
    for (int i = 0; i < 4; ++i) {
        answers.push_back(ask(file, "{}", stop.get_token()));
    }
    EXPECT_EQ(answers[3].get().error().code, Code::queue_full);
    stop.request_stop();
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(answers[static_cast<std::size_t>(i)].get().error().code, Code::cancelled);
    }
}

TEST_F(HelpersTest, AFileThatIsGoneAndAProgramThatIsNoneAreSaid) {
    start();
    EXPECT_EQ(
        ask(Source(std::filesystem::path("/nowhere/a.png"))).get().error().code,
        Code::output_unavailable
    );
    helpers_.reset();
    options_.command.program = "/nowhere/comfyd";
    helpers_.emplace(options_);
    EXPECT_EQ(ask(source("x")).get().error().code, Code::worker_unavailable);
}

}  // namespace
}  // namespace comfyd::media
