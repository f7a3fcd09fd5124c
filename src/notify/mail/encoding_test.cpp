#include "notify/mail/encoding.hpp"

#include <gtest/gtest.h>

#include <random>
#include <sstream>
#include <vector>

#include "base/crypto.hpp"
#include "notify/mail/address.hpp"
#include "notify/mail/mime.hpp"
#include "notify/mail/smtp_session.hpp"

namespace comfyd::notify::mail {
namespace {

// Lines without CR LF; fails where a line ends otherwise.
std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::size_t begin = 0;
    while (begin < text.size()) {
        const std::size_t end = text.find("\r\n", begin);
        EXPECT_NE(end, std::string::npos);
        lines.push_back(text.substr(begin, end - begin));
        EXPECT_EQ(lines.back().find_first_of("\r\n"), std::string::npos);
        begin = end + 2;
    }
    return lines;
}

std::string decode_words(const std::string& value) {
    std::string decoded;
    for (std::size_t at = value.find("=?UTF-8?B?"); at != std::string::npos;
         at = value.find("=?UTF-8?B?", at + 1)) {
        const std::size_t end = value.find("?=", at + 10);
        const auto bytes = from_base64(value.substr(at + 10, end - at - 10));
        EXPECT_TRUE(bytes);
        EXPECT_EQ(valid_utf8(*bytes), *bytes) << "a character was cut";
        decoded += *bytes;
    }
    return decoded;
}

std::string decode_quoted(const std::string& text) {
    std::string decoded;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '=') {
            decoded += text[i];
        } else if (text.compare(i, 3, "=\r\n") == 0) {
            i += 2;
        } else {
            decoded += static_cast<char>(std::stoi(text.substr(i + 1, 2), nullptr, 16));
            i += 2;
        }
    }
    return decoded;
}

const std::vector<std::string> kPieces = {
    "a",
    "word",
    " ",
    "  ",
    "\r\n",
    "\n",
    "\r",
    "Bcc: evil@example.com",
    "=?UTF-8?B?eA==?=",
    "ä",
    "€",
    "😀",
    "=",
    ".",
    "\t",
    std::string("\0", 1),
    "\x7f",
    "\xff",
    "\xc3",
    "<>",
    "\"",
    "\\",
    std::string(90, 'x'),
    "From ",
    "--=_mail",
};

std::string hostile_text(std::mt19937& random, std::size_t pieces) {
    std::string text;
    for (std::size_t i = random() % (pieces + 1); i > 0; --i) {
        text += kPieces[random() % kPieces.size()];
    }
    return text;
}

TEST(Encoding, NoTextGetsOutOfItsHeader) {
    std::mt19937 random(1);
    for (int round = 0; round < 3000; ++round) {
        const std::string text = hostile_text(random, 30);
        const std::string made = header("Subject", text);
        const auto lines = lines_of(made);
        ASSERT_FALSE(lines.empty());
        ASSERT_TRUE(lines[0].starts_with("Subject: "));
        std::string unfolded;
        for (std::size_t i = 0; i < lines.size(); ++i) {
            ASSERT_LE(lines[i].size(), 76U) << lines[i];
            ASSERT_TRUE(i == 0 || lines[i].starts_with(" ")) << lines[i];
            ASSERT_TRUE(i == 0 || lines[i].find_first_not_of(' ') != std::string::npos);
            for (const char c : lines[i]) {
                ASSERT_TRUE(c >= ' ' && c <= '~');
            }
            unfolded += lines[i];
        }
        std::string expected = valid_utf8(text);
        for (char& c : expected) {
            c = (c >= 0 && c < ' ') || c == '\x7f' ? ' ' : c;
        }
        const std::string value = unfolded.substr(9);
        ASSERT_EQ(value.starts_with("=?UTF-8?B?") ? decode_words(value) : value, expected);
    }
}

TEST(Encoding, PlainHeadersStayReadable) {
    EXPECT_EQ(header("Subject", "Job failed: portraits"), "Subject: Job failed: portraits\r\n");
    EXPECT_EQ(header("Subject", ""), "Subject: \r\n");
}

TEST(Encoding, QuotedPrintableComesBackAndIsInShortLines) {
    std::mt19937 random(2);
    for (int round = 0; round < 2000; ++round) {
        const std::string text = hostile_text(random, 60);
        const std::string made = quoted_printable(text);
        for (const std::string& line : lines_of(made)) {
            ASSERT_LE(line.size(), 76U);
            ASSERT_FALSE(line.ends_with(' ') || line.ends_with('\t')) << "it would be lost";
            ASSERT_EQ(line.find("=_"), std::string::npos) << "it could be a boundary";
            for (const char c : line) {
                ASSERT_TRUE((c >= ' ' && c <= '~') || c == '\t');
            }
        }
        std::string expected;
        for (std::size_t i = 0; i < text.size(); ++i) {
            if (text[i] == '\r' || text[i] == '\n') {
                expected += "\r\n";
                i += text.compare(i, 2, "\r\n") == 0 ? 1 : 0;
            } else {
                expected += text[i];
            }
        }
        if (!expected.empty() && !expected.ends_with("\r\n")) {
            expected += "\r\n";
        }
        ASSERT_EQ(decode_quoted(made), expected);
    }
}

