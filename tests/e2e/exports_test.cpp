// RunPod's "s3Config": outputs in a bucket of the client's own, on a real S3 service; and what
// becomes of them when that bucket is away, refuses, or is not one that we call.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/crypto.hpp"
#include "net/io_threads.hpp"
#include "support/comfy_double.hpp"
#include "support/comfyd.hpp"
#include "support/fault_proxy.hpp"
#include "support/radosgw.hpp"

namespace comfyd::support {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

const std::string kPath = "/runpod/v2/any/";

class ExportsE2e : public testing::Test {
protected:
    ExportsE2e() {
        thread_.start();
        DoubleOptions worker;
        worker.output_bytes = 50'000;
        worker.delay = Millis(300);
        gpu_ = std::make_unique<ComfyDouble>(thread_.context(), worker);
        gpu_->start();
    }
    ~ExportsE2e() override {
        comfyd_.reset();
        gpu_.reset();
        thread_.stop();
    }

    void start(bool allows_private) {
        ComfydOptions options;
        options.arguments = {
            "--config",
            folder_.write(
                "comfyd.yaml",
                std::string("results: {allow_private_buckets: ") +
                    (allows_private ? "true" : "false") + "}\nfleet: {poll_ms: 100}\n"
            ),
            "--no-engine",
            "--worker",
            gpu_->url()
        };
        comfyd_ = std::make_unique<Comfyd>(options);
    }
    json::object config_for(const std::string& bucket, const std::string& endpoint) const {
        return {
            {"bucketName", bucket},
            {"endpointUrl", endpoint},
            {"accessId", Radosgw::kAccessKey},
            {"accessSecret", Radosgw::kSecretKey},
        };
    }
    static json::object request_of(const std::string& name, const json::object& config) {
        return {{"input", {{"workflow", text_to_image(name)}}}, {"s3Config", config}};
    }
    Reply run_sync(const std::string& name, const json::object& config) {
        return comfyd_->http().post_json(kPath + "runsync?wait=120000", request_of(name, config));
    }
    static std::string text(const json::value& of) {
        return of.is_string() ? std::string(of.as_string()) : json::serialize(of);
    }
    std::string objects_in(const std::string& bucket) {
        return service_.s3cmd({"ls", "--recursive", "s3://" + bucket});
    }
    // Wherever a secret could lie that nobody may read.
    std::string all_that_is_kept() const {
        std::string all = comfyd_->log();
        for (const auto& entry : std::filesystem::recursive_directory_iterator(comfyd_->data())) {
            if (entry.path().filename().string().starts_with("comfyd.db")) {
                all += read_file(entry.path().string());
            }
        }
        return all;
    }

