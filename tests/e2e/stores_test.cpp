// Outputs in stores of the operator's choice: who may use them, what happens while one is away, how
// long outputs stay, and how everything is moved from one to another.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/crypto.hpp"
#include "net/io_threads.hpp"
#include "support/comfy_double.hpp"
#include "support/comfyd.hpp"

namespace comfyd::support {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class StoresE2e : public testing::Test {
protected:
    inline static const std::string kKey = "a long enough key of tenant ";

    StoresE2e() {
        thread_.start();
        DoubleOptions options;
        options.output_bytes = 60'000;  // a file, not kept with its record
        worker_ = std::make_unique<ComfyDouble>(thread_.context(), options);
        worker_->start();
        fs::create_directory(nas());
        config_ = folder_.write(
            "comfyd.yaml",
            "auth:\n  keys:\n" + key("red") + key("blue") +
                "  operators: [blue]\n"
                "fleet: {poll_ms: 100}\n"
                "stores:\n  - name: nas\n    provider: folder\n    tenants: [red]\n    path: " +
                nas().string() +
                "\n"
                "results: {immediate_hours: 0.001}\n"
        );
        ComfydOptions comfyd;
        comfyd.data = folder_ / "data";
        comfyd.arguments = {"--config", config_, "--no-engine", "--worker", worker_->url()};
        comfyd_ = std::make_unique<Comfyd>(comfyd);
        red_ = client("red");
        blue_ = client("blue");
    }
    ~StoresE2e() override {
        red_.reset();
        blue_.reset();
        comfyd_.reset();
        worker_.reset();
        thread_.stop();
    }

    static std::string key(const std::string& name) {
        return "    - {name: " + name + ", sha256: " + to_hex(sha256(kKey + name)) + "}\n";
    }
    std::unique_ptr<Http> client(const std::string& tenant) {
        auto made = std::make_unique<Http>(comfyd_->url());
        made->set_header("Authorization", "Bearer " + (kKey + tenant));
        return made;
    }
    fs::path nas() const { return folder_.path() / "nas"; }
    std::vector<std::string> files_in(const fs::path& folder) const {
        std::vector<std::string> found;
        for (const auto& entry : fs::recursive_directory_iterator(folder)) {
            if (entry.is_regular_file()) {
                found.push_back(entry.path().lexically_relative(folder).string());
            }
        }
        return found;
    }
    static std::string submit(Http& by, const std::string& name, json::object more = {}) {
        more["workflow"] = text_to_image(name);
        const Reply reply = by.post_json("/api/v2/jobs", more);
        EXPECT_EQ(reply.status, 201) << reply.body;
        return std::string(reply.json_at("/id").as_string());
    }
    static json::value finished(Http& by, const std::string& id) {
        json::value job;
        EXPECT_TRUE(wait_until([&] {
            job = by.get("/api/v2/jobs/" + id).json();
            return Comfyd::status_of(job) == "succeeded";
        }));
        return job;
    }
    static std::string storage_of(Http& by, const std::string& id) {
        const json::value job = by.get("/api/v2/jobs/" + id).json();
        return job.as_object().contains("storage") ? std::string(job.at("storage").as_string())
                                                   : "none";
    }
    static std::string content_path(const json::value& job) {
        return "/api/v2/assets/" + std::string(job.at("outputs").at(0).at("id").as_string()) +
               "/content";
    }
    static std::size_t size_of(const json::value& job) {
        return job.at("outputs").at(0).at("size_bytes").to_number<std::size_t>();
    }
    int run(std::vector<std::string> arguments, std::string& output) {
        arguments.insert(arguments.begin(), COMFYD_BINARY);
        Process process(std::move(arguments));
        const int status = process.wait().value_or(-1);
        output = process.output() + process.errors();
        return status;
    }

