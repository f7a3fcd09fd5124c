// Two tenants on one comfyd: one has files and jobs of every kind, the other is curious.
#pragma once

#include "base/crypto.hpp"
#include "native_support.hpp"

namespace comfyd::support {

enum class WorkerKind { engine, comfyui };

inline std::string name_of(const testing::TestParamInfo<WorkerKind>& info) {
    return info.param == WorkerKind::engine ? "Engine" : "ComfyUI";
}

class TwoTenants : public testing::TestWithParam<WorkerKind> {
protected:
    static constexpr const char* kMark = "red-secret";  // in all that is the first tenant's

    TwoTenants() {
        const std::string file = folder_.write(
            "comfyd.yaml", "auth:\n  keys:\n" + key("red") + key("blue") + "fleet: {poll_ms: 100}\n"
        );
        ComfydOptions options;
        options.arguments = {"--config", file};
        if (GetParam() == WorkerKind::comfyui) {
            thread_.start();
            DoubleOptions worker;
            worker.nodes_json = kFurtherNodes;
            worker_ = std::make_unique<ComfyDouble>(thread_.context(), std::move(worker));
            worker_->start();
            options.arguments.insert(
                options.arguments.end(), {"--no-engine", "--worker", worker_->url()}
            );
        }
        comfyd_ = std::make_unique<Comfyd>(options);
        red_ = std::make_unique<Http>(comfyd_->url());
        blue_ = std::make_unique<Http>(comfyd_->url());
        red_->set_header("Authorization", "Bearer " + (kKey + "red"));
        blue_->set_header("Authorization", "Bearer " + (kKey + "blue"));
    }
    ~TwoTenants() override {
        red_.reset();
        blue_.reset();
        comfyd_.reset();
        worker_.reset();
        thread_.stop();
    }
    void SetUp() override {
        ASSERT_TRUE(wait_until([this] {
            return red_->get("/object_info/LoadImage").body.size() > 2;
        })) << comfyd_->log();
    }

    static json::object saved(const std::string& prefix) {
        json::object graph = small_picture(static_cast<int>(prefix.size()));
        graph.at("3").as_object().at("inputs").as_object()["filename_prefix"] = prefix;
        graph["4"] = {
            {"class_type", "PreviewImage"}, {"inputs", {{"images", json::array{"2", 0}}}}
        };
        return graph;
    }
    static json::object loaded(const char* class_type, const char* input, json::value name) {
        json::object graph;
        json::object inputs{{"channel", "red"}};
        inputs[input] = std::move(name);
        graph["1"] = {{"class_type", class_type}, {"inputs", std::move(inputs)}};
        const bool is_mask = std::string_view(class_type) == "LoadImageMask";
        graph["2"] = {
            {"class_type", is_mask ? "MaskPreview" : "PreviewImage"},
            {"inputs", {{is_mask ? "mask" : "images", json::array{"1", 0}}}}
        };
        return graph;
    }
    json::value run_as(Http& who, const json::object& graph) {
        const Reply reply = who.post_json("/api/v2/jobs", {{"workflow", graph}});
        EXPECT_EQ(reply.status, 201) << reply.body;
        const json::value id = reply.json_at("/id");
        json::value job;
        EXPECT_TRUE(wait_until([&] {
            job = who.get("/api/v2/jobs/" + std::string(id.as_string())).json();
            const std::string status = Comfyd::status_of(job);
            return status == "succeeded" || status == "failed";
        })) << json::serialize(job);
        return job;
    }
    std::string content_of(Http& who, const json::value& job, std::size_t output = 0) {
        const std::string id(job.at("outputs").at(output).at("id").as_string());
        return who.get("/api/v2/assets/" + id + "/content").body;
    }
    // The names of the first tenant's files on the worker; the engine's are on the disk.
    std::vector<std::string> names_on_worker() {
        std::vector<std::string> names;
        for (const json::object& prompt :
             worker_ ? worker_->accepted_prompts() : std::vector<json::object>()) {
            for (const auto& node : prompt.at("prompt").as_object()) {
                for (const auto& input : node.value().at("inputs").as_object()) {
                    if (input.value().is_string()) {
                        names.emplace_back(input.value().get_string());
                    }
                }
            }
        }
        const std::filesystem::path root = std::filesystem::path(comfyd_->data()) / "engine";
        for (const char* folder : {"input", "output", "temp"}) {
            std::error_code error;
            for (const auto& entry :
                 std::filesystem::recursive_directory_iterator(root / folder, error)) {
                names.push_back(entry.path().lexically_relative(root / folder).string());
            }
        }
        std::erase_if(names, [](const std::string& name) {
            return name.find("comfyd_") == std::string::npos;
        });
        return names;
    }

    inline static const std::string kKey = "a long enough key of tenant ";
    // Loaders that the double lacks, and a class of which nobody knows what it does with a text.
    static constexpr const char* kFurtherNodes = R"({
        "LoadImageMask": {"input": {"required": {"image": [[], {"image_upload": true}],
            "channel": [["alpha", "red"]]}}, "output": ["MASK"], "output_node": false,
            "python_module": "nodes"},
        "MaskPreview": {"input": {"required": {"mask": ["MASK"]}}, "output": [],
            "output_node": true, "python_module": "nodes"},
        "LoadImageOutput": {"input": {"required": {"image": ["COMBO", {"image_upload": true,
            "image_folder": "output", "remote": {"route": "/internal/files/output"}}]}},
            "output": ["IMAGE"], "output_node": false, "python_module": "nodes"},
        "ReadAnything": {"input": {"required": {"what": ["STRING", {}]}}, "output": ["IMAGE"],
            "output_node": false, "python_module": "custom_nodes.any"}})";

    static std::string key(const std::string& name) {
        return "    - {name: " + name + ", sha256: " + to_hex(sha256(kKey + name)) + "}\n";
    }

    TempDir folder_;
    net::IoThread thread_{"double"};
    std::unique_ptr<ComfyDouble> worker_;
    std::unique_ptr<Comfyd> comfyd_;
    std::unique_ptr<Http> red_;
    std::unique_ptr<Http> blue_;
};

}  // namespace comfyd::support
