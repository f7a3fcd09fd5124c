// Merged prompts as comfyd writes them, run by a double that has the node pack: every job gets the
// pictures, the metadata and the events of its own run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "net/io_threads.hpp"
#include "support/comfy_double.hpp"
#include "support/http.hpp"
#include "workflow/files/embedded.hpp"
#include "workflow/merge/merge.hpp"

namespace comfyd::support {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

struct Request {
    std::string text;
    std::string negative = "blurry";
    std::uint64_t seed = 0;
    int pictures = 1;
    std::string prefix = "ComfyUI";
    json::object workflow() const;
    json::object extra_pnginfo() const {
        return {{"workflow", json::object{{"id", "the workflow of " + text}}}};
    }
};

json::object Request::workflow() const {
    const auto node = [](const char* name, json::object inputs) {
        return json::object{{"class_type", name}, {"inputs", std::move(inputs)}};
    };
    const auto link = [](const char* id, int slot) { return json::array{id, slot}; };
    return {
        {"4", node("CheckpointLoaderSimple", {{"ckpt_name", "sd15.safetensors"}})},
        {"5", node("EmptyLatentImage", {{"width", 64}, {"height", 64}, {"batch_size", pictures}})},
        {"6", node("CLIPTextEncode", {{"text", text}, {"clip", link("4", 1)}})},
        {"7", node("CLIPTextEncode", {{"text", negative}, {"clip", link("4", 1)}})},
        {"3",
         node(
             "KSampler",
             {{"seed", seed},
              {"steps", 4},
              {"cfg", 7.5},
              {"sampler_name", "euler"},
              {"scheduler", "normal"},
              {"denoise", 1},
              {"model", link("4", 0)},
              {"positive", link("6", 0)},
              {"negative", link("7", 0)},
              {"latent_image", link("5", 0)}}
         )},
        {"8", node("VAEDecode", {{"samples", link("3", 0)}, {"vae", link("4", 2)}})},
        {"inverted", node("ImageInvert", {{"image", link("8", 0)}})},
        {"9", node("SaveImage", {{"filename_prefix", prefix}, {"images", link("8", 0)}})},
        {"10", node("PreviewImage", {{"images", link("inverted", 0)}})},
    };
}

// The pixel: what a picture shows without what is written in it.
std::string pixel_of(const std::string& png) {
    const auto at = png.find("IDAT");
    return at == std::string::npos ? "no picture" : png.substr(at, png.find("IEND") - at);
}

class MergedRun : public testing::Test {
protected:
    MergedRun() {
        thread_.start();
        DoubleOptions options;
        options.batch_pack = true;
        double_ = std::make_unique<ComfyDouble>(thread_.context(), std::move(options));
        double_->start();
        http_ = std::make_unique<Http>(double_->url());
        socket_ = http_->ws("/ws?clientId=me");
        EXPECT_TRUE(wait_until([this] { return double_->sockets_open() == 1; }));
        classes_ = *workflow::NodeClasses::from_object_info(http_->get("/object_info").json());
    }
    ~MergedRun() override {
        socket_.reset();
        http_.reset();
        double_.reset();
    }

    json::value run(const json::object& prompt, const json::object& extra_pnginfo = {}) {
        const auto reply = http_->post_json(
            "/prompt",
            {{"prompt", prompt},
             {"client_id", "me"},
             {"extra_data", json::object{{"extra_pnginfo", extra_pnginfo}}}}
        );
        EXPECT_EQ(reply.status, 200) << reply.body;
        const std::string id(reply.json_at("/prompt_id").as_string());
        const std::string at = "/" + id;
        json::value entry;
        EXPECT_TRUE(wait_until([&] {
            entry = http_->get("/history/" + id).json_at(at);
            return !entry.is_null();
        }));
        return entry;
    }
    workflow::Merged merge(const std::vector<Request>& requests) {
        std::vector<json::object> documents;
        for (const Request& request : requests) {
            documents.push_back(request.workflow());
            documents.push_back(request.extra_pnginfo());
        }
        std::vector<workflow::MergeInput> inputs;
        for (std::size_t i = 0; i < documents.size(); i += 2) {
            inputs.push_back({&documents[i], &documents[i + 1]});
        }
        auto merged = workflow::merge(inputs, workflow::Catalogue({{"double", classes_}}));
        EXPECT_TRUE(merged) << merged.error().message;
        return merged ? std::move(*merged) : workflow::Merged{};
    }
    std::vector<std::string> pictures(const json::value& output) {
        std::vector<std::string> found;
        for (const auto& image : output.at("images").as_array()) {
            found.push_back(http_
                                ->get(
                                    "/view?filename=" +
                                    std::string(image.at("filename").as_string()) +
                                    "&type=" + std::string(image.at("type").as_string())
                                )
                                .body);
        }
        return found;
    }

