#include "app/commands/fleet_command.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <thread>
#include <utility>
#include <vector>

#include "app/commands/ask_server.hpp"
#include "app/commands/cli.hpp"
#include "comfy/members.hpp"
#include "net/http.hpp"
#include "notify/story.hpp"

namespace comfyd::app {
namespace {

constexpr std::string_view kFleet = "/admin/v1/fleet";
constexpr std::chrono::seconds kWatchEvery{2};

const json::array& list_of(const json::object& from, std::string_view key) {
    static const json::array kNone;
    const json::array* found = json::find_array(from, key).value_or(nullptr);
    return found == nullptr ? kNone : *found;
}

// Columns as wide as what is in them.
std::string table(const std::vector<std::vector<std::string>>& rows) {
    std::vector<std::size_t> widths;
    for (const auto& row : rows) {
        widths.resize(std::max(widths.size(), row.size()));
        for (std::size_t i = 0; i < row.size(); ++i) {
            widths[i] = std::max(widths[i], row[i].size());
        }
    }
    std::string out;
    for (const auto& row : rows) {
        std::string line = " ";
        for (std::size_t i = 0; i < row.size(); ++i) {
            line += " " + row[i] + std::string(widths[i] - row[i].size() + 1, ' ');
        }
        out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
    }
    return out;
}

double price_of(const json::object& instance) {
    return json::find_number(instance, "usd_per_hour").value_or(std::nullopt).value_or(0);
}

std::string show_price(double usd_per_hour) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.2f $/h", usd_per_hour);
    return text.data();
}

// In its state.
std::string show_age(const json::object& instance, Time now) {
    const json::object* since = comfy::object_of(instance, "since");
    const auto at = since == nullptr
                        ? std::nullopt
                        : parse_rfc3339(comfy::text_of(*since, comfy::text_of(instance, "state")));
    return at ? notify::show_duration(
                    std::chrono::floor<std::chrono::seconds>(std::max(now - *at, Millis(0)))
                )
              : "-";
}

std::vector<std::string> instance_row(const json::object& instance, Time now) {
    std::string where = comfy::text_of(instance, "provider");
    for (const char* part : {"gpu_type", "region"}) {
        const std::string text = comfy::text_of(instance, part);
        where += text.empty() ? "" : ", " + text;
    }
    if (const double price = price_of(instance); price > 0) {
        where += ", " + show_price(price);
    }
    return {
        comfy::text_of(instance, "id"),
        comfy::text_of(instance, "state"),
        show_age(instance, now),
        where.empty() ? "-" : where,
        comfy::text_of(instance, "reason"),
    };
}

std::string print_pool(const json::object& pool, Time now) {
    const std::string name = comfy::text_of(pool, "name");
    const bool is_paused = json::find_bool(pool, "paused").value_or(std::nullopt).value_or(false);
    const auto failed_starts = comfy::integer_of(pool, "failed_starts");
    std::vector<std::vector<std::string>> rows{{"INSTANCE", "STATE", "FOR", "WHERE", "WHY"}};
    double price = 0;
    for (const json::value& instance : list_of(pool, "instances")) {
        if (instance.is_object()) {
            rows.push_back(instance_row(instance.get_object(), now));
            price += price_of(instance.get_object());
        }
    }
    std::string out = "pool " + name + ": " + std::to_string(comfy::integer_of(pool, "ready")) +
                      " of " + std::to_string(comfy::integer_of(pool, "size")) + " ready" +
                      (price > 0 ? ", " + show_price(price) : "") + "\n";
    if (is_paused) {
        out += "  PAUSED: " + comfy::text_of(pool, "paused_why") +
               "\n  mended? comfyd fleet resume " + name + "\n";
    } else if (failed_starts > 0) {
        out += "  the latest " + std::to_string(failed_starts) + " starts failed\n";
    }
    return out + (rows.size() > 1 ? table(rows) : "");
}

Time now() {
    return SystemClock().now();
}

int complain(const std::string& message) {
    std::fprintf(stderr, "comfyd: %s\n", message.c_str());
    return kExitUsage;
}

int tell(const FleetFlags& flags, const Asked& asked, const std::string& words) {
    if (!asked.answer) {
        return asked.exit_code;
    }
    std::fputs(flags.json ? (asked.text + "\n").c_str() : words.c_str(), stdout);
    return kExitOk;
}

int show(const FleetFlags& flags) {
    for (;;) {
        const Asked asked = ask_server({flags.url, flags.key, std::string(kFleet)});
        if (flags.watch && asked.answer) {
            std::fputs("\x1b[H\x1b[2J", stdout);  // from the top of an empty screen
        }
        const int code = tell(flags, asked, asked.answer ? print_fleet(*asked.answer, now()) : "");
        if (!flags.watch || code != kExitOk) {
            return code;
        }
        std::fflush(stdout);
        std::this_thread::sleep_for(kWatchEvery);
    }
}

int resize(const FleetFlags& flags, const std::string& path) {
    json::object body{{"size", nullptr}};
    if (flags.size != "configured") {
        int size = 0;
        const char* end = flags.size.data() + flags.size.size();
        const auto read = std::from_chars(flags.size.data(), end, size);
        if (flags.size.empty() || read.ec != std::errc() || read.ptr != end) {
            return complain("say how many machines: comfyd fleet resize POOL NUMBER|configured");
        }
        body["size"] = size;
    }
    const Asked asked = ask_server({flags.url, flags.key, path, "PUT", json::serialize(body)});
    return tell(flags, asked, asked.answer ? print_pool(*asked.answer, now()) : "");
}

}  // namespace

