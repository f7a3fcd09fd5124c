#include "jobs/webhook_headers.hpp"

#include <gtest/gtest.h>

#include <string>

namespace comfyd::jobs {
namespace {

TEST(WebhookHeaders, WhatFramesOrProvesAMessageIsReservedHoweverItIsWritten) {
    for (const char* name :
         {"Host",
          "CONTENT-LENGTH",
          "Content-Type",
          "Content-Encoding",
          "connection",
          "Keep-Alive",
          "Transfer-Encoding",
          "TE",
          "Trailer",
          "Upgrade",
          "Expect",
          "X-Signature",
          "X-Execution-ID",
          "X-Webhook-Event",
          "X-Webhook-ID",
          "X-Webhook-Signature",
          "X-Webhook-Timestamp",
          "Webhook-Id",
          "webhook-timestamp",
          "Webhook-Signature"}) {
        EXPECT_TRUE(is_reserved_webhook_header(name)) << name;
    }
    for (const char* name : {"Authorization", "X-Api-Key", "X-Signature-2", "Hos", "", "Cookie"}) {
        EXPECT_FALSE(is_reserved_webhook_header(name)) << name;
    }
}

TEST(WebhookHeaders, WhatEndsAHeaderBeforeItsEndIsNone) {
    EXPECT_TRUE(is_webhook_header("X-Api-Key", "a value\twith a tab, and \xC3\xA4"));
    EXPECT_TRUE(is_webhook_header("x!#$%&'*+-.^_`|~9", ""));
    EXPECT_FALSE(is_webhook_header("", "value"));
    for (int c = 0; c < 256; ++c) {
        const std::string text = "a" + std::string(1, static_cast<char>(c)) + "b";
        const bool control = (c < 0x20 && c != '\t') || c == 0x7F;
        EXPECT_EQ(is_webhook_header("name", text), !control) << c;
        if (control || c == ' ' || c == ':' || c == '\t' || c > 0x7F) {
            EXPECT_FALSE(is_webhook_header(text, "value")) << c;
        }
    }
}

TEST(WebhookHeaders, NameAndValueAreBoundedTogether) {
    const std::string name(100, 'n');
    EXPECT_TRUE(is_webhook_header(name, std::string(kWebhookHeaderBytesMax - 100, 'v')));
    EXPECT_FALSE(is_webhook_header(name, std::string(kWebhookHeaderBytesMax - 99, 'v')));
}

}  // namespace
}  // namespace comfyd::jobs
