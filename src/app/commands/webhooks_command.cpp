#include "app/commands/webhooks_command.hpp"

#include <cstdio>
#include <utility>

#include "app/commands/ask_server.hpp"
#include "app/commands/cli.hpp"
#include "comfy/members.hpp"
#include "net/http.hpp"

namespace comfyd::app {
namespace {

using comfy::integer_of;
using comfy::text_of;

constexpr const char* kDeliveries = "/v2/webhooks/deliveries";

const json::array& list_of(const json::object& from, std::string_view key) {
    static const json::array kNone;
    const json::array* found = json::find_array(from, key).value_or(nullptr);
    return found == nullptr ? kNone : *found;
}

int complain(const std::string& message) {
    std::fprintf(stderr, "comfyd: %s\n", message.c_str());
    return kExitUsage;
}

std::string status_of(const json::object& attempt) {
    const auto status = integer_of(attempt, "status");
    return status == 0 ? "no answer" : "HTTP " + std::to_string(status);
}

std::string query_of(const WebhooksFlags& flags, const std::string& cursor) {
    std::string query = "?limit=200";
    const auto add = [&query](const char* name, const std::string& value) {
        if (!value.empty()) {
            query += std::string("&") + name + "=" + net::percent_encode(value);
        }
    };
    add("state", flags.state);
    add("receiver", flags.receiver);
    add("cursor", cursor);
    add("all_tenants", flags.all_tenants ? "true" : "");
    return query;
}

// To the last page.
int list_deliveries(const WebhooksFlags& flags) {
    std::string cursor;
    do {
        const Asked asked =
            ask_server({flags.url, flags.key, kDeliveries + query_of(flags, cursor)});
        if (!asked.answer) {
            return asked.exit_code;
        }
        std::fputs(
            flags.json ? (asked.text + "\n").c_str() : print_deliveries(*asked.answer).c_str(),
            stdout
        );
        cursor = text_of(*asked.answer, "next_cursor");
    } while (!cursor.empty());
    return kExitOk;
}

int tell(const WebhooksFlags& flags, const Asked& asked, const std::string& words) {
    if (!asked.answer) {
        return asked.exit_code;
    }
    std::fputs(flags.json ? (asked.text + "\n").c_str() : words.c_str(), stdout);
    return kExitOk;
}

int dispose(const WebhooksFlags& flags) {
    const bool is_replay = flags.action == "replay";
    if (flags.id.empty() == !flags.all) {
        return complain(
            "name the delivery to " + flags.action + ", or say --all for every dead letter"
        );
    }
    Question question{flags.url, flags.key, kDeliveries};
    if (flags.all) {
        question.method = "POST";
        question.path += (is_replay ? "/replay" : "/purge");
        question.path += flags.all_tenants ? "?all_tenants=true" : "";
        question.body = flags.receiver.empty()
                            ? "{}"
                            : json::serialize(json::object{{"receiver", flags.receiver}});
    } else {
        question.method = is_replay ? "POST" : "DELETE";
        question.path += "/" + net::percent_encode(flags.id) + (is_replay ? "/replay" : "");
    }
    const Asked asked = ask_server(std::move(question));
    if (!asked.answer) {
        return asked.exit_code;
    }
    const auto count = flags.all ? integer_of(*asked.answer, is_replay ? "replayed" : "purged") : 1;
    return tell(
        flags, asked, std::to_string(count) + (is_replay ? " to be sent again\n" : " thrown away\n")
    );
}

int test(const WebhooksFlags& flags) {
    const Asked asked = ask_server(
        {flags.url,
         flags.key,
         "/v2/webhooks/endpoints/" + net::percent_encode(flags.id) + "/test",
         "POST",
         "{}"}
    );
    if (!asked.answer) {
        return asked.exit_code;
    }
    const bool is_delivered =
        json::find_bool(*asked.answer, "delivered").value_or(std::nullopt).value_or(false);
    const std::string words = is_delivered
                                  ? "delivered, " + status_of(*asked.answer) + "\n"
                                  : "not delivered: " + text_of(*asked.answer, "error") + "\n";
    const int told = tell(flags, asked, words);
    return is_delivered ? told : static_cast<int>(kExitFailed);
}

}  // namespace

std::string print_endpoints(const json::object& answer) {
    std::string out;
    for (const json::value& one : list_of(answer, "endpoints")) {
        if (!one.is_object()) {
            continue;
        }
        const json::object& endpoint = one.get_object();
        out += text_of(endpoint, "id") + "  " + text_of(endpoint, "url") + "  " +
               text_of(endpoint, "scheme");
        const std::string disabled = text_of(endpoint, "disabled_reason");
        out += disabled.empty() ? "\n" : "  DISABLED: " + disabled + "\n";
    }
    return out.empty() ? "no endpoints\n" : out;
}

std::string print_deliveries(const json::object& answer) {
    std::string out;
    for (const json::value& one : list_of(answer, "deliveries")) {
        if (!one.is_object()) {
            continue;
        }
        const json::object& delivery = one.get_object();
        out += text_of(delivery, "state") + "  " + text_of(delivery, "id") + "  " +
               text_of(delivery, "event") + "  " +
               std::to_string(integer_of(delivery, "attempts")) + " attempts";
        const std::string error = text_of(delivery, "error");
        out += error.empty() ? "\n" : "  " + error + "\n";
    }
    return out;
}

std::string print_delivery(const json::object& delivery) {
    std::string out;
    for (const char* name :
         {"id",
          "state",
          "event",
          "execution_id",
          "receiver",
          "url",
          "created_at",
          "next_attempt_at",
          "ended_at",
          "error"}) {
        if (const std::string text = text_of(delivery, name); !text.empty()) {
            out += std::string(name) + ": " + text + "\n";
        }
    }
    for (const json::value& one : list_of(delivery, "log")) {
        if (one.is_object()) {
            const json::object& attempt = one.get_object();
            const std::string error = text_of(attempt, "error");
            out += "  " + text_of(attempt, "at") + "  " + status_of(attempt) + ", " +
                   std::to_string(integer_of(attempt, "duration_ms")) + " ms" +
                   (error.empty() ? "" : "  " + error) + "\n";
        }
    }
    return out;
}

int run_webhooks(WebhooksFlags flags) {
    if (flags.action == "deliveries") {
        return list_deliveries(flags);
    }
    if (flags.action == "replay" || flags.action == "purge") {
        return dispose(flags);
    }
    if (flags.action == "endpoints") {
        const Asked asked = ask_server({flags.url, flags.key, "/v2/webhooks/endpoints"});
        return tell(flags, asked, asked.answer ? print_endpoints(*asked.answer) : "");
    }
    if (flags.id.empty()) {
        return complain(
            "name the " + std::string(flags.action == "test" ? "endpoint" : "delivery")
        );
    }
    if (flags.action == "test") {
        return test(flags);
    }
    const Asked asked = ask_server(
        {flags.url, flags.key, std::string(kDeliveries) + "/" + net::percent_encode(flags.id)}
    );
    return tell(flags, asked, asked.answer ? print_delivery(*asked.answer) : "");
}

}  // namespace comfyd::app
