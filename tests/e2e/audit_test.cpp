// The audit log of a running server: what stands in it, what happens to it, and who would see that.
#include <filesystem>
#include <fstream>

#include "auth/jwt/test_support.hpp"
#include "native_support.hpp"
#include "support/webhook_receiver.hpp"

namespace comfyd::support {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kBoss = "boss-0123456789abcdef";
constexpr const char* kApp = "app-0123456789abcdef";
const std::string kSecret = "a secret of more than thirty-two bytes";

struct Ran {
    int code = -1;
    std::string output;
};
Ran run(std::vector<std::string> words) {
    words.insert(words.begin(), COMFYD_BINARY);
    Process process(std::move(words));
    const int code = process.wait().value_or(-1);
    return {code, process.output() + process.errors()};
}

class AuditE2e : public testing::Test {
protected:
    void start(std::map<std::string, std::string> more = {}) {
        ComfydOptions serve;
        serve.environment = {
            {"COMFYD_AUTH_KEYS", std::string("boss=") + kBoss + ",app=" + kApp},
            {"COMFYD_AUTH_OPERATORS", "boss"},
            {"COMFYD_JWT_SECRET", kSecret},
            {"COMFYD_PROXIES_TRUSTED", "127.0.0.1"},
            {"COMFYD_AUDIT_FOLDER", log()},
        };
        serve.environment.merge(more);
        comfyd_ = std::make_unique<Comfyd>(serve);
    }
    std::unique_ptr<Http> client(const std::string& key) const {
        auto made = std::make_unique<Http>(comfyd_->url());
        made->set_header("Authorization", "Bearer " + key);
        made->set_header("X-Forwarded-For", "198.51.100.9");
        return made;
    }
    std::string log() const { return folder_ / "audit"; }
    fs::path first_file() const { return fs::path(log()) / "audit-00000001.jsonl"; }
    // Those with this action, once there are some.
    std::vector<json::value> told(const std::string& action) const {
        std::vector<json::value> found;
        wait_until([&] {
            found.clear();
            std::ifstream in(first_file());
            for (std::string line; std::getline(in, line);) {
                const auto parsed = json::parse(line);
                if (parsed && parsed->at("action") == json::value(action)) {
                    found.push_back(*parsed);
                }
            }
            return !found.empty();
        });
        return found;
    }
    Ran verify(std::vector<std::string> more = {}) const {
        std::vector<std::string> words{"audit", "verify", log()};
        words.insert(words.end(), more.begin(), more.end());
        return run(words);
    }

