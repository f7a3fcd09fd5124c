// For the tests of the Comfy API v2: a small workflow and its submission.
#pragma once

#include <string>
#include <string_view>

#include "api/test_support.hpp"

namespace comfyd::api::test {

inline constexpr const char* kWorkflow =
    R"({"1":{"class_type":"EmptyImage","inputs":{"width":8}},)"
    R"("2":{"class_type":"SaveImage","inputs":{"images":["1",0]}}})";

inline std::string submission(const std::string& more = "") {
    return "{\"workflow\":" + std::string(kWorkflow) + more + "}";
}

inline std::string text(const json::object& in, std::string_view key) {
    return std::string(in.at(key).as_string());
}

// Submits and returns the job.
inline json::object submit_job(TestApi& api, const std::string& more = "") {
    const auto response = api.post("/api/v2/jobs", submission(more));
    EXPECT_EQ(response.status, 201) << response.body;
    return parse(response.body);
}

inline std::string self_of(const json::object& job) {
    return std::string(job.at("urls").at("self").as_string());
}

}  // namespace comfyd::api::test
