// A worker that stands still: its job is done by another one, and what it takes up again when it
// goes on is stopped and changes nothing.
#include <gtest/gtest.h>

#include "support/comfyd.hpp"

namespace comfyd::support {
namespace {

class FrozenWorker : public testing::Test {
protected:
    // The process that the journal's first line about a start names.
    pid_t first_to_run() const {
        const std::string text = read_file(journal_);
        const auto end = text.find('\n');
        return end == std::string::npos
                   ? 0
                   : static_cast<pid_t>(std::stol(text.substr(text.rfind(' ', end) + 1)));
    }

    TempDir folder_;
    std::string journal_ = folder_ / "journal";
    std::vector<std::string> command_{COMFY_DOUBLE, "--delay-ms", "1500", "--journal", journal_};
    Process first_{command_};
    Process second_{command_};
};

TEST_F(FrozenWorker, LosesItsJobToAnotherOne) {
    const auto first_url = first_.wait_for_line("listening on ");
    const auto second_url = second_.wait_for_line("listening on ");
    ASSERT_TRUE(first_url && second_url);
    ComfydOptions options;
    options.arguments = {"--no-engine", "--worker", *first_url, "--worker", *second_url};
    for (const char* setting : {"fleet.poll_ms=100", "fleet.lost_after_s=1"}) {
        options.arguments.insert(options.arguments.end(), {"--set", setting});
    }
    Comfyd comfyd(options);
    const std::string id = comfyd.submit(text_to_image("frozen"));
    ASSERT_TRUE(wait_until([&] { return first_to_run() != 0; }));
    Process& frozen = first_to_run() == first_.pid() ? first_ : second_;
    frozen.kill(SIGSTOP);

    const json::value job = comfyd.wait_finished(id);
    ASSERT_EQ(Comfyd::status_of(job), "succeeded") << json::serialize(job) << comfyd.log();
    const json::array& attempts = job.at("attempts").as_array();
    ASSERT_EQ(attempts.size(), 2U);
    EXPECT_EQ(attempts[0].at("cause"), "worker_lost");

    frozen.kill(SIGCONT);
    Http direct(&frozen == &first_ ? *first_url : *second_url);
    EXPECT_TRUE(wait_until([&] {
        return direct.get("/queue").json_at("/queue_running") == json::value(json::array());
    }));
    const json::value after = comfyd.job(id);
    EXPECT_EQ(after.at("status"), job.at("status"));
    EXPECT_EQ(after.at("attempts"), job.at("attempts"));
    const std::string next = comfyd.submit(text_to_image("next"));
    EXPECT_EQ(Comfyd::status_of(comfyd.wait_finished(next)), "succeeded");
}

}  // namespace
}  // namespace comfyd::support
