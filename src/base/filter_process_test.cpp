#include "base/filter_process.hpp"

#include <gmock/gmock.h>

namespace comfyd {
namespace {

using testing::HasSubstr;

const FilterLimits kPlenty{Millis(60'000), 64 * 1024 * 1024};

Result<std::string> run_shell(
    const std::string& script, std::string_view input = {}, FilterLimits limits = kPlenty
) {
    return run_filter({"a filter", "/bin/sh", {"-c", script}}, input, limits);
}

TEST(FilterProcess, BytesGoInAndComeOut) {
    for (const std::size_t size : {0U, 1U, 4'096U, 70'000U, 5'000'000U}) {
        std::string input(size, '\0');
        for (std::size_t i = 0; i < size; ++i) {
            input[i] = static_cast<char>(i * 31 + i / 251);
        }
        const auto output = run_shell("exec cat", input);
        ASSERT_TRUE(output) << output.error().message;
        EXPECT_TRUE(*output == input) << size;
    }
}

TEST(FilterProcess, OneThatDoesNotReadItsInputMayAnswer) {
    const auto output = run_shell("echo no, thank you", std::string(1'000'000, 'x'));
    ASSERT_TRUE(output) << output.error().message;
    EXPECT_EQ(*output, "no, thank you\n");
}

TEST(FilterProcess, HowItEndedIsTold) {
    const auto failed = run_shell("cat > /dev/null; exit 3", "x");
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().code, Code::worker_lost);
    EXPECT_THAT(failed.error().message, HasSubstr("status 3"));
    const auto killed = run_shell("kill -6 $$");
    ASSERT_FALSE(killed);
    EXPECT_THAT(killed.error().message, HasSubstr("signal 6"));
}

TEST(FilterProcess, OneThatDoesNotEndIsEnded) {
    const auto output = run_shell("exec sleep 600", {}, {Millis(50), 1'000});
    ASSERT_FALSE(output);
    EXPECT_EQ(output.error().code, Code::execution_timeout);
}

TEST(FilterProcess, OneThatWritesWithoutEndIsEnded) {
    const auto output = run_shell("exec cat /dev/zero", {}, {Millis(60'000), 1'000'000});
    ASSERT_FALSE(output);
    EXPECT_EQ(output.error().code, Code::payload_too_large);
}

TEST(FilterProcess, AProgramThatIsNotThereIsAnError) {
    const auto output = run_filter({"nothing", "/nowhere/program"}, {}, kPlenty);
    ASSERT_FALSE(output);
    EXPECT_EQ(output.error().code, Code::worker_unavailable);
}

}  // namespace
}  // namespace comfyd
