#include "notify/sms/gateway.hpp"

#include <algorithm>

#include "base/crypto.hpp"
#include "base/json.hpp"
#include "net/http.hpp"
#include "net/http_date.hpp"
#include "notify/sms/segments.hpp"

namespace comfyd::notify::sms {
namespace {

constexpr std::size_t kReasonBytesMax = 200;

std::string escape_json(std::string_view text) {
    const std::string quoted =
        json::serialize(json::value(boost::json::string_view(text.data(), text.size())));
    return quoted.substr(1, quoted.size() - 2);
}

std::string escape_form(std::string_view text) {
    return net::percent_encode(text);
}

template <class Escape>
std::string filled(std::string_view pattern, const Sms& sms, Escape escape) {
    std::string made;
    while (!pattern.empty()) {
        const std::size_t begin = std::min(pattern.find("{{"), pattern.size());
        made += pattern.substr(0, begin);
        pattern.remove_prefix(begin);
        const std::size_t end = pattern.find("}}");
        if (pattern.empty() || end == std::string_view::npos) {
            break;
        }
        const std::string_view name = pattern.substr(2, end - 2);
        if (name == "to") {
            made += escape(sms.to);
        } else if (name == "digits") {
            made += escape(std::string_view(sms.to).substr(1));
        } else if (name == "text") {
            made += escape(sms.text);
        } else if (name == "type") {
            made += measure(sms.text).is_gsm ? "text" : "unicode";
        }
        pattern.remove_prefix(end + 2);
    }
    made += pattern;
    return made;
}

std::string_view content_type(Gateway::Format format) {
    return format == Gateway::Format::json ? "application/json"
                                           : "application/x-www-form-urlencoded";
}

// What stands at the pointer, as text; empty: nothing.
std::string value_at(const json::value& body, const std::string& pointer) {
    boost::system::error_code error;
    const json::value* found = body.find_pointer(pointer, error);
    if (pointer.empty() || found == nullptr || found->is_object() || found->is_array()) {
        return "";
    }
    return found->is_string() ? std::string(found->get_string()) : json::serialize(*found);
}

bool has_value(const Answers& answers, const json::value& body) {
    const std::string value = value_at(body, answers.pointer);
    return !value.empty() && std::ranges::find(answers.values, value) != answers.values.end();
}

bool has_status(const Answers& answers, int status) {
    return std::ranges::find(answers.statuses, status) != answers.statuses.end();
}

std::string printable(std::string text) {
    std::ranges::replace_if(text, [](char c) { return (c >= 0 && c < ' ') || c == '\x7f'; }, ' ');
    if (text.size() > kReasonBytesMax) {
        text.resize(kReasonBytesMax);
    }
    return text;
}

std::string reason_of(const Gateway& gateway, int status, const json::value& body) {
    std::string reason = "the gateway answered HTTP " + std::to_string(status);
    for (const std::string& pointer : {gateway.retry.pointer, gateway.ok.pointer}) {
        const std::string code = value_at(body, pointer);
        if (!code.empty()) {
            reason += ", code " + printable(code);
            break;
        }
    }
    const std::string message = value_at(body, "/message");
    return message.empty() ? reason : reason + ": " + printable(message);
}

}  // namespace

Result<> check_number(std::string_view number) {
    const std::string_view digits = number.substr(std::min<std::size_t>(1, number.size()));
    const bool is_right = number.starts_with('+') && digits.size() >= 7 && digits.size() <= 15 &&
                          digits.front() != '0' &&
                          std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; });
    if (!is_right) {
        return fail(
            Code::invalid_argument,
            "'" + std::string(number.substr(0, 32)) +
                "' is no telephone number such as +491711234567"
        );
    }
    return {};
}

