// What is said of outputs and made of them, by the real binary: with the embedded engine, in every
// API that carries output_config, for two tenants, and while the helpers die.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>

#include "base/crypto.hpp"
#include "support/comfyd.hpp"
#include "support/temp_dir.hpp"

namespace comfyd::support {
namespace {

using testing::HasSubstr;

json::object picture(int width, int height, int color = 0x336699) {
    json::object graph = *json::parse_object(R"({
        "1": {"class_type": "EmptyImage", "inputs": {"batch_size": 1}},
        "2": {"class_type": "SaveImage", "inputs": {"filename_prefix": "made", "images": ["1", 0]}}})"
    );
    json::object& inputs = graph["1"].as_object()["inputs"].as_object();
    inputs["width"] = width;
    inputs["height"] = height;
    inputs["color"] = color;
    return graph;
}

json::object config(std::string_view text) {
    return *json::parse_object(std::string(text));
}

std::string text_of(const json::value& value) {
    return value.is_string() ? std::string(value.get_string()) : std::string();
}

// The bytes behind a link of an answer.
std::string fetch(Comfyd& comfyd, const json::value& url, net::Headers headers = {}) {
    const std::string link = text_of(url);
    EXPECT_TRUE(link.starts_with(comfyd.url())) << link;
    const Reply reply = comfyd.http().get(link.substr(comfyd.url().size()), std::move(headers));
    EXPECT_EQ(reply.status, 200) << link;
    return reply.body;
}

bool is_webp(const std::string& bytes) {
    return bytes.starts_with("RIFF") && bytes.substr(8, 4) == "WEBP";
}
bool is_jpeg(const std::string& bytes) {
    return bytes.starts_with("\xff\xd8\xff");
}
bool is_avif(const std::string& bytes) {
    return bytes.size() > 12 && bytes.substr(4, 8) == "ftypavif";
}

json::value finished(Comfyd& comfyd, json::object workflow, json::object more = {}) {
    const std::string id = comfyd.submit(std::move(workflow), std::move(more));
    json::value job = comfyd.wait_finished(id);
    EXPECT_EQ(Comfyd::status_of(job), "succeeded") << job;
    return job;
}

TEST(Outputs, AreTypedWithoutBeingAsked) {
    Comfyd comfyd;
    const json::value job = finished(comfyd, picture(48, 32));
    const json::value& output = job.at("outputs").at(0);
    const json::value& media = output.at("media");
    EXPECT_EQ(media.at("kind"), "image");
    EXPECT_EQ(media.at("format"), "png");
    EXPECT_EQ(media.at("width"), 48);
    EXPECT_EQ(media.at("height"), 32);
    EXPECT_EQ(media.at("has_alpha"), false);
    EXPECT_EQ(media.at("has_workflow"), true);
    EXPECT_FALSE(output.as_object().contains("thumbnails"));
    EXPECT_FALSE(output.as_object().contains("variants"));
}

TEST(Outputs, AnimationsSoundsAndTextsAreTyped) {
    Comfyd comfyd;
    const json::value job = finished(
        comfyd, *json::parse_object(R"({
        "1": {"class_type": "EmptyImage", "inputs": {"width": 64, "height": 40, "batch_size": 3, "color": 255}},
        "2": {"class_type": "SaveAnimatedWEBP", "inputs": {"images": ["1", 0], "filename_prefix": "w", "fps": 5,
              "lossless": true, "quality": 80, "method": "fastest"}},
        "3": {"class_type": "EmptyAudio", "inputs": {"duration": 2.0, "sample_rate": 44100, "channels": 2}},
        "4": {"class_type": "SaveAudio", "inputs": {"audio": ["3", 0], "filename_prefix": "a"}}})")
    );
    for (const json::value& output : job.at("outputs").as_array()) {
        const json::value& media = output.at("media");
        if (output.at("node_id") == "4") {
            EXPECT_EQ(media.at("kind"), "audio") << output;
            EXPECT_EQ(media.at("codec"), "flac");
            EXPECT_EQ(media.at("sample_rate"), 44100);
            EXPECT_EQ(media.at("channels"), 2);
            EXPECT_NEAR(media.at("duration_seconds").to_number<double>(), 2, 0.05);
        } else {
            EXPECT_EQ(media.at("format"), "webp") << output;
            EXPECT_EQ(media.at("width"), 64);
        }
    }
    EXPECT_EQ(job.at("outputs").as_array().size(), 2U);
}

