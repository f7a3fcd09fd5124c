// The script by which a person with keys compares the contracts with the real services.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/cloud_double.hpp"
#include "support/process.hpp"

namespace comfyd::fleet {
namespace {

using support::CloudDouble;
using testing::HasSubstr;
using testing::Not;

struct Ran {
    int status;
    std::string said;
};

Ran run(std::map<std::string, std::string> environment) {
    support::Process process(support::ProcessOptions{
        .arguments = {COMFYD_TEST_DATA "/../../scripts/compare_providers.sh"},
        .environment = std::move(environment)
    });
    const int status = process.wait(std::chrono::seconds(60)).value_or(-1);
    return {status, process.output() + process.errors()};
}

TEST(CompareProviders, TellsWhatDiffersAndNoMore) {
    support::RunPodDouble runpod;
    support::NovitaDouble novita;
    support::VastDouble vast;
    support::SaladDouble salad;
    const std::string id = runpod.add("somebodys-pod");
    novita.add("somebodys-instance");
    const std::string contract = vast.add("somebodys-contract");
    salad.add("somebodys-group");
    const std::map<std::string, std::string> all{
        {"RUNPOD_API_KEY", CloudDouble::kKey},
        {"RUNPOD_URL", runpod.url()},
        {"NOVITA_API_KEY", CloudDouble::kKey},
        {"NOVITA_URL", novita.url()},
        {"VAST_API_KEY", CloudDouble::kKey},
        {"VAST_URL", vast.url()},
        {"SALAD_API_KEY", CloudDouble::kKey},
        {"SALAD_URL", salad.url()},
        {"SALAD_ORGANIZATION", "o"},
        {"SALAD_PROJECT", "p"}
    };
    const Ran good = run(all);
    EXPECT_EQ(good.status, 0) << good.said;
    EXPECT_THAT(good.said, HasSubstr("runpod /pods: as expected"));
    EXPECT_THAT(good.said, HasSubstr("novita /products: as expected"));
    EXPECT_THAT(good.said, HasSubstr("vast /v1/instances/?limit=25: as expected"));
    EXPECT_THAT(good.said, HasSubstr("vast /v0/bundles/: as expected"));
    EXPECT_THAT(good.said, HasSubstr("salad /organizations/o/gpu-classes: as expected"));
    EXPECT_THAT(good.said, HasSubstr("salad /organizations/o/projects/p/containers: as expected"));

    runpod.change(id, [](json::object& pod) {
        pod["status"] = "DREAMING";
        pod.erase("ports");
    });
    novita.set({.pages = 1});
    vast.change(contract, [](json::object& record) { record.erase("label"); });
    const Ran bad = run(all);
    EXPECT_EQ(bad.status, 1);
    EXPECT_THAT(bad.said, HasSubstr("$.pods[]: ports is missing"));
    EXPECT_THAT(bad.said, HasSubstr("$.pods[].status"));
    EXPECT_THAT(bad.said, HasSubstr("novita /products: is not JSON"));
    EXPECT_THAT(bad.said, HasSubstr("$.instances[]: label is missing"));
    EXPECT_THAT(bad.said, Not(HasSubstr("somebodys-"))) << "nothing of the account is shown";
    EXPECT_THAT(bad.said, Not(HasSubstr(CloudDouble::kKey)));

    auto wrong_key = all;
    wrong_key["RUNPOD_API_KEY"] = "another";
    EXPECT_THAT(run(wrong_key).said, HasSubstr("runpod /pods: answers 401"));
    EXPECT_EQ(run({}).status, 2);
}

}  // namespace
}  // namespace comfyd::fleet