Result<> check_gateway(const Gateway& gateway) {
    const Sms sample{"+491711234567", "x"};
    const net::ClientRequest request = make_request(gateway, sample);
    if (auto url = net::Url::parse(request.url); !url || !url->scheme.starts_with("http")) {
        return fail(
            Code::config_invalid, "its 'url' must look like https://gateway.example.com/sms"
        );
    }
    if (gateway.format == Gateway::Format::json && !json::parse(request.body)) {
        return fail(
            Code::config_invalid, "its 'body' is no JSON: write \"{{text}}\" with the quotes"
        );
    }
    const std::string patterns = gateway.url + gateway.body;
    const auto has = [&patterns](std::string_view name) {
        return patterns.find(name) != std::string::npos;
    };
    if (!has("{{text}}") || !(has("{{to}}") || has("{{digits}}"))) {
        return fail(Code::config_invalid, "its 'url' or 'body' must have {{to}} and {{text}}");
    }
    return {};
}

net::ClientRequest make_request(const Gateway& gateway, const Sms& sms) {
    net::ClientRequest request;
    request.method = gateway.method;
    request.url = filled(gateway.url, sms, escape_form);
    for (const auto& [name, value] : gateway.headers) {
        request.headers.set(name, value);
    }
    if (gateway.format != Gateway::Format::query) {
        request.headers.set("Content-Type", std::string(content_type(gateway.format)));
        request.body = gateway.format == Gateway::Format::json
                           ? filled(gateway.body, sms, escape_json)
                           : filled(gateway.body, sms, escape_form);
    }
    return request;
}

Outcome judge(const Gateway& gateway, const net::ClientResponse& answer, Time now) {
    const auto parsed = json::parse(answer.body);
    const json::value body = parsed ? *parsed : json::value(nullptr);
    if (has_status(gateway.ok, answer.status) &&
        (gateway.ok.pointer.empty() || has_value(gateway.ok, body))) {
        return {.kind = Outcome::Kind::delivered};
    }
    std::string reason = reason_of(gateway, answer.status, body);
    // A code says more than the status: 403 may be about the account or about one number.
    const bool has_code = !value_at(body, gateway.pause.pointer).empty();
    if (has_code ? has_value(gateway.pause, body) : has_status(gateway.pause, answer.status)) {
        return {.kind = Outcome::Kind::put_aside, .error = std::move(reason)};
    }
    if (has_value(gateway.retry, body) || has_status(gateway.retry, answer.status)) {
        return {
            .kind = Outcome::Kind::retry,
            .error = std::move(reason),
            .retry_after = net::parse_retry_after(answer.headers.get("Retry-After"), now)
        };
    }
    return {.kind = Outcome::Kind::give_up, .error = std::move(reason)};
}

Gateway twilio(const TwilioAccount& account) {
    Gateway gateway;
    gateway.url = account.url + "/2010-04-01/Accounts/" + net::percent_encode(account.account) +
                  "/Messages.json";
    gateway.headers = {{"Authorization", "Basic " + to_base64(account.user + ":" + account.secret)}
    };
    gateway.format = Gateway::Format::form;
    gateway.body = "To={{to}}&" +
                   (account.messaging_service.empty()
                        ? "From=" + net::percent_encode(account.from)
                        : "MessagingServiceSid=" + net::percent_encode(account.messaging_service)) +
                   "&Body={{text}}";
    gateway.ok = {{200, 201}};
    gateway.retry = {
        {408, 425, 429, 500, 502, 503, 504},
        "/code",
        {"20429", "20500", "20503", "21611", "30001", "63017"}
    };
    // Who we are, and from which number we send.
    gateway.pause = {{401, 403}, "/code", {"20003", "21603", "21606", "21659"}};
    return gateway;
}

Gateway vonage(const VonageAccount& account) {
    Gateway gateway;
    gateway.url = account.url + "/sms/json";
    gateway.format = Gateway::Format::form;
    gateway.body = "api_key=" + net::percent_encode(account.key) +
                   "&api_secret=" + net::percent_encode(account.secret) +
                   "&from=" + net::percent_encode(account.from) +
                   "&to={{digits}}&text={{text}}&type={{type}}";
    // Failures are 200, too.
    gateway.ok = {{200}, "/messages/0/status", {"0"}};
    gateway.retry = {{408, 425, 429, 500, 502, 503, 504}, "/messages/0/status", {"1", "5"}};
    gateway.pause = {{401, 403}, "/messages/0/status", {"4", "9"}};  // credentials, credit
    return gateway;
}

}  // namespace comfyd::notify::sms