TEST(Outputs, AnimationsStayAnimations) {
    Comfyd comfyd;
    const json::object moving = *json::parse_object(R"({
        "1": {"class_type": "EmptyImage", "inputs": {"width": 64, "height": 40, "batch_size": 1, "color": 255}},
        "2": {"class_type": "EmptyImage", "inputs": {"width": 64, "height": 40, "batch_size": 1, "color": 65280}},
        "3": {"class_type": "ImageBatch", "inputs": {"image1": ["1", 0], "image2": ["2", 0]}},
        "4": {"class_type": "SaveAnimatedWEBP", "inputs": {"images": ["3", 0], "filename_prefix": "w", "fps": 5,
              "lossless": true, "quality": 80, "method": "fastest"}}})");
    for (const std::string format : {"avif", "png", "jpeg"}) {
        const json::value job = finished(
            comfyd,
            moving,
            {{"output_config", {{"format", format}, {"thumbnails", {256}}, {"poster", true}}}}
        );
        const json::value& output = job.at("outputs").at(0);
        EXPECT_EQ(output.at("media").at("frames"), 2) << output;
        EXPECT_EQ(output.at("thumbnails").as_array().size(), 1U) << output;
        const json::array& variants = output.at("variants").as_array();
        ASSERT_EQ(variants.size(), 2U) << output;
        for (const json::value& variant : variants) {
            if (variant.at("variant") == "poster") {
                EXPECT_TRUE(is_webp(fetch(comfyd, variant.at("url"))));
            } else if (format == "jpeg") {
                EXPECT_THAT(text_of(variant.at("error").at("message")), HasSubstr("JPEG"))
                    << variant;
            } else {
                EXPECT_EQ(text_of(variant.at("format")), format) << variant;
                const std::string file = fetch(comfyd, variant.at("url"));
                EXPECT_THAT(file, HasSubstr(format == "avif" ? "ftypavis" : "acTL"));
            }
        }
    }
}

TEST(Outputs, AreMadeInTheFormThatIsAskedFor) {
    Comfyd comfyd;
    const json::value job = finished(
        comfyd,
        picture(700, 500),
        {{"output_config",
          config(
              R"({"format": "avif", "max_size": 350, "strip_metadata": true, "thumbnails": [256, 512]})"
          )}}
    );
    const json::value& output = job.at("outputs").at(0);
    EXPECT_EQ(fetch(comfyd, output.at("url")).substr(1, 3), "PNG");
    const json::value& media = output.at("media");
    EXPECT_EQ(media.at("dominant_color"), "#336699");
    EXPECT_EQ(text_of(media.at("blurhash")).size(), 28U);
    ASSERT_EQ(output.at("variants").as_array().size(), 1U) << output;
    const json::value& converted = output.at("variants").at(0);
    EXPECT_EQ(converted.at("variant"), "converted");
    EXPECT_EQ(converted.at("format"), "avif");
    EXPECT_EQ(converted.at("width"), 350);
    EXPECT_EQ(converted.at("height"), 250);
    EXPECT_EQ(converted.at("content_type"), "image/avif");
    const std::string bytes = fetch(comfyd, converted.at("url"));
    EXPECT_TRUE(is_avif(bytes));
    EXPECT_EQ(converted.at("size_bytes"), bytes.size());
    ASSERT_EQ(output.at("thumbnails").as_array().size(), 2U) << output;
    EXPECT_EQ(output.at("thumbnails").at(0).at("size"), 512);
    EXPECT_EQ(output.at("thumbnails").at(1).at("width"), 256);
    for (const json::value& thumbnail : output.at("thumbnails").as_array()) {
        EXPECT_TRUE(is_webp(fetch(comfyd, thumbnail.at("url"))));
    }
    // They are assets of the job like its output.
    const std::string asset = text_of(converted.at("asset_id"));
    EXPECT_EQ(comfyd.http().get("/api/v2/assets/" + asset).json_at("/job_id"), job.at("id"));
    // And are there after a restart.
    comfyd.restart();
    const json::value again = comfyd.job(text_of(job.at("id")));
    EXPECT_EQ(again.at("outputs").at(0).at("media"), media);
    EXPECT_TRUE(is_avif(fetch(comfyd, again.at("outputs").at(0).at("variants").at(0).at("url"))));
}

