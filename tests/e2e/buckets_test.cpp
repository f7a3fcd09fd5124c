// Outputs in buckets of a real S3 service: they land there, links lead there, an outage delays
// nobody, and tenants have their own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

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

class BucketsE2e : public testing::Test {
protected:
    BucketsE2e() {
        thread_.start();
        DoubleOptions worker;
        worker.output_bytes = 60'000;  // a file, not kept with its record
        gpu_ = std::make_unique<ComfyDouble>(thread_.context(), worker);
        gpu_->start();
    }
    ~BucketsE2e() override {
        comfyd_.reset();
        gpu_.reset();
        thread_.stop();
    }

    static std::string store(
        const std::string& name,
        std::uint16_t port,
        const std::string& bucket,
        const std::string& more = {}
    ) {
        return "  - {name: " + name + ", provider: s3, bucket: " + bucket +
               ", endpoint: \"http://127.0.0.1:" + std::to_string(port) +
               "\", access_key: " + Radosgw::kAccessKey + ", secret_key: \"" + Radosgw::kSecretKey +
               "\"" + more + "}\n";
    }
    void start(const std::string& configuration) {
        ComfydOptions options;
        options.arguments = {
            "--config",
            folder_.write("comfyd.yaml", configuration),
            "--no-engine",
            "--set",
            "fleet.poll_ms=100",
            "--worker",
            gpu_->url()
        };
        comfyd_ = std::make_unique<Comfyd>(options);
    }
    // The only output of a job that has succeeded.
    static std::string asset_of(const json::value& job) {
        return std::string(job.at("outputs").at(0).at("id").as_string());
    }
    Reply content_of(Http& who, const json::value& job) {
        return who.get("/api/v2/assets/" + asset_of(job) + "/content");
    }
    static std::string storage_of(const json::value& job) {
        const auto* storage = job.as_object().if_contains("storage");
        return storage != nullptr && storage->is_string() ? std::string(storage->get_string())
                                                          : std::string();
    }
    // What anybody gets there, without a key of ours.
    static std::string fetched(const std::string& url) {
        Http anybody("");
        return anybody.get(url).body;
    }
    std::string objects_in(const std::string& bucket) {
        return service_.s3cmd({"ls", "--recursive", "s3://" + bucket});
    }

    Radosgw& service_ = Radosgw::shared();
    TempDir folder_;
    net::IoThread thread_{"double"};
    std::unique_ptr<ComfyDouble> gpu_;
    std::unique_ptr<Comfyd> comfyd_;
};