    TempDir folder_;
    std::unique_ptr<Comfyd> comfyd_;
};

TEST_F(AuditE2e, SaysWhoDidWhatFromWhereAndWhatCameOfIt) {
    start();
    const auto boss = client(kBoss);
    const auto app = client(kApp);
    app->set_header("X-Request-Id", "request-1");
    app->set_header("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");

    const Reply key = boss->post_json("/admin/v1/keys", {{"name", "ci"}, {"tenant", "acme"}});
    ASSERT_EQ(key.status, 201) << key.body;
    const auto made = told("key.create");
    ASSERT_EQ(made.size(), 1U);
    EXPECT_EQ(made[0].at("tenant"), "boss");
    EXPECT_EQ(made[0].at("object"), key.json_at("/id"));
    EXPECT_EQ(made[0].at("from"), "198.51.100.9");
    EXPECT_EQ(made[0].at("outcome"), "ok");

    const Reply job = app->post_json(
        "/api/v2/jobs", {{"workflow", small_picture(1)}, {"metadata", {{"who", "a private word"}}}}
    );
    ASSERT_EQ(job.status, 201) << job.body;
    const auto submitted = told("job.create");
    ASSERT_EQ(submitted.size(), 1U);
    EXPECT_EQ(submitted[0].at("object"), job.json_at("/id"));
    EXPECT_EQ(submitted[0].at("tenant"), "app");
    EXPECT_EQ(submitted[0].at("key"), "app");
    EXPECT_EQ(submitted[0].at("request"), "request-1");
    EXPECT_EQ(submitted[0].at("trace"), "0af7651916cd43dd8448eb211c80319c");
    EXPECT_EQ(submitted[0].at("route"), "/api/v2/jobs");

    const std::string path = "/api/v2/jobs/" + std::string(job.json_at("/id").as_string());
    app->get(path);  // nobody notes what is read
    app->post_json(path + "/cancel", json::object());
    EXPECT_EQ(told("job.cancel")[0].at("object"), job.json_at("/id"));

    const auto ci = client(std::string(key.json_at("/key").as_string()));
    EXPECT_EQ(ci->post_json("/api/v2/jobs", json::object()).status, 422);
    EXPECT_EQ(ci->get("/admin/v1/keys").status, 403);
    const auto refused = told("key.read");
    EXPECT_EQ(refused[0].at("key_id"), key.json_at("/id"));
    EXPECT_EQ(refused[0].at("outcome"), "refused");
    EXPECT_EQ(refused[0].at("error"), "forbidden");
    const auto user = client(auth::jwt::test::hs_token(
        kSecret, R"({"alg":"HS256"})", R"({"user_id":"u-1","sub":"s-7","exp":4000000000})"
    ));
    EXPECT_EQ(user->post_json("/api/v1/tasks", json::object()).status, 400);
    for (int i = 0; i < 5; ++i) {  // more would have to wait
        EXPECT_EQ(client("no-such-key-0123456789")->get(path + "?token=secret").status, 401);
    }
    EXPECT_EQ(told("login.refused")[0].at("status"), 401);
    comfyd_->stop();

    const std::string all = read_file(first_file());
    EXPECT_THAT(all, HasSubstr("\"subject\":\"s-7\""));
    EXPECT_THAT(all, HasSubstr("\"count\":4")) << "together";
    EXPECT_THAT(all, HasSubstr("comfyd.stop"));
    for (const std::string& private_word :
         {std::string("a private word"),
          std::string("no-such-key"),
          std::string("token=secret"),
          std::string("ck_live_"),
          std::string(kApp)}) {
        EXPECT_THAT(all, Not(HasSubstr(private_word)));
    }
    const Ran whole = verify();
    EXPECT_EQ(whole.code, 0) << whole.output;
    EXPECT_THAT(whole.output, HasSubstr("the log is whole"));
    const Ran shown = run({"audit", "show", log(), "--tenant", "boss", "--action", "key"});
    EXPECT_EQ(std::ranges::count(shown.output, '\n'), 1);
}

TEST_F(AuditE2e, AChangedLineIsFound) {
    start();
    client(kBoss)->post_json("/admin/v1/tenants", {{"name", "acme"}});
    comfyd_->stop();
    std::string all = read_file(first_file());
    all.replace(all.find("\"object\":\"") + 10, 0, "x");
    std::ofstream(first_file(), std::ios::trunc) << all;
    const Ran found = verify();
    EXPECT_EQ(found.code, 1);
    EXPECT_THAT(found.output, HasSubstr("audit-00000001.jsonl:3: line 3 was changed"));
}

TEST_F(AuditE2e, WhatWasAnsweredOutlivesAKillAndTheChainGoesOn) {
    start();
    for (int i = 0; i < 5; ++i) {
        const std::string name = "tenant-" + std::to_string(i);
        ASSERT_EQ(client(kBoss)->post_json("/admin/v1/tenants", {{"name", name}}).status, 201);
        comfyd_->kill();
        EXPECT_THAT(read_file(first_file()), HasSubstr("\"object\":\"" + name + "\""));
        std::ofstream(first_file(), std::ios::app) << "{\"seq\":99,\"ti";  // as a crash leaves it
        comfyd_->start();
    }
    EXPECT_EQ(told("tenant.create").size(), 5U);
    comfyd_->stop();
    const Ran whole = verify();
    EXPECT_EQ(whole.code, 0) << whole.output;
    EXPECT_THAT(whole.output, HasSubstr("audit.torn"));
}

TEST_F(AuditE2e, CheckpointsGoElsewhereAndShowWhatWasCutOff) {
    WebhookReceiver receiver;
    receiver.script_statuses({500, 200});
    start(
        {{"COMFYD_AUDIT_RECEIVER", receiver.url("/checkpoints")},
         {"COMFYD_AUDIT_RECEIVER_TOKEN", "for-the-receiver"},
         {"COMFYD_AUDIT_CHECKPOINT_S", "1"}}
    );
    ASSERT_TRUE(receiver.wait_for(2)) << "it is tried again";
    client(kBoss)->post_json("/admin/v1/tenants", {{"name", "acme"}});
    const Reply about = client(kBoss)->get("/admin/v1/audit");
    EXPECT_EQ(about.json_at("/enabled"), true) << about.body;
    const std::string key(about.json_at("/public_key").as_string());
    comfyd_->stop();
    std::string kept;
    const auto received = receiver.requests();
    for (std::size_t i = 1; i < received.size(); ++i) {
        EXPECT_EQ(received[i].headers.get("Authorization"), "Bearer for-the-receiver");
        kept += received[i].body + "\n";
    }
    const std::string elsewhere = folder_.write("kept", kept);
    const Ran whole = verify({"--public-key", key, "--checkpoints", elsewhere});
    EXPECT_EQ(whole.code, 0) << whole.output;
    std::string all = read_file(first_file());
    all.resize(all.rfind('\n', all.size() - 2) + 1);
    std::ofstream(first_file(), std::ios::trunc) << all;
    EXPECT_EQ(verify().code, 0) << "by itself it looks whole";
    const Ran cut = verify({"--checkpoints", elsewhere});
    EXPECT_EQ(cut.code, 1) << cut.output;
    EXPECT_THAT(cut.output, HasSubstr("is not in the log"));
    EXPECT_EQ(verify({"--public-key", std::string(64, '0')}).code, 1);
}

TEST_F(AuditE2e, NotesAsMuchAsItIsToldTo) {
    start({{"COMFYD_AUDIT_EVENTS", "all"}, {"COMFYD_AUDIT_CUT_ADDRESSES", "true"}});
    client(kApp)->get("/api/v2/jobs");
    client(kApp)->get("/healthz");
    EXPECT_EQ(told("job.read")[0].at("from"), "198.51.100.0/24");
    comfyd_->stop();
    EXPECT_THAT(read_file(first_file()), Not(HasSubstr("healthz")));
    EXPECT_THAT(read_file(first_file()), Not(HasSubstr("198.51.100.9")));

    start({{"COMFYD_AUDIT_EVENTS", "security"}});
    client(kApp)->post_json("/api/v2/jobs", {{"workflow", small_picture(1)}});
    client(kBoss)->post_json("/admin/v1/workers/engine/drain", json::object());
    EXPECT_EQ(told("worker.drain")[0].at("object"), "engine");
    comfyd_->stop();
    EXPECT_THAT(read_file(first_file()), Not(HasSubstr("job.create")));
}

TEST_F(AuditE2e, TwoServersDoNotShareALog) {
    start();
    Process second(ProcessOptions{
        .arguments =
            {COMFYD_BINARY,
             "serve",
             "--listen",
             "127.0.0.1:0",
             "--data",
             folder_ / "other",
             "--set",
             "audit.folder=" + log()},
    });
    EXPECT_NE(second.wait().value_or(0), 0);
    EXPECT_THAT(second.errors(), HasSubstr("another process writes the audit log"));
}

}  // namespace
}  // namespace comfyd::support
