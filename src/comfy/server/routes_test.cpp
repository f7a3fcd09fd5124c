#include "comfy/server/routes.hpp"

#include <gtest/gtest.h>

#include <set>

namespace comfyd::comfy::server {
namespace {

std::set<std::string> all_paths() {
    std::set<std::string> paths;
    for (const Route& route : all_routes()) {
        const std::string line = std::string(to_string(route.method)) + " " + route.path;
        EXPECT_TRUE(paths.insert(line).second) << line << " is there twice";
    }
    return paths;
}

TEST(Routes, StandWithAndWithoutThePrefix) {
    const auto paths = all_paths();
    for (const std::string& path : paths) {
        const auto slash = path.find('/');
        if (path.find("/internal/") != std::string::npos) {
            EXPECT_FALSE(path.substr(slash).starts_with("/api/")) << path;
        } else if (path.substr(slash).starts_with("/api/jobs")) {
            EXPECT_FALSE(paths.contains(path.substr(0, slash) + path.substr(slash + 4))) << path;
        } else if (!path.substr(slash).starts_with("/api/")) {
            EXPECT_TRUE(paths.contains(path.substr(0, slash) + "/api" + path.substr(slash)))
                << path;
        }
    }
    EXPECT_TRUE(paths.contains("GET /api/ws"));
    EXPECT_TRUE(paths.contains("DELETE /userdata/{file}"));
}

TEST(Routes, LiteralSegmentsStandBeforeTheParametersThatWouldTakeThem) {
    const auto routes = all_routes();
    const auto place = [&](std::string_view path) {
        for (std::size_t i = 0; i < routes.size(); ++i) {
            if (routes[i].path == path) {
                return i;
            }
        }
        return routes.size();
    };
    EXPECT_LT(place("/api/jobs/cancel"), place("/api/jobs/{job_id}"));
}

}  // namespace
}  // namespace comfyd::comfy::server