TEST_F(BucketsE2e, OutputsLandInTheBucketAlsoAfterAnOutageAndLinksLeadThere) {
    FaultProxy proxy(service_.port());
    const std::string bucket = service_.make_bucket();
    start(
        "stores:\n" + store("main", proxy.port(), bucket, ", prefix: out") +
        "results: {store: main}\n"
    );
    Http& http = comfyd_->http();

    const std::string id = comfyd_->submit(text_to_image("while it is there"));
    ASSERT_EQ(Comfyd::status_of(comfyd_->wait_finished(id)), "succeeded") << comfyd_->log();
    ASSERT_TRUE(wait_until([&] { return storage_of(comfyd_->job(id)) == "stored"; }))
        << comfyd_->log();
    EXPECT_THAT(objects_in(bucket), HasSubstr("s3://" + bucket + "/out/"));
    const Reply link = content_of(http, comfyd_->job(id));
    ASSERT_EQ(link.status, 302) << link.body;
    EXPECT_GE(fetched(std::string(link.headers.get("Location"))).size(), 60'000u);

    proxy.refuse(true);
    proxy.inflict(FaultProxy::Fault::cut);
    const std::string late = comfyd_->submit(text_to_image("while it is away"));
    const json::value done = comfyd_->wait_finished(late);
    EXPECT_EQ(Comfyd::status_of(done), "succeeded");
    EXPECT_EQ(storage_of(comfyd_->job(late)), "pending");
    const Reply here = content_of(http, done);
    EXPECT_EQ(here.status, 200);
    EXPECT_GE(here.body.size(), 60'000u);
    comfyd_->restart();  // what waits is not forgotten
    EXPECT_EQ(storage_of(comfyd_->job(late)), "pending");

    proxy.refuse(false);
    ASSERT_TRUE(wait_until(
        [&] { return storage_of(comfyd_->job(late)) == "stored"; }, std::chrono::seconds(90)
    )) << comfyd_->log();
    const Reply there = content_of(comfyd_->http(), done);
    ASSERT_EQ(there.status, 302);
    EXPECT_EQ(fetched(std::string(there.headers.get("Location"))), here.body);

    EXPECT_THAT(comfyd_->log(), Not(HasSubstr(Radosgw::kSecretKey)));
    EXPECT_THAT(comfyd_->log(), Not(HasSubstr("X-Amz-Signature")));
}

// The store is away for as long as the jobs run, and comfyd is killed meanwhile.
TEST_F(BucketsE2e, AnOutageKeepsNoGpuWaitingAndLosesNothing) {
    constexpr int kJobs = 12;
    FaultProxy proxy(service_.port());
    proxy.refuse(true);
    const std::string bucket = service_.make_bucket();
    start("stores:\n" + store("main", proxy.port(), bucket) + "results: {store: main}\n");
    std::map<std::string, std::string> bytes;  // by job
    for (int i = 0; i < kJobs; ++i) {
        bytes[comfyd_->submit(text_to_image("picture " + std::to_string(i)))];
    }
    for (auto& [id, content] : bytes) {
        const json::value job = comfyd_->wait_finished(id);
        ASSERT_EQ(Comfyd::status_of(job), "succeeded") << comfyd_->log();
        const Reply here = content_of(comfyd_->http(), job);
        ASSERT_EQ(here.status, 200);
        content = here.body;
    }
    const auto metric = [this](const std::string& name) {
        const std::string all = comfyd_->http().get("/metrics").body;
        const auto at = all.find("\n" + name + " ");
        return at == std::string::npos ? -1.0 : std::stod(all.substr(at + name.size() + 2));
    };
    EXPECT_EQ(comfyd_->http().get("/api/v1/workers/metrics").json_at("/idle_workers"), 1)
        << "the GPU waits for work, not for the store";
    EXPECT_EQ(metric("comfyd_uploads_waiting"), kJobs);
    EXPECT_GE(metric("comfyd_uploads_waiting_bytes"), kJobs * 60'000.0);
    EXPECT_GT(metric("comfyd_uploads_oldest_seconds"), 0.0);
    EXPECT_EQ(objects_in(bucket), "");
    comfyd_->restart();

    proxy.refuse(false);
    for (const auto& [id, content] : bytes) {
        ASSERT_TRUE(wait_until(
            [&] { return storage_of(comfyd_->job(id)) == "stored"; }, std::chrono::seconds(120)
        )) << comfyd_->log();
        const Reply there = content_of(comfyd_->http(), comfyd_->job(id));
        ASSERT_EQ(there.status, 302);
        EXPECT_EQ(fetched(std::string(there.headers.get("Location"))), content);
    }
    EXPECT_EQ(metric("comfyd_uploads_waiting"), 0);
    EXPECT_EQ(metric("comfyd_uploads_oldest_seconds"), 0);
    const std::string objects = objects_in(bucket);
    EXPECT_EQ(std::ranges::count(objects, '\n'), kJobs) << objects;
}

// Sanitizers keep what was freed for a while.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define COMFYD_KEEPS_FREED
#endif
#endif

TEST_F(BucketsE2e, ALargeOutputPassesThroughWithoutBeingHeld) {
    constexpr std::uint64_t kOutputBytes = 192ULL << 20;
    DoubleOptions worker;
    worker.output_bytes = kOutputBytes;
    gpu_.reset();
    gpu_ = std::make_unique<ComfyDouble>(thread_.context(), worker);
    gpu_->start();
    const std::string bucket = service_.make_bucket();
    start("stores:\n" + store("main", service_.port(), bucket) + "results: {store: main}\n");
    const auto memory_peak = [this] {
        const std::string status =
            read_file("/proc/" + std::to_string(comfyd_->process().pid()) + "/status");
        return std::stoull(status.substr(status.find("VmHWM:") + 6)) * 1024;
    };
    [[maybe_unused]] const std::uint64_t before = memory_peak();
    const std::string id = comfyd_->submit(text_to_image("large"));
    ASSERT_TRUE(wait_until(
        [&] { return storage_of(comfyd_->job(id)) == "stored"; }, std::chrono::seconds(150)
    )) << comfyd_->log();
#if !defined(COMFYD_KEEPS_FREED)
    // Parts on their way and what the allocator keeps: as much for a gigabyte.
    EXPECT_LT(memory_peak() - before, kOutputBytes / 2);
#endif
    const std::string size = json::serialize(comfyd_->job(id).at("outputs").at(0).at("size_bytes"));
    EXPECT_THAT(objects_in(bucket), HasSubstr(" " + size + " "));
}

TEST_F(BucketsE2e, TenantsHaveTheirOwn) {
    const std::string red = service_.make_bucket();
    const std::string blue = service_.make_bucket();
    const std::string key = "a long enough key of tenant ";
    const auto key_of = [&](const std::string& name) {
        return "    - {name: " + name + ", sha256: " + to_hex(sha256(key + name)) + "}\n";
    };
    start(
        "auth:\n  keys:\n" + key_of("red") + key_of("blue") + "stores:\n" +
        store("reds", service_.port(), red, ", tenants: [red]") +
        store("blues", service_.port(), blue, ", links: streamed") +
        "tenants:\n  - {name: red, store: reds}\n  - {name: blue, store: blues}\n"
    );
    const auto run = [&](const std::string& name, json::object more = {}) {
        Http http(comfyd_->url());
        http.set_header("Authorization", "Bearer " + key + name);
        more["workflow"] = text_to_image("of " + name);
        const Reply accepted = http.post_json("/api/v2/jobs", more);
        EXPECT_EQ(accepted.status, 201) << accepted.body;
        const std::string path = "/api/v2/jobs/" + std::string(accepted.json_at("/id").as_string());
        json::value job;
        EXPECT_TRUE(wait_until([&] {
            job = http.get(path).json();
            return storage_of(job) == "stored";
        })) << comfyd_->log();
        return content_of(http, job);
    };
    const Reply of_red = run("red");
    EXPECT_THAT(
        std::string(of_red.headers.get("Location")), StartsWith(service_.url() + "/" + red + "/")
    );
    const Reply of_blue = run("blue");
    EXPECT_EQ(of_blue.status, 200);
    EXPECT_GE(of_blue.body.size(), 60'000u);
    EXPECT_THAT(objects_in(red), HasSubstr(red + "/"));
    EXPECT_THAT(objects_in(blue), HasSubstr(" " + std::to_string(of_blue.body.size()) + " "));

    Http curious(comfyd_->url());
    curious.set_header("Authorization", "Bearer " + key + "blue");
    const Reply refused = curious.post_json(
        "/api/v2/jobs",
        json::object{
            {"workflow", text_to_image("elsewhere")},
            {"output_config",
             json::object{{"storage", json::object{{"provider", "s3"}, {"bucket", red}}}}}
        }
    );
    EXPECT_EQ(refused.status / 100, 4) << refused.body;
}

}  // namespace
}  // namespace comfyd::support
