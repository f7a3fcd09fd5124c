// A workflow whose shape is known is admitted as one that was never seen: the same job, or the same
// words about what is wrong with it.
#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "admission/admit.hpp"
#include "admission/known_shapes.hpp"
#include "api/test_support.hpp"
#include "base/hop.hpp"
#include "jobs/profile_text.hpp"
#include "workflow/rules/stages_test_support.hpp"

namespace comfyd::api {
namespace {

using admission::KnownShapes;
using admission::Submission;
using test::TestApi;
using CataloguePtr = std::shared_ptr<const workflow::Catalogue>;
using workflow::test::flux;
using workflow::test::text_to_image;

CataloguePtr recorded() {
    return std::make_shared<const workflow::Catalogue>(workflow::test::recorded_catalogue());
}

CataloguePtr without_workers() {
    return std::make_shared<const workflow::Catalogue>(std::vector<workflow::Catalogue::Entry>());
}

class Random {
public:
    explicit Random(unsigned seed) : engine_(seed) {}

    int below(int limit) { return std::uniform_int_distribution<int>(0, limit - 1)(engine_); }

    // Some of its values are others, of which few are bad.
    json::object variant_of(json::object workflow) {
        for (auto& node : workflow) {
            for (auto& input : node.value().at("inputs").as_object()) {
                json::value& value = input.value();
                if (value.is_string() && below(3) == 0) {
                    value = text();
                } else if (value.is_int64() && below(4) == 0) {
                    value = below(10) == 0 ? json::value(-1) : json::value(below(3000));
                } else if (below(60) == 0) {
                    value = nullptr;
                }
            }
        }
        return workflow;
    }

private:
    json::value text() {
        static constexpr const char* kTexts[] = {
            "a cat",
            "a dog, on a hill",
            "",
            "embedding:soft",
            "http://10.0.0.1/a",
            "../up",
            "Dogs",
            "a.png",
            "a.png [output]",
            "comfyd_0123456789abcdef0123456789abcdef/a.png",
            "an ASSET of blake3:00",
            "euler",
        };
        return kTexts[below(static_cast<int>(std::size(kTexts)))];
    }

    std::mt19937 engine_;
};

class AdmissionByShape : public testing::Test {
protected:
    std::string admit(const json::object& workflow, const CataloguePtr& by, bool has_target) {
        Submission submission{.spec = {}, .workflow = workflow};
        submission.catalogue = by;
        if (has_target) {
            submission.targets = {"9"};
        }
        const auto admitted = run(admission::admit(api_.services, std::move(submission)));
        if (!admitted) {
            return "refused: " + admitted.error().error.message + " " +
                   json::serialize(admitted.error().error.details);
        }
        const jobs::Spec& spec = admitted->spec;
        std::string told = spec.workflow + "\n" + spec.requirement.encoded() + "\n" +
                           std::to_string(spec.node_count);
        if (spec.profile) {
            told += "\n" + jobs::encode_profile(spec.profile) + spec.profile->requirement.encoded();
        }
        for (const auto& list : {spec.targets, admitted->outputs}) {
            for (const std::string& output : list) {
                told += "\n" + output;
            }
        }
        return told;
    }

    // With all that was learned of the base and of its other variants, and with nothing.
    void compare(const CataloguePtr& known, const CataloguePtr& nothing_known) {
        Random random(7);
        int hits = 0;
        int refusals = 0;
        for (const json::object& base : {text_to_image(), flux()}) {
            for (int round = 0; round < 300; ++round) {
                const bool has_target = random.below(4) == 0;
                const json::object workflow = random.variant_of(base);
                admit(base, known, has_target);
                admit(random.variant_of(base), known, has_target);
                const std::size_t shapes = KnownShapes::here(known).size();
                const std::string as_known = admit(workflow, known, has_target);
                const bool is_refused = as_known.starts_with("refused");
                const bool is_hit = shapes > 0 && KnownShapes::here(known).size() == shapes;
                hits += !is_refused && is_hit ? 1 : 0;
                refusals += is_refused ? 1 : 0;
                // Shapes of one catalogue are kept at a time.
                EXPECT_EQ(admit(workflow, nothing_known, has_target), as_known)
                    << json::serialize(workflow);
            }
        }
        EXPECT_GT(hits, 5);
        EXPECT_GT(refusals, 5);
    }

private:
    // On this thread, which is the one that knows shapes.
    static admission::Decision<admission::Admitted> run(
        Task<admission::Decision<admission::Admitted>> task
    ) {
        boost::asio::io_context here;
        TaskGroup tasks(here.get_executor());
        std::optional<admission::Decision<admission::Admitted>> admitted;
        tasks.spawn("admission", await_into(admitted, std::move(task)));
        here.run();
        return std::move(*admitted);
    }

    TestApi api_;
};

TEST_F(AdmissionByShape, MakesWhatTheWholeWayMakes) {
    compare(recorded(), recorded());
}

TEST_F(AdmissionByShape, LikewiseWhereNobodyKnowsTheClasses) {
    compare(without_workers(), without_workers());
}

TEST_F(AdmissionByShape, TextsAndSeedsAreOfOneShape) {
    const auto catalogue = recorded();
    json::object other = text_to_image();
    other["6"].at("inputs").as_object()["text"] = "a dog, (on a hill:1.2)";
    other["3"].at("inputs").as_object()["seed"] = 77;
    admit(text_to_image(), catalogue, false);
    EXPECT_EQ(KnownShapes::here(catalogue).size(), 1U);
    admit(other, catalogue, false);
    EXPECT_EQ(KnownShapes::here(catalogue).size(), 1U);
    admit(other, catalogue, true);
    EXPECT_EQ(KnownShapes::here(catalogue).size(), 2U) << "only one output is run";
}

// Its file may be gone the next time.
TEST_F(AdmissionByShape, WhatNamesAFileIsLookedAtEachTime) {
    const auto catalogue = recorded();
    const json::object workflow{
        {"1", {{"class_type", "LoadImage"}, {"inputs", {{"image", "nobodys.png"}}}}},
        {"2",
         {{"class_type", "SaveImage"},
          {"inputs", {{"images", json::array{"1", 0}}, {"filename_prefix", "a"}}}}},
    };
    for (int i = 0; i < 2; ++i) {
        EXPECT_TRUE(admit(workflow, catalogue, false).starts_with("refused"));
        EXPECT_EQ(KnownShapes::here(catalogue).size(), 0U);
    }
}

}  // namespace
}  // namespace comfyd::api
