#include "notify/target.hpp"

#include <gtest/gtest.h>

#include "notify/endpoint.hpp"

namespace comfyd::notify {
namespace {

TEST(Target, EveryKindComesBackAsItWas) {
    jobs::Webhook webhook;
    webhook.url = "https://example.com/hook?a=b";
    webhook.secret = "s\"3\xC3\xA9";
    webhook.headers = {{"X-One", "1"}};
    webhook.events = {"execution.started"};
    webhook.max_retries = 2;
    webhook.retry_delay = Millis(1'500);
    webhook.timeout = Millis(250);
    webhook.method = "PUT";
    webhook.verify_tls = false;
    const auto own = decode_target(encode_target(webhook));
    ASSERT_TRUE(own);
    EXPECT_EQ(std::get<jobs::Webhook>(*own).to_json(), webhook.to_json());

    const EndpointTarget endpoint{EndpointId::make(from_unix_ms(1))};
    const auto found = decode_target(encode_target(endpoint));
    ASSERT_TRUE(found);
    EXPECT_EQ(std::get<EndpointTarget>(*found).id, endpoint.id);

    const auto mail = decode_target(encode_target(MailTarget{"ops", "a@example.com"}));
    ASSERT_TRUE(mail);
    EXPECT_EQ(std::get<MailTarget>(*mail).channel, "ops");
    EXPECT_EQ(std::get<MailTarget>(*mail).address, "a@example.com");
    const auto sms = decode_target(encode_target(SmsTarget{"pager", "+4912345678"}));
    ASSERT_TRUE(sms);
    EXPECT_EQ(std::get<SmsTarget>(*sms).channel, "pager");
    EXPECT_EQ(std::get<SmsTarget>(*sms).number, "+4912345678");
}

TEST(Target, WhatIsNoneIsSaidSo) {
    for (const char* text :
         {"",
          "null",
          "{}",
          R"({"kind":"pigeon"})",
          R"({"kind":"endpoint","id":"x"})",
          R"({"kind":"webhook"})",
          R"({"kind":1,"url":"https://example.com"})"}) {
        EXPECT_FALSE(decode_target(text)) << text;
    }
}

TEST(Endpoint, ComesBackFromItsTwoParts) {
    Endpoint endpoint;
    endpoint.id = EndpointId::make(from_unix_ms(5));
    endpoint.tenant = "acme";
    endpoint.revision = 7;
    endpoint.description = "shop";
    endpoint.webhook.url = "https://example.com/";
    endpoint.webhook.secret = make_endpoint_secret();
    endpoint.webhook.events = {"execution.progress"};
    endpoint.scheme = Scheme::x_webhook;
    endpoint.body = BodyForm::cloud_events;
    endpoint.previous_secret = "old";
    endpoint.previous_until = from_unix_ms(2'000);
    endpoint.disabled = "it answered 410";
    endpoint.created_at = from_unix_ms(1'000);
    endpoint.updated_at = from_unix_ms(1'500);
    EXPECT_EQ(json::serialize(endpoint.about()).find(endpoint.webhook.secret), std::string::npos);
    const auto back = Endpoint::restore(
        endpoint.id, endpoint.tenant, endpoint.revision, endpoint.about(), endpoint.secrets()
    );
    ASSERT_TRUE(back);
    EXPECT_EQ(back->about(), endpoint.about());
    EXPECT_EQ(back->secrets(), endpoint.secrets());
    EXPECT_EQ(back->manner(from_unix_ms(1'999)).previous_secret, "old");
    EXPECT_EQ(back->manner(from_unix_ms(2'000)).previous_secret, "");
}

TEST(Endpoint, ATextBecomesAStandardSecret) {
    EXPECT_EQ(as_standard_secret("whsec_c2VjcmV0"), "whsec_c2VjcmV0");
    EXPECT_EQ(as_standard_secret("secret"), "whsec_c2VjcmV0");
    EXPECT_EQ(as_standard_secret("whsec_?"), "whsec_d2hzZWNfPw==");
    EXPECT_NE(make_endpoint_secret(), make_endpoint_secret());
}

}  // namespace
}  // namespace comfyd::notify
