#include "api/audit_trail.hpp"

#include <gtest/gtest.h>

#include "api/router.hpp"

namespace comfyd::api {
namespace {

std::string action(net::Method method, const char* pattern, Access access) {
    Route route;
    route.method = method;
    route.pattern = pattern;
    route.access = access;
    return action_of(route);
}

TEST(AuditActions, SayWhatARequestDoes) {
    using enum net::Method;
    EXPECT_EQ(action(post, "/admin/v1/keys", Access::admin), "key.create");
    EXPECT_EQ(action(get, "/admin/v1/keys/{id}", Access::admin), "key.read");
    EXPECT_EQ(action(post, "/admin/v1/keys/{id}/rotate", Access::admin), "key.rotate");
    EXPECT_EQ(action(del, "/admin/v1/keys/{id}", Access::admin), "key.delete");
    EXPECT_EQ(action(patch, "/admin/v1/tenants/{name}", Access::admin), "tenant.change");
    EXPECT_EQ(action(post, "/admin/v1/workers/{id}/drain", Access::admin), "worker.drain");
    EXPECT_EQ(action(post, "/v2/models/{folder}/{name}/rollback", Access::admin), "model.rollback");
    EXPECT_EQ(action(post, "/free", Access::admin), "worker.free");
    EXPECT_EQ(action(post, "/api/free", Access::admin), "worker.free");
    EXPECT_EQ(action(post, "/api/v2/jobs", Access::jobs), "job.create");
    EXPECT_EQ(action(post, "/prompt", Access::jobs), "job.create");
    EXPECT_EQ(action(post, "/api/v2/jobs/{id}/cancel", Access::jobs), "job.cancel");
    EXPECT_EQ(action(get, "/api/v2/jobs/{id}/events", Access::jobs), "job.read");
    EXPECT_EQ(action(post, "/v2/stream-tickets", Access::jobs_read), "job.read");
    EXPECT_EQ(action(del, "/api/v1/tasks/{id}", Access::jobs), "job.delete");
    EXPECT_EQ(action(put, "/v2/workflows/{name}", Access::workflows), "workflow.change");
    EXPECT_EQ(action(post, "/api/v2/assets", Access::assets), "asset.create");
    EXPECT_EQ(action(get, "/api/v2/assets/{id}/content", Access::open), "asset.read");
}

}  // namespace
}  // namespace comfyd::api