    TempDir folder_;
    net::IoThread thread_{"double"};
    std::unique_ptr<ComfyDouble> worker_;
    std::string config_;
    std::unique_ptr<Comfyd> comfyd_;
    std::unique_ptr<Http> red_;
    std::unique_ptr<Http> blue_;
    const json::object in_nas_{
        {"output_config",
         json::object{{"storage", json::object{{"provider", "nas"}, {"path", "renders/may"}}}}}
    };
};

TEST_F(StoresE2e, AnOutputIsBroughtWhereItWasAskedForByWhoMay) {
    const std::string id = submit(*red_, "one", in_nas_);
    const json::value job = finished(*red_, id);
    ASSERT_TRUE(wait_until([&] { return storage_of(*red_, id) == "stored"; })) << comfyd_->log();
    const auto files = files_in(nas());
    ASSERT_EQ(files.size(), 1U);
    EXPECT_THAT(files[0], testing::StartsWith("renders/may/"));
    const Reply content = red_->get(content_path(job));
    EXPECT_EQ(content.status, 200);
    EXPECT_GT(content.body.size(), 60'000U);
    EXPECT_EQ(content.body, read_file((nas() / files[0]).string()));
    EXPECT_EQ(blue_->get(content_path(job)).status, 404) << "it is another tenant's";

    json::object asked = in_nas_;
    asked["workflow"] = text_to_image("two");
    const Reply refused = blue_->post_json("/api/v2/jobs", asked);
    EXPECT_EQ(refused.status, 422);
    EXPECT_THAT(refused.body, testing::Not(HasSubstr(nas().string())));
    EXPECT_EQ(storage_of(*blue_, submit(*blue_, "three")), "none");

    // Equal bytes are brought once; what the last one refers to goes when it is deleted.
    const std::string again = submit(*red_, "one", in_nas_);
    finished(*red_, again);
    EXPECT_TRUE(wait_until([&] { return storage_of(*red_, again) == "stored"; }));
    EXPECT_EQ(files_in(nas()).size(), 1U);
}

TEST_F(StoresE2e, AStoreThatIsAwayHoldsNobodyUpAndLosesNothing) {
    fs::rename(nas(), folder_.path() / "away");
    const std::string id = submit(*red_, "one", in_nas_);
    const json::value job = finished(*red_, id);
    EXPECT_EQ(storage_of(*red_, id), "pending");
    EXPECT_EQ(red_->get(content_path(job)).body.size(), size_of(job)) << "it is served from here";
    finished(*blue_, submit(*blue_, "two"));
    comfyd_->restart();
    red_ = client("red");
    blue_ = client("blue");
    EXPECT_EQ(storage_of(*red_, id), "pending");
    EXPECT_EQ(blue_->get("/admin/v1/stores").json_at("/uploads_waiting"), 1);
    fs::rename(folder_.path() / "away", nas());
    ASSERT_TRUE(wait_until([&] { return storage_of(*red_, id) == "stored"; })) << comfyd_->log();
    EXPECT_EQ(files_in(nas()).size(), 1U);
    EXPECT_EQ(red_->get(content_path(job)).body.size(), size_of(job));
}

TEST_F(StoresE2e, KilledAtAnyMomentItLosesNothing) {
    std::vector<std::string> ids;
    for (int round = 0; round < 8; ++round) {
        for (int i = 0; i < 2; ++i) {
            const std::string name = std::to_string(round) + " and " + std::to_string(i);
            ids.push_back(submit(*red_, name, in_nas_));
        }
        // From before the first output is there to after it was brought.
        wait_until(
            [&] { return files_in(nas()).size() >= ids.size() / 2; },
            std::chrono::milliseconds(60 * round)
        );
        comfyd_->restart();
        red_ = client("red");
    }
    for (const std::string& id : ids) {
        const json::value job = finished(*red_, id);
        ASSERT_TRUE(wait_until([&] { return storage_of(*red_, id) == "stored"; }))
            << comfyd_->log();
        EXPECT_EQ(red_->get(content_path(job)).body.size(), size_of(job));
    }
    EXPECT_GE(files_in(nas() / "renders").size(), ids.size());
}

TEST_F(StoresE2e, OutputsStayAsLongAsTheirClassSays) {
    const std::string brief = submit(*red_, "brief", {{"retention", "immediate"}});
    const std::string kept = submit(*red_, "kept");
    const std::string longer = submit(*red_, "longer", {{"retention", "archive"}});
    const json::value job = finished(*red_, brief);
    const json::value other = finished(*red_, kept);
    finished(*red_, longer);
    EXPECT_EQ(job.at("outputs").at(0).at("retention"), "immediate");
    ASSERT_TRUE(wait_until([&] { return red_->get(content_path(job)).status == 404; }));
    const json::value gone = red_->get("/api/v2/jobs/" + brief).json();
    EXPECT_EQ(gone.at("outputs").at(0).at("expired"), true);
    EXPECT_EQ(gone.at("outputs").at(0).at("expires_at"), job.at("outputs").at(0).at("expires_at"));
    EXPECT_EQ(red_->get(content_path(other)).status, 200);
    EXPECT_EQ(submit(*red_, "x").empty(), false);
    EXPECT_EQ(
        red_->post_json(
                "/api/v2/jobs", {{"workflow", text_to_image("y")}, {"retention", "forever"}}
        )
            .status,
        422
    );

    std::string listed;
    EXPECT_EQ(
        run({"assets",
             "retention",
             "--dry-run",
             "--by",
             "2999-01-01T00:00:00Z",
             "--url",
             comfyd_->url(),
             "--key",
             kKey + "blue"},
            listed),
        0
    );
    EXPECT_THAT(listed, HasSubstr("remove"));
    EXPECT_THAT(listed, HasSubstr("move to archive"));
    EXPECT_EQ(red_->get("/admin/v1/retention").status, 403);
    EXPECT_EQ(red_->get(content_path(other)).status, 200) << "nothing was done";
}

TEST_F(StoresE2e, AllIsMovedFromOneStoreToAnother) {
    std::vector<json::value> jobs;
    for (int i = 0; i < 5; ++i) {
        jobs.push_back(finished(*red_, submit(*red_, "number " + std::to_string(i))));
    }
    const std::vector<std::string> copy{
        "assets",
        "copy",
        "--from",
        "local",
        "--to",
        "nas",
        "--config",
        config_,
        "--data",
        comfyd_->data()
    };
    std::string output;
    EXPECT_NE(run(copy, output), 0) << "the server has the ledger";
    comfyd_->stop();
    EXPECT_EQ(run(copy, output), 0) << output;
    EXPECT_EQ(files_in(nas()).size(), 5U) << output;
    EXPECT_EQ(run(copy, output), 0) << "again: " << output;
    EXPECT_EQ(files_in(nas()).size(), 5U);
    EXPECT_NE(
        run({"assets",
             "copy",
             "--from",
             "local",
             "--to",
             "nowhere",
             "--config",
             config_,
             "--data",
             comfyd_->data()},
            output),
        0
    );
    fs::remove_all(fs::path(comfyd_->data()) / "assets" / "blobs");
    comfyd_->start();
    red_ = client("red");
    for (const json::value& job : jobs) {
        EXPECT_EQ(red_->get(content_path(job)).body.size(), size_of(job));
    }
}

}  // namespace
}  // namespace comfyd::support
