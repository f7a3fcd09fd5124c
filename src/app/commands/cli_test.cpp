#include "app/commands/cli.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace comfyd::app {
namespace {

using testing::HasSubstr;
using testing::Not;

struct Ended {
    int code = 0;
    std::string errors;
};

Ended run(std::vector<std::string> words) {
    std::vector<char*> arguments;
    words.insert(words.begin(), "comfyd");
    for (std::string& word : words) {
        arguments.push_back(word.data());
    }
    testing::internal::CaptureStderr();
    const int code = run_command_line(static_cast<int>(arguments.size()), arguments.data());
    return {code, testing::internal::GetCapturedStderr()};
}

TEST(CommandLine, AnUnknownCommandIsNamedWithThoseThereAre) {
    const Ended ended = run({"foo", "--bar"});
    EXPECT_EQ(ended.code, kExitUsage);
    EXPECT_THAT(ended.errors, HasSubstr("there is no command 'foo'"));
    EXPECT_THAT(ended.errors, HasSubstr("serve, config, run"));
    EXPECT_THAT(ended.errors, Not(HasSubstr("did you mean")));
}

TEST(CommandLine, ASlipIsPutRight) {
    EXPECT_THAT(run({"serv"}).errors, HasSubstr("did you mean `comfyd serve`?"));
    EXPECT_THAT(run({"valdate", "x.json"}).errors, HasSubstr("did you mean `comfyd validate`?"));
}

TEST(CommandLine, AFileIsSomethingToRun) {
    EXPECT_THAT(
        run({COMFYD_TEST_DATA}).errors,
        HasSubstr("did you mean `comfyd run " + std::string(COMFYD_TEST_DATA) + "`?")
    );
}

}  // namespace
}  // namespace comfyd::app
