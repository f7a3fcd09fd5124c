#include "notify/sms/gateway.hpp"

#include <gtest/gtest.h>

#include "base/json.hpp"
#include "net/http.hpp"

namespace comfyd::notify::sms {
namespace {

using Kind = Outcome::Kind;

const std::vector<std::string> kHostile = {
    "plain",
    "a&To=+15550000&Body=x",
    "quote \" backslash \\ brace }} {{to}}",
    "line\r\nX-Injected: 1\r\n\r\n",
    "100 % + ? # / = ü 😀",
    std::string("nul \0 byte", 10),
};

net::ClientResponse answer(int status, std::string body) {
    net::ClientResponse response;
    response.status = status;
    response.body = std::move(body);
    return response;
}

std::string value_of(std::string_view form, std::string_view key) {
    std::string found;
    int count = 0;
    for (const auto& [name, value] : net::parse_query(form)) {
        if (name == key) {
            found = value;
            ++count;
        }
    }
    return count == 1 ? found : "(" + std::to_string(count) + " of them)";
}

TEST(Gateway, WhateverIsSaidStaysInItsPlace) {
    Gateway json_gateway;
    json_gateway.url = "https://gateway.example.com/send";
    json_gateway.body = R"({"to":"{{to}}","message":{"text":"{{text}}","kind":"{{type}}"}})";
    Gateway query;
    query.url = "https://gateway.example.com/send?to={{digits}}&text={{text}}";
    query.method = "GET";
    query.format = Gateway::Format::query;
    const Gateway form = twilio({.account = "AC1", .user = "AC1", .secret = "s", .from = "+1555"});
    for (const std::string& text : kHostile) {
        const Sms sms{"+491711234567", text};
        const auto body = json::parse_object(make_request(json_gateway, sms).body);
        ASSERT_TRUE(body) << text;
        EXPECT_EQ(body->at("to"), "+491711234567");
        EXPECT_EQ(body->at("message").at("text").as_string(), text);
        const auto posted = make_request(form, sms);
        EXPECT_EQ(value_of(posted.body, "Body"), text);
        EXPECT_EQ(value_of(posted.body, "To"), "+491711234567");
        EXPECT_EQ(value_of(posted.body, "From"), "+1555");
        const auto asked = make_request(query, sms);
        const auto url = net::Url::parse(asked.url);
        ASSERT_TRUE(url) << asked.url;
        const std::string target = url->target;
        EXPECT_EQ(value_of(target.substr(target.find('?') + 1), "text"), text);
        EXPECT_EQ(value_of(target.substr(target.find('?') + 1), "to"), "491711234567");
    }
}

TEST(Gateway, TwilioAsItsDocumentationSays) {
    const Gateway gateway =
        twilio({.account = "AC123", .user = "SK9", .secret = "secret", .messaging_service = "MG7"});
    const auto request = make_request(gateway, {"+15551234567", "hi"});
    EXPECT_EQ(request.url, "https://api.twilio.com/2010-04-01/Accounts/AC123/Messages.json");
    EXPECT_EQ(request.method, "POST");
    EXPECT_EQ(request.headers.get("Authorization"), "Basic U0s5OnNlY3JldA==");
    EXPECT_EQ(request.headers.get("Content-Type"), "application/x-www-form-urlencoded");
    EXPECT_EQ(request.body, "To=%2B15551234567&MessagingServiceSid=MG7&Body=hi");
    const auto kind = [&gateway](int status, int code) {
        const std::string body =
            code == 0 ? "" : R"({"code":)" + std::to_string(code) + R"(,"message":"why"})";
        return judge(gateway, answer(status, body), Time()).kind;
    };
    EXPECT_EQ(
        judge(gateway, answer(201, R"({"sid":"SM1","error_code":null})"), Time()).kind,
        Kind::delivered
    );
    for (const int code : {20429, 20500, 20503, 21611, 63017}) {
        EXPECT_EQ(kind(400, code), Kind::retry) << code;
    }
    for (const int code : {21211, 21408, 21610, 21612, 21614, 30003, 30006}) {
        EXPECT_EQ(kind(400, code), Kind::give_up) << code;
        EXPECT_EQ(kind(403, code), Kind::give_up) << code;
    }
    for (const int code : {20003, 21606, 21603, 21659}) {
        EXPECT_EQ(kind(401, code), Kind::put_aside) << code;
    }
    EXPECT_EQ(kind(401, 0), Kind::put_aside);
    EXPECT_EQ(kind(429, 0), Kind::retry);
    EXPECT_EQ(kind(503, 0), Kind::retry);
    EXPECT_EQ(kind(404, 0), Kind::give_up);
    EXPECT_EQ(
        judge(gateway, answer(400, R"({"code":21211,"message":"no\nnumber"})"), Time()).error,
        "the gateway answered HTTP 400, code 21211: no number"
    );
}

TEST(Gateway, VonageFailsWith200) {
    const Gateway gateway = vonage({.key = "k", .secret = "s&", .from = "comfyd"});
    EXPECT_EQ(
        make_request(gateway, {"+4917", "grüße ☃"}).body,
        "api_key=k&api_secret=s%26&from=comfyd&to=4917&text=gr%C3%BC%C3%9Fe%20%E2%98%83&type="
        "unicode"
    );
    const auto kind = [&gateway](const char* status) {
        return judge(
                   gateway,
                   answer(200, std::string(R"({"messages":[{"status":")") + status + R"("}]})"),
                   Time()
        )
            .kind;
    };
    EXPECT_EQ(kind("0"), Kind::delivered);
    EXPECT_EQ(kind("1"), Kind::retry);
    EXPECT_EQ(kind("5"), Kind::retry);
    EXPECT_EQ(kind("4"), Kind::put_aside);
    EXPECT_EQ(kind("6"), Kind::give_up);
    EXPECT_EQ(judge(gateway, answer(200, "<html>"), Time()).kind, Kind::give_up);
}

TEST(Gateway, RetryAfterIsHeeded) {
    const Gateway gateway = twilio({.account = "A", .user = "A", .secret = "s", .from = "x"});
    auto busy = answer(429, "");
    busy.headers.set("Retry-After", "7");
    EXPECT_EQ(judge(gateway, busy, Time()).retry_after, Millis(7000));
}

TEST(Gateway, WhatCannotBeSentIsRefusedBeforehand) {
    Gateway gateway;
    gateway.url = "https://gateway.example.com/";
    gateway.body = R"({"to":"{{to}}","text":"{{text}}"})";
    EXPECT_TRUE(check_gateway(gateway));
    gateway.body = R"({"to":{{to}},"text":{{text}}})";
    EXPECT_FALSE(check_gateway(gateway)) << "no JSON without the quotes";
    gateway.body = R"({"to":"{{to}}"})";
    EXPECT_FALSE(check_gateway(gateway)) << "no text";
    gateway.body = R"({"text":"{{text}}"})";
    EXPECT_FALSE(check_gateway(gateway)) << "no recipient";
    gateway.url = "ftp://gateway.example.com/{{to}}";
    EXPECT_FALSE(check_gateway(gateway));
}

TEST(Numbers, AreInternational) {
    for (const char* number : {"+491711234567", "+15551234567", "+1234567"}) {
        EXPECT_TRUE(check_number(number)) << number;
    }
    for (const char* number :
         {"",
          "+",
          "491711234567",
          "+0491711234",
          "+49 171 1234567",
          "+123456",
          "+1234567890123456",
          "+49171123456x",
          "+4917\r\n12345"}) {
        EXPECT_FALSE(check_number(number)) << number;
    }
}

}  // namespace
}  // namespace comfyd::notify::sms
