#include "notify/mail/smtp_reply.hpp"

#include <gtest/gtest.h>

#include <random>

namespace comfyd::notify::mail {
namespace {

Result<Reply> read(const std::vector<std::string>& lines) {
    ReplyReader reader;
    for (const std::string& line : lines) {
        const auto is_last = reader.add(line);
        if (!is_last) {
            return fail(is_last.error());
        }
        if (*is_last) {
            return reader.take();
        }
    }
    return fail(Code::internal, "it has not ended");
}

TEST(SmtpReply, IsPutTogetherFromItsLines) {
    const auto one = read({"250 2.1.5 Ok"});
    ASSERT_TRUE(one);
    EXPECT_EQ(one->code, 250);
    EXPECT_EQ(one->enhanced, "2.1.5");
    EXPECT_TRUE(one->is_done());
    const auto several = read({"550-5.7.30 one", "550 5.7.30 two"});
    ASSERT_TRUE(several);
    EXPECT_EQ(several->to_string(), "550 5.7.30 one 5.7.30 two");
    EXPECT_EQ(several->enhanced, "5.7.30");
    EXPECT_TRUE(several->is_refusal());
    EXPECT_EQ(read({"354"})->code, 354);
    EXPECT_EQ(read({"250 1.2 is no code"})->enhanced, "");
}

TEST(SmtpReply, WhatIsNoneIsRefused) {
    for (const std::vector<std::string>& lines : std::vector<std::vector<std::string>>{
             {""},
             {"25"},
             {"2500 x"},
             {"abc x"},
             {"199 x"},
             {"600 x"},
             {"250-a", "251 b"},
             {"HTTP/1.1"}
         }) {
        EXPECT_FALSE(read(lines)) << lines.front();
    }
    EXPECT_FALSE(read(std::vector<std::string>(10'000, "250-more"))) << "it never ends";
}

TEST(SmtpReply, CapabilitiesAreReadAsServersWriteThem) {
    const auto hello = read(
        {"250-mail.example.com STARTTLS",
         "250-starttls",
         "250-AUTH=PLAIN",
         "250-Auth login xoauth2",
         "250-SIZE 1000",
         "250-",
         "250 SIZE x"}
    );
    ASSERT_TRUE(hello);
    const Capabilities found = Capabilities::from(*hello);
    EXPECT_TRUE(found.starttls);
    EXPECT_TRUE(found.has_auth("PLAIN"));
    EXPECT_TRUE(found.has_auth("LOGIN"));
    EXPECT_TRUE(found.has_auth("XOAUTH2"));
    EXPECT_EQ(found.size_max, 1000U);
    EXPECT_FALSE(Capabilities::from(*read({"250 STARTTLS"})).starttls) << "that is its name";
    EXPECT_FALSE(Capabilities::from(*read({"250-x", "250 SIZE 0"})).size_max) << "no limit";
}

TEST(SmtpReply, AnyBytesAreBornAndShownInOneLine) {
    std::mt19937 random(5);
    for (int round = 0; round < 20'000; ++round) {
        std::vector<std::string> lines;
        for (std::size_t n = 1 + random() % 3; n > 0; --n) {
            std::string line = random() % 2 == 0 ? "250-" : "250 ";
            for (std::size_t i = random() % 400; i > 0; --i) {
                line += static_cast<char>(random());
            }
            lines.push_back(random() % 8 == 0 ? line.substr(random() % 5) : line);
        }
        const auto reply = read(lines);
        if (reply) {
            const std::string shown = reply->to_string();
            EXPECT_LE(shown.size(), 310U);
            for (const char c : shown) {
                EXPECT_FALSE(c == '\n' || c == '\r' || c == '\0');
            }
            static_cast<void>(Capabilities::from(*reply));
        }
    }
}

}  // namespace
}  // namespace comfyd::notify::mail
