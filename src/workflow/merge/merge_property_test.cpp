// Random jobs of the usual forms: merging keeps all that a job is, whatever rides along.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <random>
#include <set>

#include "workflow/merge/merge_test_support.hpp"

namespace comfyd::workflow {
namespace {

using namespace test;

// The recorded classes and the node pack.
class PackedClasses : public PromptClasses {
public:
    PackedClasses() {
        json::object info = parsed(R"({
            "ComfydLatentBatch": {"input": {"required": {"jobs": ["STRING", {}]}, "optional": {}},
                "output": ["LATENT", "INT"], "output_node": false},
            "ComfydConditioningBatch": {"input": {"required": {"counts": ["STRING", {}]},
                "optional": {}}, "output": ["CONDITIONING"], "output_node": false},
            "ComfydSaveImage": {"input": {"required": {"images": ["IMAGE"],
                "prompt": ["STRING", {}], "extra_pnginfo": ["STRING", {}],
                "preview": ["BOOLEAN", {}]}, "optional": {"filename_prefix": ["STRING", {}]}},
                "output": ["IMAGE"], "output_node": true}})");
        for (std::size_t i = 0; i < kMergeJobsMax; ++i) {
            const auto add = [&](const char* name, const std::string& input, const char* type) {
                info.at(name).at("input").at("optional").as_object()[input + std::to_string(i)] =
                    json::array{type};
            };
            add("ComfydLatentBatch", "latent", "LATENT");
            add("ComfydConditioningBatch", "conditioning", "CONDITIONING");
        }
        pack_.add(json::serialize(info));
    }

    const NodeDefinition* find(std::string_view class_type) const override {
        const NodeDefinition* own = pack_.find(class_type);
        return own != nullptr ? own : recorded_catalogue().find(class_type);
    }

private:
    TestClasses pack_;
};

class RandomJobs {
public:
    explicit RandomJobs(unsigned seed) : random_(seed) {}

    std::vector<json::object> make() {
        static const std::array kForms{
            text_to_image(), sdxl(), sd3(), flux(), image_to_image(), high_resolution()
        };
        const json::object& form = kForms[below(kForms.size())];
        std::vector<json::object> jobs;
        for (std::size_t count = 1 + below(8); count > 0; --count) {
            jobs.push_back(renamed(varied(form)));
        }
        return jobs;
    }

private:
    std::size_t below(std::size_t end) { return random_() % end; }

    json::object varied(json::object workflow) {
        static const std::array<std::string, 6> kTexts{
            "", "a cat", "a \"dog\"\n", "\u732b, (best:1.2)", "[\"1\", 0]", std::string(1000, '7')
        };
        for (auto& entry : workflow) {
            json::object& inputs = entry.value().at("inputs").as_object();
            for (auto& [name, value] : inputs) {
                const bool is_text = name == "text" || name == "text_g" || name == "text_l" ||
                                     name == "t5xxl" || name == "clip_l" || name == "clip_g";
                if (is_text) {
                    value = kTexts[below(kTexts.size())];
                } else if (name == "seed" || name == "noise_seed") {
                    value = below(2) == 0 ? random_() % 4 : random_() << 32U | random_();
                } else if (name == "batch_size") {
                    value = static_cast<int>(1 + below(3));
                } else if (name == "filename_prefix") {
                    value = "p" + std::to_string(below(3));
                } else if (name == "image" && value.is_string()) {
                    value = std::to_string(below(3)) + ".png";
                }
            }
        }
        return workflow;
    }

    // Other ids, in another order.
    json::object renamed(const json::object& workflow) {
        const std::string before = std::to_string(below(100));
        std::vector<std::string> ids;
        for (const auto& entry : workflow) {
            ids.push_back(text_of(entry.key()));
        }
        std::ranges::shuffle(ids, random_);
        json::object made;
        for (const std::string& id : ids) {
            json::object node = workflow.at(id).as_object();
            for (auto& [name, value] : node.at("inputs").as_object()) {
                if (value.is_array()) {
                    value.as_array()[0] = before + text_of(value.as_array()[0].as_string());
                }
            }
            made[before + id] = std::move(node);
        }
        return made;
    }

    std::mt19937_64 random_;
};

std::size_t outputs_of(const json::object& workflow) {
    return find_outputs(Graph(workflow), recorded_catalogue()).size();
}

void check(const std::vector<json::object>& jobs, const PromptClasses& classes) {
    const auto merged = merge_all(jobs);
    if (!merged) {  // no two of them have texts of the same length
        ASSERT_THAT(merged.error().message, testing::HasSubstr("may be encoded to another length"));
        return;
    }
    EXPECT_EQ(merged->prompt, merge_all(jobs)->prompt);
    ASSERT_EQ(merged->samples.size(), jobs.size());

    std::set<JobNode> savers;
    for (const auto& [id, origins] : merged->origins) {
        ASSERT_TRUE(merged->prompt.contains(id));
        for (const JobNode& origin : origins) {
            ASSERT_TRUE(jobs.at(origin.job).contains(origin.node_id));
            if (merged->prompt.at(id).at("class_type") == "ComfydSaveImage") {
                EXPECT_TRUE(savers.insert(origin).second);
            }
        }
    }
    std::size_t outputs = 0;
    for (std::size_t job = 0; job < jobs.size(); ++job) {
        EXPECT_EQ(content_of(Unmerged(*merged, job).workflow()), content_of(jobs[job]));
        outputs += outputs_of(jobs[job]);
        // Each node of the job is done by exactly one of the prompt.
        for (const auto& entry : jobs[job]) {
            std::size_t done = 0;
            for (const auto& [id, origins] : merged->origins) {
                done += static_cast<std::size_t>(
                    std::ranges::count(origins, JobNode{job, text_of(entry.key())})
                );
            }
            EXPECT_EQ(done, 1U) << text_of(entry.key());
        }
    }
    EXPECT_EQ(savers.size(), outputs);

    json::object judged = merged->prompt;
    PromptOptions options;
    options.own_checks_known = false;
    // Only the files that the recorded server did not have may be wrong with it.
    for (const auto& errors : judge_prompt(judged, classes, options).node_errors) {
        for (const json::value& error : errors.value().at("errors").as_array()) {
            EXPECT_EQ(error.at("type"), "value_not_in_list") << json::serialize(error);
        }
    }
}

TEST(MergeProperties, JobsComeOutAsTheyWentIn) {
    const PackedClasses classes;
    for (unsigned seed = 0; seed < 200; ++seed) {
        check(RandomJobs(seed).make(), classes);
        ASSERT_FALSE(HasFailure()) << "seed " << seed;
    }
}

}  // namespace
}  // namespace comfyd::workflow