// Of each API: how a request looks, and where its answer shows the outputs.
struct Dialect {
    const char* name;
    const char* submit;
    json::object (*body)(json::object workflow, json::object config);
    std::string (*follow)(const Reply& reply);
    const char* outputs;
};

json::object with_workflow(json::object workflow, json::object wishes) {
    return {{"workflow", std::move(workflow)}, {"output_config", std::move(wishes)}};
}
json::object with_payload(json::object workflow, json::object wishes) {
    return {{"payload", std::move(workflow)}, {"output_config", std::move(wishes)}};
}

const Dialect kDialects[] = {
    {"ComfyV2",
     "/api/v2/jobs",
     with_workflow,
     [](const Reply& reply) { return "/api/v2/jobs/" + text_of(reply.json_at("/id")); },
     "/outputs"},
    {"WorkflowsV1",
     "/v1/workflows/execute",
     with_workflow,
     [](const Reply& reply) {
         return "/v1/workflows/execution/" + text_of(reply.json_at("/execution_id"));
     },
     "/result/outputs"},
    {"WorkflowsV2",
     "/v2/workflows/execute",
     with_workflow,
     [](const Reply& reply) {
         return "/v2/workflows/execution/" + text_of(reply.json_at("/execution_id"));
     },
     "/result/outputs"},
    {"ComfyuiExecute",
     "/comfyui/execute",
     with_workflow,
     [](const Reply& reply) {
         return "/comfyui/execution/" + text_of(reply.json_at("/execution_id"));
     },
     "/result/outputs"},
    {"Tasks",
     "/api/v1/tasks",
     with_payload,
     [](const Reply& reply) { return "/api/v1/tasks/" + text_of(reply.json_at("/id")); },
     "/result/outputs"},
};

class OutputsOfDialect : public testing::TestWithParam<Dialect> {};

TEST_P(OutputsOfDialect, AreShownAlike) {
    const Dialect& dialect = GetParam();
    Comfyd comfyd;
    const Reply accepted = comfyd.http().post_json(
        dialect.submit,
        dialect.body(
            picture(400, 300), config(R"({"format": "jpeg", "quality": 90, "thumbnails": [256]})")
        )
    );
    ASSERT_LT(accepted.status, 300) << accepted.body;
    EXPECT_THAT(accepted.body, testing::Not(HasSubstr("NOT_DONE")));
    const std::string path = dialect.follow(accepted);
    Reply reply;
    ASSERT_TRUE(wait_until([&] {
        reply = comfyd.http().get(path);
        const json::value outputs = reply.json_at(dialect.outputs);
        return outputs.is_array() && !outputs.get_array().empty();
    })) << reply.body;
    const json::value output = reply.json_at(std::string(dialect.outputs) + "/0");
    EXPECT_EQ(output.at("media").at("width"), 400) << output;
    EXPECT_TRUE(is_jpeg(fetch(comfyd, output.at("variants").at(0).at("url"))));
    EXPECT_TRUE(is_webp(fetch(comfyd, output.at("thumbnails").at(0).at("url"))));
    if (std::string_view(dialect.outputs) == "/result/outputs") {
        EXPECT_TRUE(is_jpeg(fetch(comfyd, reply.json_at("/result/images/0"))));
    }
    const Reply refused = comfyd.http().post_json(
        dialect.submit, dialect.body(picture(8, 8), config(R"({"format": "mp4"})"))
    );
    EXPECT_GE(refused.status, 400) << refused.body;
    EXPECT_THAT(refused.body, HasSubstr("output_config.format"));
}

INSTANTIATE_TEST_SUITE_P(All, OutputsOfDialect, testing::ValuesIn(kDialects), [](const auto& info) {
    return std::string(info.param.name);
});

TEST(Outputs, RunPodGetsThePictureInTheFormThatItAskedFor) {
    Comfyd comfyd;
    const Reply made = comfyd.http().post_json(
        "/runpod/v2/any/runsync",
        {{"input",
          {{"workflow", picture(300, 200)},
           {"output_config", config(R"({"format": "webp", "thumbnails": [256]})")}}}}
    );
    ASSERT_EQ(made.json_at("/status"), "COMPLETED") << made.body;
    const auto bytes = from_base64(text_of(made.json_at("/output/images/0/data")));
    ASSERT_TRUE(bytes);
    EXPECT_TRUE(is_webp(*bytes));
    EXPECT_THAT(text_of(made.json_at("/output/images/0/filename")), HasSubstr(".webp"));
    EXPECT_TRUE(is_webp(fetch(comfyd, made.json_at("/output/images/0/thumbnails/0/url"))));
}

