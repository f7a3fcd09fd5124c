#include "app/commands/jobs_command.hpp"

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

constexpr const char* kDeadLetters = "/api/v2/dead-letters";

int complain(const std::string& message) {
    std::fprintf(stderr, "comfyd: %s\n", message.c_str());
    return kExitUsage;
}

int tell(const JobsFlags& flags, const Asked& asked, const std::string& words) {
    if (!asked.answer) {
        return asked.exit_code;
    }
    std::fputs(flags.json ? (asked.text + "\n").c_str() : words.c_str(), stdout);
    return kExitOk;
}

// To the last page.
int list(const JobsFlags& flags) {
    std::string cursor;
    do {
        std::string query = "?limit=200";
        query += flags.cause.empty() ? "" : "&cause=" + net::percent_encode(flags.cause);
        query += flags.all_tenants ? "&all_tenants=true" : "";
        query += cursor.empty() ? "" : "&cursor=" + net::percent_encode(cursor);
        const Asked asked = ask_server({flags.url, flags.key, kDeadLetters + query});
        if (const int told =
                tell(flags, asked, asked.answer ? print_dead_letters(*asked.answer) : "");
            told != kExitOk) {
            return told;
        }
        cursor = text_of(*asked.answer, "next_cursor");
    } while (!cursor.empty());
    return kExitOk;
}

// What reads as JSON is that, anything else a text: seed=5, 6.text=a cat.
json::value read_value(const std::string& text) {
    auto parsed = json::parse(text);
    return parsed ? std::move(*parsed) : json::value(text);
}

int retry(const JobsFlags& flags) {
    json::object inputs;
    for (const std::string& parameter : flags.parameters) {
        const auto equals = parameter.find('=');
        if (equals == std::string::npos || equals == 0) {
            return complain("--param needs NAME=VALUE, not '" + parameter + "'");
        }
        inputs[parameter.substr(0, equals)] = read_value(parameter.substr(equals + 1));
    }
    json::object body{{"inputs", std::move(inputs)}};
    if (!flags.pool.empty()) {
        body["pool"] = flags.pool;
    }
    if (flags.timeout_s > 0) {
        body["timeout"] = flags.timeout_s;
    }
    const Asked asked = ask_server(
        {flags.url,
         flags.key,
         std::string(kDeadLetters) + "/" + net::percent_encode(flags.id) + "/retry",
         "POST",
         json::serialize(body)}
    );
    return tell(flags, asked, asked.answer ? text_of(*asked.answer, "id") + "\n" : "");
}

int purge(const JobsFlags& flags) {
    if (flags.id.empty() == !flags.all) {
        return complain("name the job to purge, or say --all for every failed one");
    }
    if (!flags.all) {
        const Asked asked = ask_server(
            {flags.url,
             flags.key,
             std::string(kDeadLetters) + "/" + net::percent_encode(flags.id),
             "DELETE"}
        );
        return tell(flags, asked, "1 thrown away\n");
    }
    std::int64_t all = 0;
    for (bool more = true; more;) {
        const json::object body =
            flags.cause.empty() ? json::object() : json::object{{"cause", flags.cause}};
        const Asked asked = ask_server(
            {flags.url,
             flags.key,
             std::string(kDeadLetters) + "/purge" + (flags.all_tenants ? "?all_tenants=true" : ""),
             "POST",
             json::serialize(body)}
        );
        if (!asked.answer) {
            return asked.exit_code;
        }
        all += integer_of(*asked.answer, "purged");
        more = json::find_bool(*asked.answer, "more").value_or(std::nullopt).value_or(false);
    }
    std::printf("%lld thrown away\n", static_cast<long long>(all));
    return kExitOk;
}

// Messages of workers may have several.
std::string first_line(const std::string& text) {
    return text.substr(0, text.find('\n'));
}

std::string line_of(const json::object& attempt) {
    std::string line = "  " + std::to_string(integer_of(attempt, "attempt")) + "  " +
                       text_of(attempt, "started_at") + "  " + text_of(attempt, "worker");
    const std::string cause = text_of(attempt, "cause");
    if (!cause.empty()) {
        line += "  " + cause + ": " + first_line(text_of(attempt, "message"));
    }
    const std::string again = text_of(attempt, "retry_at");
    return line + (again.empty() ? "\n" : "; again at " + again + "\n");
}

}  // namespace

std::string print_job(const json::object& job) {
    std::string out;
    const auto add = [&out](const char* name, const std::string& text) {
        out += text.empty() ? "" : std::string(name) + ": " + text + "\n";
    };
    for (const char* name : {"id", "status", "created_at", "completed_at", "retried_from"}) {
        add(name, text_of(job, name));
    }
    if (const json::value* error = json::find(job, "error"); error && error->is_object()) {
        for (const char* name : {"cause", "message", "node_id", "advice", "suggested_action"}) {
            add(name, text_of(error->get_object(), name));
        }
    }
    if (const json::array* outputs = comfy::array_of(job, "outputs"); outputs != nullptr) {
        out += "outputs: " + std::to_string(outputs->size()) + "\n";
    }
    const json::array* attempts = comfy::array_of(job, "attempts");
    if (attempts == nullptr || attempts->empty()) {
        return out;
    }
    out += "attempts:\n";
    for (const json::value& one : *attempts) {
        out += one.is_object() ? line_of(one.get_object()) : "";
    }
    return out;
}

std::string print_dead_letters(const json::object& answer) {
    std::string out;
    const json::array* listed = comfy::array_of(answer, "dead_letters");
    for (const json::value& one : listed == nullptr ? json::array() : *listed) {
        if (one.is_object()) {
            const json::object& letter = one.get_object();
            const std::string cause = text_of(letter, "cause");
            out += text_of(letter, "id") + "  " + text_of(letter, "failed_at") + "  " +
                   (cause.empty() ? text_of(letter, "code") : cause) + "  " +
                   first_line(text_of(letter, "message")) + "\n";
        }
    }
    return out;
}

int run_jobs(JobsFlags flags) {
    if (flags.action == "failed") {
        return list(flags);
    }
    if (flags.action == "purge") {
        return purge(flags);
    }
    if (flags.id.empty()) {
        return complain("name the job");
    }
    if (flags.action == "retry") {
        return retry(flags);
    }
    const Asked asked =
        ask_server({flags.url, flags.key, "/api/v2/jobs/" + net::percent_encode(flags.id)});
    return tell(flags, asked, asked.answer ? print_job(*asked.answer) : "");
}

}  // namespace comfyd::app