TEST(Encoding, Base64IsInLines) {
    std::mt19937 random(3);
    for (const std::size_t size : {0U, 1U, 56U, 57U, 58U, 1000U}) {
        std::string bytes(size, '\0');
        for (char& c : bytes) {
            c = static_cast<char>(random());
        }
        std::string joined;
        for (const std::string& line : lines_of(base64_lines(bytes))) {
            ASSERT_LE(line.size(), 76U);
            joined += line;
        }
        EXPECT_EQ(from_base64(joined), bytes);
    }
}

TEST(Encoding, DotsAreDoubledAndTheEndIsOurs) {
    EXPECT_EQ(with_dots("a\r\n.\r\n..b\r\n"), "a\r\n..\r\n...b\r\n.\r\n");
    EXPECT_EQ(with_dots(".\r\n"), "..\r\n.\r\n");
    EXPECT_EQ(with_dots(""), ".\r\n");
}

TEST(Encoding, WhatIsNoUtf8IsReplaced) {
    EXPECT_EQ(valid_utf8("ä€😀"), "ä€😀");
    EXPECT_EQ(
        valid_utf8("a\xff"
                   "b"),
        "a\xEF\xBF\xBD"
        "b"
    );
    EXPECT_EQ(valid_utf8("\xC0\xAF"), "\xEF\xBF\xBD\xEF\xBF\xBD") << "overlong";
    EXPECT_EQ(valid_utf8("\xED\xA0\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD") << "surrogate";
    EXPECT_EQ(valid_utf8("\xE2\x82"), "\xEF\xBF\xBD\xEF\xBF\xBD") << "cut";
}

TEST(Addresses, OnlyPlainOnes) {
    for (const char* address :
         {"a@b.de", "first.last+tag@mail.example.com", "x@localhost", "o'neil@xn--bcher-kva.example"
         }) {
        EXPECT_TRUE(check_address(address)) << address;
    }
    for (const char* address :
         {"",
          "a",
          "@b.de",
          "a@",
          "a b@c.de",
          "a@b..de",
          "a@-b.de",
          "a@b.de>",
          "<a@b.de>",
          ".a@b.de",
          "a..b@c.de",
          "a@b.de\r\nRCPT TO:<x@y.z>",
          "a@b@c.de",
          "a@bü cher.de",
          "a@-bücher.de",
          "a@b\u2028ü.de",
          "ä\xff@b.de",
          "a\xC2\x85@b.de",
          "a@\xC3.de",
          "a@b_c.de",
          "\"a b\"@c.de"}) {
        EXPECT_FALSE(check_address(address)) << address;
    }
    EXPECT_FALSE(check_address(std::string(65, 'a') + "@b.de"));
    EXPECT_FALSE(check_address("a@" + std::string(250, 'b') + ".de"));
}

TEST(Addresses, OfAnyScriptHaveADomainThatEveryServerTakes) {
    const std::pair<const char*, const char*> addresses[] = {
        {"a@Example.com", "a@Example.com"},
        {"a@bücher.de", "a@xn--bcher-kva.de"},
        {"a@BÜCHER.de", "a@xn--bcher-kva.de"},
        {"a@bu\u0308cher.de", "a@xn--bcher-kva.de"},  // the same in two characters
        {"a@faß.de", "a@xn--fa-hia.de"},
        {"a@例え.テスト", "a@xn--r8jz45g.xn--zckzah"},
        {"jürgen@bücher.de", "jürgen@xn--bcher-kva.de"},
    };
    for (const auto& [written, sent] : addresses) {
        const auto made = address_for_servers(written);
        ASSERT_TRUE(made) << made.error().message;
        EXPECT_EQ(*made, sent);
    }
    EXPECT_FALSE(address_for_servers(std::string("a@b\0ü.de", 8)));
    EXPECT_FALSE(needs_utf8("a@xn--bcher-kva.de"));
    EXPECT_TRUE(needs_utf8("jürgen@xn--bcher-kva.de"));
}

TEST(Dates, AreThoseOfMails) {
    EXPECT_EQ(mail_date(from_unix_ms(0)), "Thu, 01 Jan 1970 00:00:00 +0000");
    EXPECT_EQ(mail_date(from_unix_ms(1'794'966'074'999)), "Wed, 18 Nov 2026 01:41:14 +0000");
}

}  // namespace
}  // namespace comfyd::notify::mail