TEST(Outputs, PromptSyncShowsThemBesideTheFiles) {
    Comfyd comfyd;
    const Reply made = comfyd.http().post_json(
        "/prompt_sync",
        {{"prompt", picture(300, 200)}, {"output_config", config(R"({"thumbnails": [256]})")}}
    );
    ASSERT_EQ(made.status, 200) << made.body;
    EXPECT_THAT(made.body, HasSubstr("\"thumbnails\""));
    EXPECT_THAT(made.body, HasSubstr("\"blurhash\""));
}

TEST(Outputs, ThumbnailsOfAllJobsCanBeConfigured) {
    ComfydOptions options;
    options.arguments = {"--set", "outputs.thumbnails=512,256"};
    Comfyd comfyd(options);
    const json::value job = finished(comfyd, picture(600, 600));
    EXPECT_EQ(job.at("outputs").at(0).at("thumbnails").as_array().size(), 2U) << job;
}

TEST(Outputs, AnotherTenantHasNothingOfThem) {
    const std::string secret = "a long enough key of tenant ";
    const TempDir folder;
    std::string keys = "auth:\n  keys:\n";
    for (const std::string name : {"red", "blue"}) {
        keys += "    - {name: " + name + ", sha256: " + to_hex(sha256(secret + name)) + "}\n";
    }
    ComfydOptions options;
    options.arguments = {"--config", folder.write("comfyd.yaml", keys)};
    Comfyd comfyd(options);
    Http red(comfyd.url());
    Http blue(comfyd.url());
    red.set_header("Authorization", "Bearer " + secret + "red");
    blue.set_header("Authorization", "Bearer " + secret + "blue");
    const Reply accepted = red.post_json(
        "/api/v2/jobs",
        {{"workflow", picture(300, 300)}, {"output_config", config(R"({"thumbnails": [256]})")}}
    );
    ASSERT_EQ(accepted.status, 201) << accepted.body;
    const std::string path = "/api/v2/jobs/" + text_of(accepted.json_at("/id"));
    ASSERT_TRUE(wait_until([&] { return red.get(path).json_at("/status") == "succeeded"; }));
    const json::value thumbnail = red.get(path).json_at("/outputs/0/thumbnails/0");
    const std::string asset = "/api/v2/assets/" + text_of(thumbnail.at("asset_id"));
    EXPECT_EQ(red.get(asset).status, 200);
    EXPECT_EQ(blue.get(asset).status, 404);
    EXPECT_EQ(blue.get(path).status, 404);
    // With the job they go.
    EXPECT_LT(red.del("/v2/workflows/execution/" + text_of(accepted.json_at("/id"))).status, 300);
    EXPECT_EQ(red.get(asset).status, 404);
}

// Of comfyd's helpers; 0: none runs.
pid_t helper_of(pid_t parent) {
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
        const std::string name = entry.path().filename();
        if (name.find_first_not_of("0123456789") != std::string::npos) {
            continue;
        }
        const std::string line = read_file(entry.path() / "stat");
        const std::string after = line.substr(std::min(line.rfind(')') + 1, line.size()));
        char state = 0;
        int ppid = 0;
        if (std::sscanf(after.c_str(), " %c %d", &state, &ppid) == 2 && ppid == parent &&
            read_file(entry.path() / "cmdline").find(std::string("\0media\0", 7)) !=
                std::string::npos) {
            return std::stoi(name);
        }
    }
    return 0;
}

