// A gateway for short messages: how its HTTP request is made of a number and a text, and what its
// answer means. All of it is data, Twilio's and Vonage's ways too. Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/time.hpp"
#include "net/client.hpp"
#include "notify/channel.hpp"

namespace comfyd::notify::sms {

// Which answers: one of these statuses, or one of these values at a JSON pointer of the body.
struct Answers {
    std::vector<int> statuses{};
    std::string pointer{};
    std::vector<std::string> values{};
};

struct Gateway {
    enum class Format { json, form, query };

    // In `url` and `body` stand {{to}} (+491711234567), {{digits}} (the same without +), {{text}}
    // and {{type}} (text, or unicode where the GSM alphabet does not do); each is escaped as its
    // place needs it.
    std::string url;
    std::string method = "POST";
    std::vector<std::pair<std::string, std::string>> headers{};
    Format format = Format::json;
    std::string body{};

    // Taken: one of the statuses and, where there is a pointer, one of the values.
    Answers ok{{200, 201, 202}};
    Answers retry{{408, 425, 429, 500, 502, 503, 504}};
    Answers pause{{401, 403}};  // of no message, until somebody changes something
};

struct Sms {
    std::string to;  // as check_number() has it
    std::string text;
};

// Code::invalid_argument unless it is + and 7 to 15 digits (E.164).
Result<> check_number(std::string_view number);

// Code::config_invalid: what it says cannot be sent.
Result<> check_gateway(const Gateway& gateway);

net::ClientRequest make_request(const Gateway& gateway, const Sms& sms);
// What an answer means: put_aside where the channel should pause. Nothing of it is shown but
// status, code and the gateway's short reason.
Outcome judge(const Gateway& gateway, const net::ClientResponse& answer, Time now);

struct TwilioAccount {
    std::string url = "https://api.twilio.com";
    std::string account;  // AC…
    std::string user;     // AC… or SK…
    std::string secret;
    std::string from{};               // a number or a name; or else
    std::string messaging_service{};  // MG…
};
Gateway twilio(const TwilioAccount& account);

struct VonageAccount {
    std::string url = "https://rest.nexmo.com";
    std::string key;
    std::string secret;
    std::string from;
};
Gateway vonage(const VonageAccount& account);

}  // namespace comfyd::notify::sms