std::string print_fleet(const json::object& fleet, Time now) {
    const json::array& pools = list_of(fleet, "pools");
    if (pools.empty()) {
        return "no pool has machines that comfyd starts by itself\n";
    }
    std::string out;
    for (const json::value& pool : pools) {
        out += pool.is_object() ? print_pool(pool.get_object(), now) : "";
    }
    const std::string events = print_fleet_events(fleet);
    return out + (events.empty() ? "" : "\n" + events);
}

std::string print_fleet_events(const json::object& answer) {
    std::vector<std::vector<std::string>> rows;
    for (const json::value& item : list_of(answer, "events")) {
        if (!item.is_object()) {
            continue;
        }
        const json::object& event = item.get_object();
        rows.push_back(
            {comfy::text_of(event, "at"),
             comfy::text_of(event, "pool"),
             comfy::text_of(event, "instance"),
             comfy::text_of(event, "what"),
             comfy::text_of(event, "why")}
        );
    }
    return table(rows);
}

std::string print_fleet_decisions(const json::object& answer) {
    const json::array& now = list_of(answer, "now");
    const json::array& before = list_of(answer, "decisions");
    if (now.empty() && before.empty()) {
        return "no such pool is scaled\n";
    }
    std::string out;
    for (const json::value& item : now) {
        if (item.is_object()) {
            const json::object& decision = item.get_object();
            const bool is_dry =
                json::find_bool(decision, "dry_run").value_or(std::nullopt).value_or(false);
            out += "pool " + comfy::text_of(decision, "pool") + ": " +
                   std::to_string(comfy::integer_of(decision, "machines")) +
                   (is_dry ? " (dry run)" : "") + "\n  " + comfy::text_of(decision, "sentence") +
                   "\n";
        }
    }
    std::vector<std::vector<std::string>> rows;
    for (const json::value& item : before) {
        if (item.is_object()) {
            const json::object& decision = item.get_object();
            rows.push_back(
                {comfy::text_of(decision, "at"),
                 comfy::text_of(decision, "pool"),
                 std::to_string(comfy::integer_of(decision, "were")) + " -> " +
                     std::to_string(comfy::integer_of(decision, "machines")),
                 comfy::text_of(decision, "sentence")}
            );
        }
    }
    return out + (rows.empty() ? "" : "\n" + table(rows));
}

int run_fleet(FleetFlags flags) {
    const std::string base(kFleet);
    if (flags.action == "show") {
        return show(flags);
    }
    const std::string of_pool =
        flags.what.empty() ? std::string() : "?pool=" + net::percent_encode(flags.what);
    if (flags.action == "events") {
        const Asked asked = ask_server({flags.url, flags.key, base + "/events" + of_pool});
        return tell(flags, asked, asked.answer ? print_fleet_events(*asked.answer) : "");
    }
    if (flags.action == "decisions") {
        const Asked asked = ask_server({flags.url, flags.key, base + "/decisions" + of_pool});
        return tell(flags, asked, asked.answer ? print_fleet_decisions(*asked.answer) : "");
    }
    const bool is_pool = flags.action == "resize" || flags.action == "resume";
    if (flags.what.empty()) {
        return complain(
            std::string("name the ") + (is_pool ? "pool" : "instance") + ": comfyd fleet " +
            flags.action + (is_pool ? " POOL" : " INSTANCE")
        );
    }
    const std::string path =
        base + (is_pool ? "/pools/" : "/instances/") + net::percent_encode(flags.what);
    if (flags.action == "resize") {
        return resize(flags, path);
    }
    if (flags.action == "resume") {
        const Asked asked = ask_server({flags.url, flags.key, path + "/resume", "POST", "{}"});
        return tell(flags, asked, asked.answer ? print_pool(*asked.answer, now()) : "");
    }
    if (flags.action == "remove") {
        return tell(
            flags,
            ask_server({flags.url, flags.key, path, "DELETE"}),
            flags.what + " ends its jobs and is removed\n"
        );
    }
    const Asked asked =
        ask_server({flags.url, flags.key, path + "/logs?lines=" + std::to_string(flags.lines)});
    return tell(flags, asked, asked.answer ? comfy::text_of(*asked.answer, "text") : "");
}

}  // namespace comfyd::app
