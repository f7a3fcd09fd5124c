// GET /history when prompts are large: the newest come, and what is left out is told.
#include <gtest/gtest.h>

#include <vector>

#include "support/comfyd.hpp"

namespace comfyd::support {
namespace {

json::object long_text(std::size_t bytes, int number) {
    const std::string text = std::string(bytes, 'a') + std::to_string(number);
    return {
        {"1", {{"class_type", "StringLength"}, {"inputs", {{"string", text}}}}},
        {"2", {{"class_type", "PreviewAny"}, {"inputs", {{"source", json::array{"1", 0}}}}}},
    };
}

TEST(NativeHistory, HoldsTheNewestPromptsForWhichThereIsRoom) {
    constexpr std::size_t kBytes = 9 * 1024 * 1024;  // seven fit into one answer
    Comfyd comfyd;
    std::vector<std::string> ids;
    for (int i = 0; i < 9; ++i) {
        ids.push_back(comfyd.submit(long_text(kBytes, i)));
        ASSERT_EQ(Comfyd::status_of(comfyd.wait_finished(ids.back())), "succeeded");
    }
    const Reply all = comfyd.http().get("/history");
    ASSERT_EQ(all.status, 200);
    EXPECT_EQ(all.headers.get("X-Comfyd-Left-Out"), "2");
    const json::value history = all.json();
    std::vector<std::string> shown;
    for (const auto& [id, entry] : history.as_object()) {
        shown.emplace_back(id);
        EXPECT_EQ(
            entry.at("prompt").at(2).at("1").at("inputs").at("string").as_string().size(),
            kBytes + 1
        );
    }
    ASSERT_EQ(shown.size(), 7U);

    // One of any size comes whole, and some by number.
    const Reply newest = comfyd.http().get("/history?max_items=1");
    EXPECT_EQ(newest.headers.get("X-Comfyd-Left-Out"), "");
    ASSERT_EQ(newest.json().as_object().size(), 1U);
    EXPECT_EQ(newest.json().as_object().begin()->key(), shown.back());
    const Reply oldest = comfyd.http().get("/history?offset=0&max_items=2");
    EXPECT_EQ(oldest.json().as_object().size(), 2U);
    EXPECT_FALSE(oldest.json().as_object().contains(shown.front()));
}

}  // namespace
}  // namespace comfyd::support