    Radosgw& service_ = Radosgw::shared();
    TempDir folder_;
    net::IoThread thread_{"double"};
    std::unique_ptr<ComfyDouble> gpu_;
    std::unique_ptr<Comfyd> comfyd_;
};

TEST_F(ExportsE2e, OutputsAreInTheClientsBucketAndTheAnswerSaysWhere) {
    start(true);
    const std::string bucket = service_.make_bucket();
    const Reply answer = run_sync("one", config_for(bucket, service_.url()));
    ASSERT_EQ(answer.json_at("/status"), "COMPLETED") << answer.body;
    EXPECT_EQ(answer.json_at("/output/images/0/type"), "s3_url");
    const std::string id = text(answer.json_at("/id"));
    const std::string url = text(answer.json_at("/output/images/0/data"));
    EXPECT_THAT(url, StartsWith(service_.url() + "/" + bucket + "/" + id + "/"));
    EXPECT_THAT(answer.body, Not(HasSubstr("errors")));
    Http anybody("");
    const std::string there = anybody.get(url).body;
    EXPECT_GE(there.size(), 50'000u);
    EXPECT_THAT(
        objects_in(bucket), HasSubstr(id + "/" + text(answer.json_at("/output/images/0/filename")))
    );

    // Also later, and in our store.
    const Reply status = comfyd_->http().get(kPath + "status/" + id);
    EXPECT_EQ(status.json_at("/output/images/0/data"), answer.json_at("/output/images/0/data"));
    const json::value job = comfyd_->job(id);
    const std::string asset = text(job.at("outputs").at(0).at("id"));
    EXPECT_EQ(comfyd_->http().get("/v2/assets/" + asset + "/content").body, there);

    for (const std::string& said :
         {answer.body, status.body, json::serialize(job), all_that_is_kept()}) {
        EXPECT_THAT(said, Not(HasSubstr(Radosgw::kSecretKey)));
    }
    EXPECT_THAT(comfyd_->log(), Not(HasSubstr("X-Amz-Signature")));
}

TEST_F(ExportsE2e, ABucketThatRefusesOrIsAwayLosesNothing) {
    start(true);
    const std::string bucket = service_.make_bucket();
    json::object wrong = config_for(bucket, service_.url());
    wrong["accessSecret"] = "a-wrong-secret-of-somebody";
    FaultProxy away(service_.port());
    away.refuse(true);
    const std::pair<json::object, std::string> cases[] = {
        {wrong, "SignatureDoesNotMatch"},
        {config_for("no-such-bucket", service_.url()), "NoSuchBucket"},
        {config_for(bucket, "http://127.0.0.1:" + std::to_string(away.port())), "cannot be reached"
        },
    };
    for (const auto& [config, reason] : cases) {
        const Reply answer = run_sync(reason, config);
        ASSERT_EQ(answer.json_at("/status"), "COMPLETED") << answer.body;
        EXPECT_EQ(answer.json_at("/output/images/0/type"), "base64") << answer.body;
        const std::string why = text(answer.json_at("/output/errors/0"));
        EXPECT_THAT(why, HasSubstr(reason));
        EXPECT_THAT(why, HasSubstr("s3Config"));
        EXPECT_THAT(answer.body, Not(HasSubstr("a-wrong-secret")));
    }
    EXPECT_EQ(objects_in(bucket), "");
    EXPECT_THAT(all_that_is_kept(), Not(HasSubstr("a-wrong-secret")));
}

TEST_F(ExportsE2e, AJobGoesOnAfterACrashWithTheKeysThatItWasGiven) {
    start(true);
    const std::string bucket = service_.make_bucket();
    const Reply accepted = comfyd_->http().post_json(
        kPath + "run", request_of("crash", config_for(bucket, service_.url()))
    );
    ASSERT_EQ(accepted.status, 200) << accepted.body;
    comfyd_->restart();
    const std::string status = kPath + "status/" + text(accepted.json_at("/id"));
    ASSERT_TRUE(wait_until([&] {
        return comfyd_->http().get(status).json_at("/status") == "COMPLETED";
    })) << comfyd_->log();
    EXPECT_EQ(comfyd_->http().get(status).json_at("/output/images/0/type"), "s3_url");
    EXPECT_THAT(objects_in(bucket), HasSubstr(text(accepted.json_at("/id")) + "/"));
}

// The bucket takes connections and says nothing.
TEST_F(ExportsE2e, AJobThatIsCancelledMeanwhileIsCancelledAndKeepsNoGpuWaiting) {
    start(true);
    const std::string bucket = service_.make_bucket();
    FaultProxy silent(service_.port());
    silent.inflict_on_all(FaultProxy::Fault::swallow_requests);
    const std::string endpoint = "http://127.0.0.1:" + std::to_string(silent.port());
    const Reply accepted =
        comfyd_->http().post_json(kPath + "run", request_of("stuck", config_for(bucket, endpoint)));
    ASSERT_EQ(accepted.status, 200) << accepted.body;
    ASSERT_TRUE(wait_until([&] { return silent.accepted_connections() > 0; })) << comfyd_->log();
    const std::string id = text(accepted.json_at("/id"));
    EXPECT_EQ(comfyd_->http().get(kPath + "status/" + id).json_at("/status"), "IN_PROGRESS");
    // The only worker runs another one meanwhile.
    const std::string other = comfyd_->submit(text_to_image("beside it"));
    EXPECT_EQ(Comfyd::status_of(comfyd_->wait_finished(other)), "succeeded");
    comfyd_->http().post_json(kPath + "cancel/" + id, json::object());
    EXPECT_TRUE(wait_until([&] {
        return comfyd_->http().get(kPath + "status/" + id).json_at("/status") == "CANCELLED";
    })) << comfyd_->log();
}

TEST_F(ExportsE2e, FilesOfOneNameDoNotMeet) {
    start(true);
    const std::string bucket = service_.make_bucket();
    json::object workflow = text_to_image("twice");
    json::object again = workflow.at("9").as_object();
    workflow["10"] = std::move(again);
    json::object request = request_of("twice", config_for(bucket, service_.url()));
    request["input"].as_object()["workflow"] = workflow;
    const Reply answer = comfyd_->http().post_json(kPath + "runsync?wait=120000", request);
    ASSERT_EQ(answer.json_at("/status"), "COMPLETED") << answer.body;
    const json::value images = answer.json_at("/output/images");
    ASSERT_EQ(images.as_array().size(), 2u) << answer.body;
    EXPECT_NE(images.at(0).at("data"), images.at(1).at("data"));
    const std::string objects = objects_in(bucket);
    EXPECT_EQ(std::ranges::count(objects, '\n'), 2) << objects;
}

TEST_F(ExportsE2e, OnlyPublicBucketsAreCalled) {
    start(false);
    const std::pair<std::string, int> endpoints[] = {
        {"http://127.0.0.1:9000", 400},
        {"https://127.0.0.1:9000", 400},
        {"https://169.254.169.254", 400},
        {"https://[::ffff:10.0.0.1]", 400},
        {"https://localhost", 400},
        {"http://s3.example.com", 400},
        {"https://user:password@s3.example.com", 400},
        {"https://s3.example.com/a/path", 400},
        {"https://s3.example.com?x=1", 400},
        {"file:///etc/passwd", 400},
        {"https://" + std::string(5'000, 'x'), 400},
    };
    for (const auto& [endpoint, expected] : endpoints) {
        const Reply refused = comfyd_->http().post_json(
            kPath + "run", request_of("no", config_for("bucket", endpoint))
        );
        EXPECT_EQ(refused.status, expected) << endpoint << refused.body;
        EXPECT_EQ(refused.json_at("/details/field"), "s3Config.endpointUrl") << endpoint;
        EXPECT_THAT(refused.body, Not(HasSubstr(Radosgw::kSecretKey)));
    }
    for (const char* bucket : {"", "a", "../etc", "a/b", "a?b", "a#b", "a b"}) {
        const Reply refused = comfyd_->http().post_json(
            kPath + "run", request_of("no", config_for(bucket, "https://s3.example.com"))
        );
        EXPECT_EQ(refused.json_at("/details/field"), "s3Config.bucketName") << bucket;
    }
    json::object keyless = config_for("bucket", "https://s3.example.com");
    keyless["accessId"] = "";
    EXPECT_EQ(
        comfyd_->http()
            .post_json(kPath + "run", request_of("no", keyless))
            .json_at("/details/field"),
        "s3Config.accessId"
    );
    json::object reused = request_of("no", config_for("bucket", "https://s3.example.com"));
    reused["policy"] = json::object{{"reuse", true}};
    EXPECT_EQ(comfyd_->http().post_json(kPath + "run", reused).status, 400);
}

TEST_F(ExportsE2e, ARepeatedRequestIsTheSameJob) {
    start(true);
    const std::string bucket = service_.make_bucket();
    const json::object request = request_of("same", config_for(bucket, service_.url()));
    net::Headers headers;
    headers.set("Idempotency-Key", "once");
    const Reply first = comfyd_->http().post_json(kPath + "run", request, headers);
    ASSERT_EQ(first.status, 200) << first.body;
    const Reply again = comfyd_->http().post_json(kPath + "run", request, headers);
    EXPECT_EQ(again.status, 200) << again.body;
    EXPECT_EQ(again.json_at("/id"), first.json_at("/id"));
    const json::object other = request_of("same", config_for("another", service_.url()));
    EXPECT_EQ(comfyd_->http().post_json(kPath + "run", other, headers).status / 100, 4);
}

TEST_F(ExportsE2e, OutputsComeInTheAnswerWhereThatIsAskedFor) {
    start(false);
    const json::object asked{{"output_config", {{"storage", {{"provider", "inline"}}}}}};
    const std::string id = comfyd_->submit(text_to_image("inline"), asked);
    comfyd_->wait_finished(id);
    const json::value job = comfyd_->job(id);
    const json::value& output = job.at("outputs").at(0);
    const std::string asset = text(output.at("id"));
    const auto bytes = from_base64(text(output.at("data")));
    ASSERT_TRUE(bytes);
    EXPECT_EQ(*bytes, comfyd_->http().get("/v2/assets/" + asset + "/content").body);
    EXPECT_EQ(output.at("data_encoding"), "base64");
    EXPECT_EQ(output.at("data_content_type"), "image/png");
    const Reply listed = comfyd_->http().get("/api/v2/jobs");
    EXPECT_THAT(listed.body, Not(HasSubstr("data_encoding"))) << "not in lists";

    json::object request = asked;
    request["workflow"] = text_to_image("inline, too");
    for (const auto& [submit, read] :
         {std::pair("/v2/workflows/execute", "/v2/workflows/execution/"),
          std::pair("/comfyui/execute", "/comfyui/execution/")}) {
        const Reply accepted = comfyd_->http().post_json(submit, request);
        ASSERT_EQ(accepted.status / 100, 2) << accepted.body;
        const std::string path = read + text(accepted.json_at("/execution_id"));
        ASSERT_TRUE(wait_until([&] {
            return comfyd_->http().get(path).json_at("/status") == "completed";
        }));
        const Reply done = comfyd_->http().get(path);
        EXPECT_TRUE(done.json_at("/result/outputs/0/data").is_string()) << done.body;
        EXPECT_THAT(accepted.body, Not(HasSubstr("warnings")));
    }
}

TEST_F(ExportsE2e, WhatIsTooLargeForTheAnswerIsLinkedTo) {
    ComfydOptions options;
    options.arguments = {
        "--no-engine",
        "--worker",
        gpu_->url(),
        "--set",
        "fleet.poll_ms=100",
        "--set",
        "results.inline_kb=32"
    };
    comfyd_ = std::make_unique<Comfyd>(options);
    const json::object asked{{"output_config", {{"storage", {{"provider", "base64"}}}}}};
    const std::string id = comfyd_->submit(text_to_image("large"), asked);
    const json::value job = comfyd_->wait_finished(id);
    EXPECT_FALSE(job.at("outputs").at(0).as_object().contains("data"));
    EXPECT_EQ(job.at("warnings").at(0).at("code"), "NOT_INLINE");
    comfyd_.reset();

    options.arguments.back() = "results.inline_kb=0";
    comfyd_ = std::make_unique<Comfyd>(options);
    json::object request = asked;
    request["workflow"] = text_to_image("none");
    const Reply refused = comfyd_->http().post_json("/api/v2/jobs", request);
    EXPECT_EQ(refused.status / 100, 4) << refused.body;
    EXPECT_THAT(refused.body, HasSubstr("output_config.storage.provider"));
}

}  // namespace
}  // namespace comfyd::support
