// A job that was running on the embedded engine when the process died may be why it died: it has
// used an attempt, and it does not take the process down for ever.
#include <gtest/gtest.h>

#include "support/comfyd.hpp"

namespace comfyd::support {
namespace {

// Blurs for much longer than it takes to see that it runs.
json::object long_work() {
    json::object prompt;
    prompt["1"] = {
        {"class_type", "EmptyImage"},
        {"inputs", {{"width", 1024}, {"height", 1024}, {"batch_size", 1}, {"color", 255}}}
    };
    std::string before = "1";
    for (int i = 2; i < 80; ++i) {
        const json::array image{json::value(before), 0};
        before = std::to_string(i);
        prompt[before] = {
            {"class_type", "ImageBlur"},
            {"inputs", {{"image", image}, {"blur_radius", 31}, {"sigma", 10.0}}}
        };
    }
    prompt["shown"] = {
        {"class_type", "PreviewImage"},
        {"inputs", {{"images", json::array{json::value(before), 0}}}}
    };
    return prompt;
}

bool wait_running(Comfyd& comfyd, const std::string& id, int attempt) {
    return wait_until([&] {
        const json::value job = comfyd.job(id);
        return Comfyd::status_of(job) == "running" && job.at("attempt") == attempt;
    });
}

TEST(ProcessDeath, UsesAnAttemptAndTheSecondOneIsTheLast) {
    Comfyd comfyd;
    const std::string id = comfyd.submit(long_work());
    const std::string next = comfyd.submit(
        {{"1",
          {{"class_type", "EmptyImage"},
           {"inputs", {{"width", 8}, {"height", 8}, {"batch_size", 1}, {"color", 7}}}}},
         {"2", {{"class_type", "PreviewImage"}, {"inputs", {{"images", json::array{"1", 0}}}}}}}
    );
    ASSERT_TRUE(wait_running(comfyd, id, 1));
    comfyd.restart();  // by SIGKILL
    ASSERT_TRUE(wait_running(comfyd, id, 2));
    comfyd.restart();
    const json::value job = comfyd.wait_finished(id);
    EXPECT_EQ(Comfyd::status_of(job), "failed") << json::serialize(job);
    EXPECT_EQ(job.at("attempt"), 2);
    const std::string message(job.at("error").at("message").as_string());
    EXPECT_NE(message.find("ended twice"), std::string::npos) << message;
    // Others are not held up by it.
    EXPECT_EQ(Comfyd::status_of(comfyd.wait_finished(next)), "succeeded");
}

TEST(ProcessDeath, AnOrderlyStopUsesNone) {
    Comfyd comfyd;
    const std::string id = comfyd.submit(long_work());
    for (int stops = 0; stops < 3; ++stops) {
        ASSERT_TRUE(wait_running(comfyd, id, 1));
        comfyd.stop();
        comfyd.start();
    }
    ASSERT_TRUE(wait_running(comfyd, id, 1));
    comfyd.http().post_json("/api/v2/jobs/" + id + "/cancel", {});
    comfyd.wait_finished(id);
}

}  // namespace
}  // namespace comfyd::support
