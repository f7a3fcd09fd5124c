#include "app/commands/explain_command.hpp"

#include <cstdio>
#include <utility>

#include "app/commands/ask_server.hpp"
#include "app/commands/cli.hpp"
#include "comfy/members.hpp"

namespace comfyd::app {
namespace {

double number_of(const json::object& from, std::string_view name) {
    const json::value* value = json::find(from, name);
    return value != nullptr && value->is_number() ? value->to_number<double>() : 0;
}

std::string in_words(double seconds) {
    char text[32];
    if (seconds < 120) {
        std::snprintf(text, sizeof text, "%.1f s", seconds);
    } else {
        std::snprintf(text, sizeof text, "%.1f min", seconds / 60);
    }
    return text;
}

void add_sentences(const json::object& from, std::string_view name, std::string& out) {
    const json::value* list = json::find(from, name);
    if (list == nullptr || !list->is_array() || list->get_array().empty()) {
        return;
    }
    out += std::string(name) + ":\n";
    for (const json::value& sentence : list->get_array()) {
        if (sentence.is_string()) {
            out += "  - " + std::string(sentence.get_string()) + "\n";
        }
    }
}

void add_workers(const json::object& from, std::string& out) {
    const json::value* workers = json::find(from, "workers");
    if (workers == nullptr || !workers->is_array()) {
        return;
    }
    out += "workers:\n";
    for (const json::value& entry : workers->get_array()) {
        if (const json::object* worker = entry.if_object()) {
            const json::value* capable = json::find(*worker, "capable");
            const bool can = capable != nullptr && capable->is_bool() && capable->get_bool();
            out += std::string(can ? "  + " : "  - ") + comfy::text_of(*worker, "worker") + ": " +
                   comfy::text_of(*worker, "reason") + "\n";
        }
    }
}

// Factors that change nothing are left out.
void add_priority(const json::object& from, std::string& out) {
    const json::value* factors = json::find(from, "priority_factors");
    if (factors == nullptr || !factors->is_array()) {
        return;
    }
    const auto whole = [&from](std::string_view name) {
        return std::to_string(static_cast<std::int64_t>(number_of(from, name)));
    };
    out += "priority " + whole("effective_priority") + " (asked for: " + whole("priority") + ")\n";
    for (const json::value& entry : factors->get_array()) {
        const json::object* factor = entry.if_object();
        if (factor != nullptr && number_of(*factor, "multiplier") != 1) {
            char times[32];
            std::snprintf(times, sizeof times, " x %.2f: ", number_of(*factor, "multiplier"));
            out += "  " + comfy::text_of(*factor, "name") + times +
                   comfy::text_of(*factor, "reason") + "\n";
        }
    }
}

}  // namespace

std::string print_explanation(const json::object& explanation) {
    std::string out = "job " + comfy::text_of(explanation, "execution_id") + " is " +
                      comfy::text_of(explanation, "state") + "\n";
    if (json::find(explanation, "queue_position") != nullptr) {
        const json::value* wait = json::find(explanation, "expected_wait_seconds");
        out += "position " +
               std::to_string(static_cast<std::int64_t>(number_of(explanation, "queue_position"))) +
               ", class " + comfy::text_of(explanation, "class") + ", waits for " +
               in_words(number_of(explanation, "waited_seconds")) + " (target " +
               in_words(number_of(explanation, "wait_target_seconds")) + "), " +
               (wait == nullptr || wait->is_null()
                    ? "when it starts is not known"
                    : "expected to start in " +
                          in_words(number_of(explanation, "expected_wait_seconds"))) +
               "\n";
        add_priority(explanation, out);
    }
    add_sentences(explanation, "reasons", out);
    add_sentences(explanation, "advice", out);
    add_workers(explanation, out);
    return out;
}

int run_explain(ExplainFlags flags) {
    const Asked asked =
        ask_server({flags.url, flags.key, "/v2/workflows/execution/" + flags.id + "/explain"});
    if (!asked.answer) {
        return asked.exit_code;
    }
    std::fputs(
        flags.json ? (asked.text + "\n").c_str() : print_explanation(*asked.answer).c_str(), stdout
    );
    return kExitOk;
}

}  // namespace comfyd::app