    net::IoThread thread_{"double"};
    std::unique_ptr<ComfyDouble> double_;
    std::unique_ptr<Http> http_;
    std::unique_ptr<WsStream> socket_;
    std::shared_ptr<const workflow::NodeClasses> classes_;
};

TEST_F(MergedRun, GivesEveryJobWhatItsOwnRunGives) {
    ASSERT_TRUE(workflow::worker_supports_merge(*classes_));
    const std::vector<Request> requests{
        {"a cat", "blurry", 5, 1, "cats"},
        {"a dog", "noise", 18446744073709551615U, 2, "dogs"},
        {"a cat", "blurry", 7, 1, "more"},
    };
    const auto merged = merge(requests);
    EXPECT_THAT(merged.samples, ElementsAre(1U, 2U, 1U));
    const auto entry = run(merged.prompt);
    ASSERT_EQ(entry.at("status").at("status_str"), json::value("success")) << entry;

    // By job and node.
    std::map<std::pair<std::size_t, std::string>, json::value> outputs;
    for (const auto& [id, output] : entry.at("outputs").as_object()) {
        const auto& origins = merged.origins.at(std::string(id));
        ASSERT_EQ(origins.size(), 1U);
        outputs[{origins[0].job, origins[0].node_id}] = output;
    }
    EXPECT_EQ(outputs.size(), 6U);
    for (std::size_t job = 0; job < requests.size(); ++job) {
        const Request& request = requests[job];
        const auto alone = run(request.workflow(), request.extra_pnginfo());
        for (const char* node : {"9", "10"}) {
            const auto own = pictures(outputs.at({job, node}));
            const auto expected = pictures(alone.at("outputs").at(node));
            ASSERT_EQ(own.size(), static_cast<std::size_t>(request.pictures));
            ASSERT_EQ(own.size(), expected.size());
            for (std::size_t i = 0; i < own.size(); ++i) {
                EXPECT_EQ(pixel_of(own[i]), pixel_of(expected[i])) << job << " " << node;
                EXPECT_EQ(*workflow::read_workflow_file(own[i]), request.workflow());
                EXPECT_THAT(
                    own[i],
                    HasSubstr(
                        request.text + " seed " + std::to_string(request.seed) + "/" +
                        std::to_string(i)
                    )
                );
                EXPECT_THAT(own[i], HasSubstr("the workflow of " + request.text));
                EXPECT_EQ(own[i], expected[i]);
            }
        }
        const auto& image = outputs.at({job, "9"}).at("images").at(0);
        EXPECT_TRUE(image.at("filename").as_string().starts_with(request.prefix));
        EXPECT_EQ(outputs.at({job, "10"}).at("images").at(0).at("type"), json::value("temp"));
    }
    // No other job's text is in a picture.
    EXPECT_THAT(pictures(outputs.at({0, "9"}))[0], Not(HasSubstr("a dog")));
}

TEST_F(MergedRun, PicturesOfDifferentSamplesDiffer) {
    const auto merged =
        merge({{"a cat", "x", 5}, {"a cat", "x", 6}, {"a cat", "y", 5}, {"a dog", "x", 5}});
    std::vector<std::string> pixels;
    const auto entry = run(merged.prompt);
    for (const auto& [id, output] : entry.at("outputs").as_object()) {
        if (merged.origins.at(std::string(id))[0].node_id == "9") {
            pixels.push_back(pixel_of(pictures(output).at(0)));
        }
    }
    std::ranges::sort(pixels);
    EXPECT_EQ(std::ranges::unique(pixels).begin() - pixels.begin(), 4);
}

TEST_F(MergedRun, EveryJobHearsOfItsNodes) {
    const auto merged = merge({{"a cat", "blurry", 5}, {"a dog", "blurry", 6}});
    run(merged.prompt);
    ASSERT_TRUE(socket_->wait_for([](const json::value& message) {
        return message.at("type") == json::value("executing") &&
               message.at("data").at("node").is_null();
    }));
    std::map<std::size_t, std::vector<std::string>> executing;
    std::size_t steps = 0;
    for (const auto& message : socket_->json_messages()) {
        const auto* node = message.at("data").as_object().if_contains("node");
        if (node == nullptr || !node->is_string()) {
            continue;
        }
        const auto& origins = merged.origins.at(std::string(node->get_string()));
        if (message.at("type") == json::value("progress")) {
            EXPECT_EQ(origins.size(), 2U);
            ++steps;
        }
        if (message.at("type") == json::value("executing")) {
            for (const auto& origin : origins) {
                executing[origin.job].push_back(origin.node_id);
            }
        }
    }
    EXPECT_EQ(steps, 4U);
    for (const auto& [job, nodes] : executing) {
        EXPECT_THAT(
            nodes,
            testing::UnorderedElementsAre("4", "5", "6", "7", "3", "8", "inverted", "9", "10")
        ) << job;
    }
    EXPECT_EQ(executing.size(), 2U);
}

TEST_F(MergedRun, CanFailWhereJobsAloneDoNot) {
    ASSERT_EQ(http_->post("/_double/faults", R"({"merge_error": true})").status, 200);
    const Request request{"a cat", "blurry", 5};
    const auto entry = run(merge({request, request}).prompt);
    EXPECT_EQ(entry.at("status").at("status_str"), json::value("error"));
    EXPECT_EQ(run(request.workflow()).at("status").at("status_str"), json::value("success"));
}

TEST_F(MergedRun, WhatDoesNotFitTogetherIsAnError) {
    auto merged = merge({{"a cat", "blurry", 5}, {"a dog", "blurry", 6}});
    for (auto& [id, node] : merged.prompt) {
        if (node.at("class_type") == json::value("ComfydLatentBatch")) {
            node.at("inputs").as_object()["jobs"] = "5:1,6:2";
        }
    }
    const auto entry = run(merged.prompt);
    EXPECT_EQ(entry.at("status").at("status_str"), json::value("error"));
}

TEST(MergedRunWithoutPack, AWorkerWithoutThePackIsKnown) {
    net::IoThread thread("double");
    thread.start();
    ComfyDouble plain(thread.context(), {});
    plain.start();
    Http http(plain.url());
    const auto classes = workflow::NodeClasses::from_object_info(http.get("/object_info").json());
    EXPECT_FALSE(workflow::worker_supports_merge(**classes));
}

}  // namespace
}  // namespace comfyd::support
