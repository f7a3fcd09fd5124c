#include "notify/routing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "notify/deliveries.hpp"

namespace comfyd::notify {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Route to(std::string name, std::vector<std::string> events = {}) {
    Route route;
    route.to.endpoint = std::move(name);
    route.events = std::move(events);
    return route;
}

jobs::Job job_of(std::string tenant, std::string workflow = "") {
    jobs::Job job;
    job.tenant = std::move(tenant);
    job.workflow_id = std::move(workflow);
    return job;
}

std::vector<std::string> told(const Routing& routing, const jobs::Job& job, jobs::EventType type) {
    jobs::Event event;
    event.type = type;
    std::vector<std::string> names;
    for (const Recipient& one : routing.now()->of(job, event)) {
        names.push_back(one.endpoint);
    }
    return names;
}

TEST(Routing, RulesAndEndpointsStandBesideEachOther) {
    using enum jobs::EventType;
    Routing routing({to("rule", {"execution.failed"})});
    EXPECT_THAT(told(routing, job_of("acme"), failed), ElementsAre("rule"));
    EXPECT_THAT(told(routing, job_of("acme"), expired), ElementsAre("rule"));
    Route endpoint = to("endpoint");
    endpoint.tenant = "acme";
    routing.set_endpoints({endpoint});
    EXPECT_THAT(told(routing, job_of("acme"), failed), ElementsAre("rule", "endpoint"));
    EXPECT_THAT(told(routing, job_of("acme"), completed), ElementsAre("endpoint"));
    EXPECT_THAT(told(routing, job_of("other"), completed), IsEmpty());
    EXPECT_THAT(told(routing, job_of("acme"), started), IsEmpty());
    routing.set_endpoints({});
    EXPECT_THAT(told(routing, job_of("acme"), failed), ElementsAre("rule"));
}

TEST(Routing, ProgressIsWantedWhereSomebodyAsksForIt) {
    Route progress = to("a", {"execution.progress"});
    progress.tenant = "acme";
    progress.workflow_id = "portrait";
    Routing routing;
    EXPECT_FALSE(routing.now()->want_progress(job_of("acme", "portrait")));
    routing.set_endpoints({progress});
    EXPECT_TRUE(routing.now()->want_progress(job_of("acme", "portrait")));
    EXPECT_FALSE(routing.now()->want_progress(job_of("acme", "other")));
    EXPECT_FALSE(routing.now()->want_progress(job_of("other", "portrait")));
}

TEST(DeliveryKey, ComesBackFromItsText) {
    const JobId job = JobId::make(from_unix_ms(1));
    for (const char* endpoint : {"", "endpoint:x", "rule_with_lines"}) {
        const DeliveryKey key{job, endpoint, 7};
        EXPECT_EQ(DeliveryKey::parse(key.to_string()), key) << endpoint;
    }
    const std::string id = job.to_string();
    for (const std::string& text :
         {std::string(),
          id,
          id + "_",
          id + "_x",
          id + "_7_",
          id + "_-1",
          std::string("x_7"),
          id + "_7x_a",
          id + "_99999999999999999999999"}) {
        EXPECT_FALSE(DeliveryKey::parse(text)) << text;
    }
}

}  // namespace
}  // namespace comfyd::notify
