// The process itself: command line, access, shutdown, trouble with the disk.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <fstream>

#include "net/io_threads.hpp"
#include "support/comfy_double.hpp"
#include "support/comfyd.hpp"

namespace comfyd::support {
namespace {

TEST(Server, PublicAddressesNeedKeys) {
    TempDir folder;
    Process refused({COMFYD_BINARY, "serve", "--listen", "0.0.0.0:0", "--data", folder / "data"});
    EXPECT_EQ(refused.wait(), 2);
    EXPECT_NE(refused.errors().find("COMFYD_AUTH_KEYS"), std::string::npos) << refused.errors();
}

TEST(Server, KeysAreCheckedAndJobsBelongToTheirOwner) {
    ComfydOptions options;
    options.environment["COMFYD_AUTH_KEYS"] =
        "alice=alice-secret-0123456789,bob=bob-secret-0123456789";
    Comfyd comfyd(options);
    EXPECT_EQ(comfyd.http().get("/api/v2/jobs").status, 401);
    EXPECT_EQ(comfyd.http().get("/healthz").status, 200);
    net::Headers wrong;
    wrong.set("Authorization", "Bearer nonsense");
    EXPECT_EQ(comfyd.http().get("/api/v2/jobs", wrong).status, 401);
    net::Headers alice;
    alice.set("Authorization", "Bearer alice-secret-0123456789");
    net::Headers bob;
    bob.set("Authorization", "Bearer bob-secret-0123456789");
    const std::string id = comfyd.submit(small_picture(), {}, alice);
    EXPECT_EQ(comfyd.http().get("/api/v2/jobs/" + id, alice).status, 200);
    EXPECT_EQ(comfyd.http().get("/api/v2/jobs/" + id, bob).status, 404);
    EXPECT_EQ(comfyd.http().post("/api/v2/jobs/" + id + "/cancel", "", bob).status, 404);
    EXPECT_EQ(comfyd.http().get("/api/v2/jobs", bob).json_at("/jobs").as_array().size(), 0U);
    ASSERT_TRUE(wait_until([&] {
        return comfyd.http().get("/api/v2/jobs/" + id, alice).json_at("/status") ==
               json::value("succeeded");
    }));
    // Signed links work without a key; tampered ones do not.
    const std::string url(
        comfyd.http().get("/api/v2/jobs/" + id, alice).json_at("/outputs/0/url").as_string()
    );
    std::string path = url.substr(comfyd.url().size());
    EXPECT_EQ(comfyd.http().get(path).status, 200);
    path.back() = path.back() == '0' ? '1' : '0';
    EXPECT_EQ(comfyd.http().get(path).status, 403);
    EXPECT_EQ(comfyd.log().find("alice-secret"), std::string::npos) << "secrets are not logged";
}

TEST(Server, TheRunCommandFetchesPicturesAndTellsTheOutcome) {
    Comfyd comfyd;
    TempDir folder;
    const std::string good = folder.write("good.json", json::serialize(small_picture()));
    Process run(
        {COMFYD_BINARY,
         "run",
         good,
         "--url",
         comfyd.url(),
         "-o",
         folder / "out",
         "--param",
         "1.width=32"}
    );
    EXPECT_EQ(run.wait(), 0) << run.errors();
    EXPECT_TRUE(std::filesystem::exists(folder.path() / "out" / "small_00001_.png"));
    EXPECT_NE(run.output().find("small_00001_.png"), std::string::npos);

    Process wrong_parameter(
        {COMFYD_BINARY, "run", good, "--url", comfyd.url(), "--param", "1.widht=3"}
    );
    EXPECT_EQ(wrong_parameter.wait(), 2);
    EXPECT_NE(wrong_parameter.errors().find("width"), std::string::npos)
        << wrong_parameter.errors();
    Process missing_file({COMFYD_BINARY, "run", "/no/such/file", "--url", comfyd.url()});
    EXPECT_EQ(missing_file.wait(), 2);
    Process nobody({COMFYD_BINARY, "run", good, "--url", "http://127.0.0.1:1"});
    EXPECT_EQ(nobody.wait(), 4);
    json::object refused = small_picture();
    refused["1"].at("inputs").as_object()["width"] = 99999;
    const std::string too_wide = folder.write("refused.json", json::serialize(refused));
    Process not_accepted({COMFYD_BINARY, "run", too_wide, "--url", comfyd.url()});
    EXPECT_EQ(not_accepted.wait(), 2);
    EXPECT_NE(not_accepted.errors().find("16384"), std::string::npos) << not_accepted.errors();
    json::object broken = small_picture();
    broken["4"] = {
        {"class_type", "ComfyMathExpression"}, {"inputs", {{"expression", "1/0"}, {"values.a", 1}}}
    };
    broken["5"] = {{"class_type", "PreviewAny"}, {"inputs", {{"source", json::array{"4", 0}}}}};
    const std::string failing = folder.write("broken.json", json::serialize(broken));
    Process failed({COMFYD_BINARY, "run", failing, "--url", comfyd.url()});
    EXPECT_EQ(failed.wait(), 1) << failed.errors();
}

TEST(Server, OtherCommands) {
    Process version({COMFYD_BINARY, "version"});
    EXPECT_EQ(version.wait(), 0);
    EXPECT_EQ(version.output().rfind("comfyd ", 0), 0U);
    Process help({COMFYD_BINARY, "--help"});
    EXPECT_EQ(help.wait(), 0);
    EXPECT_NE(help.output().find("serve"), std::string::npos);
    Process unknown({COMFYD_BINARY, "frobnicate"});
    EXPECT_EQ(unknown.wait(), 2);
    TempDir folder;
    const std::string file = folder.write("c.yaml", "listen: 127.0.0.1:9\nlgo:\n  level: info\n");
    Process config({COMFYD_BINARY, "config", "--config", file});
    EXPECT_EQ(config.wait(), 2);
    EXPECT_NE(config.errors().find("c.yaml:2"), std::string::npos) << config.errors();
}

TEST(Server, ATermSignalEndsItCleanlyAndNothingIsLost) {
    net::IoThread thread("double");
    thread.start();
    DoubleOptions slow;
    slow.delay = Millis(800);
    ComfyDouble worker(thread.context(), slow);
    worker.start();
    ComfydOptions options;
    options.arguments = {"--no-engine", "--worker", worker.url()};
    Comfyd comfyd(options);
    std::vector<std::string> ids;
    for (int i = 0; i < 3; ++i) {
        ids.push_back(comfyd.submit(text_to_image(std::to_string(i))));
    }
    ASSERT_TRUE(wait_until([&] { return worker.executions().total == 1; }));
    auto stream = comfyd.http().events("/api/v2/jobs/" + ids[2] + "/events");
    EXPECT_EQ(comfyd.stop(), 0) << comfyd.log();
    EXPECT_TRUE(stream->wait_end());
    stream.reset();
    comfyd.start();
    for (const std::string& id : ids) {
        EXPECT_EQ(Comfyd::status_of(comfyd.wait_finished(id)), "succeeded");
    }
    EXPECT_EQ(worker.executions().total, 3U);
    worker.stop();
    thread.stop();
}

TEST(Server, ASecondProcessOnTheSameDataIsRefused) {
    Comfyd comfyd;
    Process second({COMFYD_BINARY, "serve", "--listen", "127.0.0.1:0", "--data", comfyd.data()});
    EXPECT_EQ(second.wait(), 4);
    EXPECT_FALSE(second.errors().empty());
    EXPECT_EQ(comfyd.http().get("/healthz").status, 200);
}

TEST(Server, AFullDiskIsSaidAndReadsGoOn) {
    Comfyd comfyd;
    const std::string before = comfyd.submit(small_picture());
    comfyd.wait_finished(before);
    // A limit on the size of any file that the process writes: SQLite sees it as a full disk.
    const auto size = std::filesystem::file_size(comfyd.data() + "/comfyd.db-wal");
    rlimit limit{size + 64 * 1024, RLIM_INFINITY};
    ASSERT_EQ(prlimit(comfyd.process().pid(), RLIMIT_FSIZE, &limit, nullptr), 0);
    std::vector<std::string> accepted;
    Reply refused;
    for (int i = 0; i < 400; ++i) {
        json::object workflow = small_picture(i);
        workflow["1"].as_object()["_meta"] = {{"title", std::string(8000, 'x')}};
        const Reply reply = comfyd.http().post_json("/api/v2/jobs", {{"workflow", workflow}});
        if (reply.status != 201) {
            refused = reply;
            break;
        }
        accepted.emplace_back(reply.json_at("/id").as_string());
    }
    EXPECT_TRUE(refused.status == 507 || refused.status == 503) << refused.status << refused.body;
    // There may be room for less than a job still, and comfyd tries that from time to time.
    limit.rlim_cur = 4096;
    ASSERT_EQ(prlimit(comfyd.process().pid(), RLIMIT_FSIZE, &limit, nullptr), 0);
    EXPECT_EQ(comfyd.http().get("/api/v2/jobs/" + before).status, 200);
    EXPECT_TRUE(wait_until([&] { return comfyd.http().get("/readyz").status == 503; }));
    limit.rlim_cur = RLIM_INFINITY;
    ASSERT_EQ(prlimit(comfyd.process().pid(), RLIMIT_FSIZE, &limit, nullptr), 0);
    for (const std::string& id : accepted) {
        EXPECT_EQ(Comfyd::status_of(comfyd.wait_finished(id)), "succeeded")
            << "what was accepted is not lost";
    }
    EXPECT_TRUE(wait_until([&] { return comfyd.http().get("/readyz").status == 200; }));
    comfyd.submit(small_picture());
}

}  // namespace
}  // namespace comfyd::support
