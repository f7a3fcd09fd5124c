#include <gtest/gtest.h>

#include "notify/routing.hpp"

namespace comfyd::notify {
namespace {

Route to(const std::string& address, std::vector<std::string> events = {}) {
    Route route;
    route.to = {"channel:ops:" + address, MailTarget{"ops", address}};
    route.events = std::move(events);
    return route;
}

struct Ended {
    jobs::Job job;
    jobs::Event event;
};

Ended ended(const std::string& tenant, const std::string& workflow, Millis ran) {
    jobs::Spec spec;
    spec.dialect = "test";
    spec.tenant = tenant;
    spec.workflow_id = workflow;
    const Time now = from_unix_ms(1'700'000'000'000);
    const auto made = jobs::make_job(JobId::make(now), spec, now);
    const auto started = jobs::start(made.job, "gpu", 2, now);
    const auto done = jobs::complete(started->job, {}, {}, 3, now + ran);
    return {done->job, done->event};
}

std::vector<std::string> told(const std::vector<Route>& rules, const Ended& what) {
    std::vector<std::string> addresses;
    for (const Recipient& one : Routes(rules).of(what.job, what.event)) {
        addresses.push_back(std::get<MailTarget>(one.target).address);
    }
    return addresses;
}

using Addresses = std::vector<std::string>;

TEST(RoutingRules, AllOfARuleMustHold) {
    Route of_tenant = to("tenant@x.y");
    of_tenant.tenant = "acme";
    Route of_workflow = to("workflow@x.y");
    of_workflow.workflow_id = "portraits";
    Route of_long_runs = to("long@x.y");
    of_long_runs.ran_at_least = Millis(60'000);
    Route of_failures = to("failures@x.y", {"execution.failed"});
    const std::vector<Route> rules{of_tenant, of_workflow, of_long_runs, of_failures};
    EXPECT_EQ(told(rules, ended("acme", "other", Millis(1))), Addresses{"tenant@x.y"});
    EXPECT_EQ(told(rules, ended("x", "portraits", Millis(1))), Addresses{"workflow@x.y"});
    EXPECT_EQ(told(rules, ended("x", "other", Millis(60'000))), Addresses{"long@x.y"});
    EXPECT_EQ(told(rules, ended("x", "other", Millis(59'999))), Addresses{});
}

TEST(RoutingRules, WhoeverIsNamedTwiceIsToldOnce) {
    Route of_tenant = to("a@x.y");
    of_tenant.tenant = "acme";
    const std::vector<Route> rules{to("a@x.y"), to("b@x.y"), to("a@x.y"), of_tenant};
    EXPECT_EQ(told(rules, ended("acme", "w", Millis(1))), (Addresses{"a@x.y", "b@x.y"}));
}

}  // namespace
}  // namespace comfyd::notify