TEST(Outputs, AHelperThatIsKilledFailsItsVariantAndNotTheJob) {
    Comfyd comfyd;
    const json::object wishes{{"output_config", config(R"({"format": "webp", "lossless": true})")}};
    bool was_hit = false;
    for (int round = 0; round < 20 && !was_hit; ++round) {
        const std::string id = comfyd.submit(picture(4000, 3000, round + 1), wishes);
        pid_t killed = 0;
        ASSERT_TRUE(wait_until([&] {
            const pid_t helper = killed == 0 ? helper_of(comfyd.process().pid()) : 0;
            if (helper != 0) {
                ::kill(helper, SIGKILL);
                killed = helper;
            }
            const std::string status = Comfyd::status_of(comfyd.job(id));
            return status == "succeeded" || status == "failed";
        }));
        const json::value job = comfyd.job(id);
        ASSERT_EQ(Comfyd::status_of(job), "succeeded") << job;
        const json::value& output = job.at("outputs").at(0);
        EXPECT_EQ(output.at("media").at("width"), 4000);
        ASSERT_EQ(output.at("variants").as_array().size(), 1U) << job;
        if (const auto* error = output.at("variants").at(0).as_object().if_contains("error")) {
            EXPECT_EQ(error->at("code"), "worker_lost");
            was_hit = true;
        }
    }
    EXPECT_TRUE(was_hit);
    // The next one is well.
    const json::value job = finished(comfyd, picture(64, 64), wishes);
    EXPECT_EQ(job.at("outputs").at(0).at("variants").at(0).at("format"), "webp") << job;
}

// However long a busy machine takes for large pictures.
ComfydOptions patient() {
    ComfydOptions options;
    options.arguments = {"--set", "outputs.helper_timeout_s=600"};
    return options;
}

// A job whose outputs are being finished, by a helper that stands still.
struct Held {
    std::string job;
    pid_t helper = 0;
};

Held submit_held(Comfyd& comfyd) {
    const json::object wishes{{"output_config", config(R"({"format": "webp", "lossless": true})")}};
    for (int round = 1;; ++round) {
        Held held{comfyd.submit(picture(4000, 3000, round), wishes)};
        EXPECT_TRUE(wait_until([&] {
            held.helper = helper_of(comfyd.process().pid());
            return held.helper != 0;
        }));
        ::kill(held.helper, SIGSTOP);
        if (Comfyd::status_of(comfyd.job(held.job)) == "running") {
            return held;
        }
        // It was done before it was stopped: another one begins anew.
        ::kill(held.helper, SIGKILL);
        EXPECT_TRUE(wait_until([&] { return helper_of(comfyd.process().pid()) == 0; }));
    }
}

TEST(Outputs, AJobThatIsCancelledMeanwhileIsCancelled) {
    Comfyd comfyd(patient());
    const Held held = submit_held(comfyd);
    EXPECT_LT(comfyd.http().post("/api/v2/jobs/" + held.job + "/cancel", "").status, 300);
    EXPECT_EQ(Comfyd::status_of(comfyd.wait_finished(held.job)), "canceled");
    const json::value next = finished(comfyd, picture(20, 20));
    EXPECT_EQ(next.at("outputs").at(0).at("media").at("width"), 20);
}

TEST(Outputs, AServerThatIsKilledMeanwhileMakesThemAfterItsRestart) {
    Comfyd comfyd(patient());
    const Held held = submit_held(comfyd);
    comfyd.restart();
    // It has ended with its parent.
    EXPECT_TRUE(wait_until([&] { return ::kill(held.helper, 0) != 0; }));
    const json::value job = comfyd.wait_finished(held.job, std::chrono::seconds(120));
    EXPECT_EQ(Comfyd::status_of(job), "succeeded") << job;
    EXPECT_EQ(job.at("outputs").at(0).at("variants").at(0).at("variant"), "converted") << job;
}

TEST(Outputs, AreReusedWithTheirVariantsByThoseWhoAskForTheSame) {
    Comfyd comfyd;
    const auto more = [](const char* wishes) {
        return json::object{{"reuse", true}, {"output_config", config(wishes)}};
    };
    const char* small = R"({"thumbnails": [256]})";
    const json::value first = finished(comfyd, picture(300, 300), more(small));
    const json::value same = finished(comfyd, picture(300, 300), more(small));
    EXPECT_EQ(same.at("reused_from"), first.at("id"));
    const json::value& thumbnail = same.at("outputs").at(0).at("thumbnails").at(0);
    EXPECT_NE(
        thumbnail.at("asset_id"), first.at("outputs").at(0).at("thumbnails").at(0).at("asset_id")
    );
    EXPECT_TRUE(is_webp(fetch(comfyd, thumbnail.at("url"))));
    const json::value other = finished(comfyd, picture(300, 300), more(R"({"format": "jpeg"})"));
    EXPECT_FALSE(other.as_object().contains("reused_from"));
}

}  // namespace
}  // namespace comfyd::support
