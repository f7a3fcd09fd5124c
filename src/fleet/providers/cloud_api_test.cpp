#include "fleet/providers/cloud_api.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

#include "assets/test_service.hpp"
#include "net/test_support.hpp"

namespace comfyd::fleet {
namespace {

using assets::test::Asked;
using assets::test::Played;
using assets::test::TestService;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kKey = "sk_very-secret-key";

// Plays its answers in turn, then the last one again.
class CloudApiTest : public testing::Test {
protected:
    CloudApiTest() {
        CloudApiOptions options{.service = "Cloud", .url = service_.url() + "/v2", .key = kKey};
        options.patience = {.tries_max = 3, .first_pause = Millis(1), .longest_pause = Millis(2)};
        options.timeout = Millis(20'000);
        options.answer_bytes_max = 100'000;
        api_ = std::make_unique<CloudApi>(loop_.executor(), std::move(options), clock_);
    }
    ~CloudApiTest() override {
        std::promise<void> done;
        boost::asio::post(loop_.executor(), [&] {
            api_.reset();
            done.set_value();
        });
        done.get_future().get();
    }

    void play(std::deque<Played> answers) { answers_ = std::move(answers); }
    Result<json::value> call(CloudCall call) { return loop_.run(api_->call(std::move(call))); }
    Result<json::value> create() {
        return call(
            {.method = "POST",
             .path = "/pods",
             .body = json::object{{"env", {{"TOKEN", "worker-token"}}}},
             .kind = CloudCall::Kind::once,
             .secrets = {"worker-token"}}
        );
    }
    static Played limited(std::string seconds) {
        Played played{.status = 429, .body = R"({"message":"slow down"})"};
        played.headers.set("Retry-After", std::move(seconds));
        return played;
    }

    std::deque<Played> answers_;
    TestService service_{[this](const Asked&) {
        Played next = answers_.front();
        if (answers_.size() > 1) {
            answers_.pop_front();
        }
        return next;
    }};
    SystemClock clock_;
    net::test::Loop loop_;
    std::unique_ptr<CloudApi> api_;
};

TEST_F(CloudApiTest, AsksWithTheKeyAndReadsJson) {
    play({{.body = R"({"pods":[1]})"}});
    const auto answer = call({.path = "/pods?x=1"});
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(json::serialize(*answer), R"({"pods":[1]})");
    const Asked asked = service_.asked().at(0);
    EXPECT_EQ(asked.path, "/v2/pods");
    EXPECT_EQ(asked.query, "x=1");
    EXPECT_EQ(asked.headers.get("Authorization"), std::string("Bearer ") + kKey);
    play({{.status = 204}});
    EXPECT_TRUE(call({.method = "DELETE", .path = "/pods/1"})->is_null());
}

TEST_F(CloudApiTest, WhatAsksIsRepeatedAndACreateNever) {
    play({{.status = 503, .body = "busy"}, {.status = 502}, {.body = "{}"}});
    EXPECT_TRUE(call({.path = "/pods"}));
    EXPECT_EQ(service_.asked().size(), 3u);
    play({{.status = 500, .body = R"({"detail":"oh no"})"}, {.body = "{}"}});
    const auto created = create();
    ASSERT_FALSE(created);
    EXPECT_EQ(created.error().code, Code::upstream_error);
    EXPECT_THAT(created.error().message, HasSubstr("Cloud: POST /pods: it answers 500 (oh no)"));
    EXPECT_EQ(service_.asked().size(), 4u);
    // Not even where the answer breaks off.
    play({{.is_lost = true}, {.body = "{}"}});
    EXPECT_EQ(create().error().code, Code::connection_failed);
    EXPECT_EQ(service_.asked().size(), 5u);
    // Nor without end.
    play({{.status = 503}});
    EXPECT_EQ(call({.path = "/pods"}).error().code, Code::upstream_error);
    EXPECT_EQ(service_.asked().size(), 8u);
}

TEST_F(CloudApiTest, ARefusalIsNotRepeated) {
    for (const auto& [status, code] : std::vector<std::pair<int, Code>>{
             {400, Code::invalid_argument},
             {401, Code::unauthorized},
             {402, Code::balance_empty},
             {403, Code::forbidden},
             {404, Code::not_found},
             {409, Code::conflict},
             {422, Code::invalid_argument}
         }) {
        const std::size_t before = service_.asked().size();
        play({{.status = status, .body = R"({"error":{"message":"why"}})"}});
        const auto answer = call({.path = "/x"});
        EXPECT_EQ(answer.error().code, code) << status;
        EXPECT_EQ(answer.error().details.at("status"), status);
        EXPECT_THAT(answer.error().message, HasSubstr("why"));
        EXPECT_EQ(service_.asked().size(), before + 1) << status;
    }
    // A redirect is not followed: the key is not for others.
    Played away{.status = 302};
    away.headers.set("Location", service_.url() + "/elsewhere");
    play({away});
    EXPECT_EQ(create().error().code, Code::protocol_error);
    EXPECT_NE(service_.asked().back().path, "/elsewhere");
}

TEST_F(CloudApiTest, WhatIsNotJsonIsSurvived) {
    const std::string page = "<html>\n<body>502 \xff Bad Gateway</body></html>";
    play({{.body = page}});
    auto answer = create();
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, Code::protocol_error);
    EXPECT_THAT(answer.error().message, HasSubstr("<html> <body>502 ? Bad Gateway"));
    play({{.status = 400, .body = page}});
    EXPECT_THAT(create().error().message, HasSubstr("Bad Gateway"));
    play({{.status = 400, .body = R"(["a list"])"}});
    EXPECT_EQ(create().error().code, Code::invalid_argument);
    play({{.body = std::string(200'000, ' ')}});
    EXPECT_EQ(create().error().code, Code::payload_too_large);
    play({{.body = std::string(50'000, '[')}});
    EXPECT_EQ(create().error().code, Code::protocol_error);
    // A page that a proxy shows for a moment.
    play({{.body = page}, {.body = "{}"}});
    EXPECT_TRUE(call({.path = "/pods"}));
}

TEST_F(CloudApiTest, SecretsAreInNoError) {
    const std::string echo = std::string("bad: ") + kKey + " TOKEN=worker-token";
    for (const std::string& body :
         {echo, json::serialize(json::object{{"message", echo}}), "<p>" + echo}) {
        for (const int status : {200, 400, 401, 500}) {
            play({{.status = status, .body = body}});
            const auto answer = create();
            if (answer) {
                continue;
            }
            EXPECT_THAT(answer.error().message, Not(HasSubstr(kKey))) << status;
            EXPECT_THAT(answer.error().message, Not(HasSubstr("worker-token"))) << status;
            EXPECT_THAT(json::serialize(answer.error().details), Not(HasSubstr("worker-token")));
        }
    }
}

TEST_F(CloudApiTest, ALongRateLimitIsTheCallersAndAsksNobody) {
    play({limited("3600"), {.body = "{}"}});
    const auto answer = call({.path = "/pods"});
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, Code::rate_limited);
    EXPECT_GT(answer.error().details.at("retry_after").as_int64(), 3500);
    const auto next = create();
    EXPECT_EQ(next.error().code, Code::rate_limited);
    EXPECT_GT(next.error().details.at("retry_after").as_int64(), 3500);
    EXPECT_EQ(service_.asked().size(), 1u);
}

TEST_F(CloudApiTest, AShortRateLimitIsWaitedFor) {
    play({limited("1"), {.body = "{}"}});
    EXPECT_TRUE(call({.path = "/pods"}));
    EXPECT_EQ(service_.asked().size(), 2u);
    // A create that was refused so is left to its caller.
    play({limited("0"), {.body = "{}"}});
    EXPECT_EQ(create().error().code, Code::rate_limited);
    EXPECT_EQ(service_.asked().size(), 3u);
    // A success may say that it was the last for now.
    Played last{.body = "{}"};
    last.headers.set("RateLimit", R"("minute";r=0;t=1800)");
    play({last});
    EXPECT_TRUE(call({.path = "/pods"}));
    EXPECT_EQ(call({.path = "/pods"}).error().code, Code::rate_limited);
    EXPECT_EQ(service_.asked().size(), 4u);
}

TEST_F(CloudApiTest, ATextWithoutEndIsHeardForAWhile) {
    play({{.body = "data: 1\n"}});
    EXPECT_EQ(loop_.run(api_->listen("/logs", Millis(20'000), 1000)), "data: 1\n");
    EXPECT_EQ(loop_.run(api_->listen("/logs", Millis(20'000), 4)), "data");
    play({{.status = 404, .body = "{}"}});
    EXPECT_EQ(loop_.run(api_->listen("/logs", Millis(20'000), 4)).error().code, Code::not_found);
}

TEST(CloudUrl, AKeyGoesOverTlsOrStaysHere) {
    EXPECT_TRUE(check_cloud_url("https://api.example.com/v2"));
    EXPECT_TRUE(check_cloud_url("http://127.0.0.1:8000"));
    EXPECT_TRUE(check_cloud_url("http://localhost:8000"));
    for (const char* url :
         {"http://api.example.com", "ftp://x", "api.example.com", "", "wss://x"}) {
        EXPECT_EQ(check_cloud_url(url).error().code, Code::config_invalid) << url;
    }
}

}  // namespace
}  // namespace comfyd::fleet
