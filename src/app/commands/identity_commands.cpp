#include "app/commands/identity_commands.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <utility>

#include "app/commands/ask_server.hpp"
#include "app/commands/cli.hpp"
#include "app/config/setting_kinds.hpp"
#include "comfy/members.hpp"
#include "net/http.hpp"

namespace comfyd::app {
namespace {

using comfy::text_of;

constexpr const char* kKeys = "/admin/v1/keys";
constexpr const char* kTenants = "/admin/v1/tenants";

int complain(const std::string& message) {
    std::fprintf(stderr, "comfyd: %s\n", message.c_str());
    return kExitUsage;
}

const json::array& list_of(const json::object& from, std::string_view key) {
    static const json::array kNone;
    const json::array* found = json::find_array(from, key).value_or(nullptr);
    return found == nullptr ? kNone : *found;
}

std::string joined(const json::array& words) {
    std::string text;
    for (const json::value& word : words) {
        text += text.empty() ? "" : ",";
        text += word.is_string() ? std::string(word.get_string()) : json::serialize(word);
    }
    return text;
}

int tell(bool as_json, const Asked& asked, const std::string& words) {
    if (!asked.answer) {
        return asked.exit_code;
    }
    std::fputs(as_json ? (asked.text + "\n").c_str() : words.c_str(), stdout);
    return kExitOk;
}

// The key alone goes to standard output, so that a script can take it from there.
int tell_key(const KeysFlags& flags, const Asked& asked) {
    if (!asked.answer) {
        return asked.exit_code;
    }
    const json::object& answer = *asked.answer;
    std::fputs(
        flags.json ? (asked.text + "\n").c_str() : (text_of(answer, "key") + "\n").c_str(), stdout
    );
    const auto is_enforced = json::find_bool(answer, "enforced").value_or(std::nullopt);
    std::fprintf(
        stderr,
        "key %s of the tenant %s (%s). It is not shown again.\n%s",
        text_of(answer, "id").c_str(),
        text_of(answer, "tenant").c_str(),
        joined(list_of(answer, "scopes")).c_str(),
        is_enforced.value_or(true)
            ? ""
            : "This server asks for no keys yet: set auth.required: true (COMFYD_AUTH_REQUIRED) "
              "and start it again.\n"
    );
    return kExitOk;
}

std::string page_of(const char* path, const std::string& cursor, const std::string& tenant) {
    std::string made = std::string(path) + "?limit=1000";
    made += cursor.empty() ? "" : "&cursor=" + net::percent_encode(cursor);
    return made + (tenant.empty() ? "" : "&tenant=" + net::percent_encode(tenant));
}

// To the last page.
template <class Flags, class Print>
int list_all(const Flags& flags, const char* path, const std::string& tenant, Print print) {
    std::string cursor;
    do {
        const Asked asked = ask_server({flags.url, flags.key, page_of(path, cursor, tenant)});
        if (!asked.answer) {
            return asked.exit_code;
        }
        tell(flags.json, asked, print(*asked.answer));
        cursor = text_of(*asked.answer, "next_cursor");
    } while (!cursor.empty());
    return kExitOk;
}

int create_key(const KeysFlags& flags) {
    json::object body{{"name", flags.what}};
    if (!flags.tenant.empty()) {
        body["tenant"] = flags.tenant;
    }
    if (!flags.scopes.empty()) {
        json::array scopes;
        for (const std::string& scope : flags.scopes) {
            for (const std::string& word : split_commas(scope)) {
                scopes.emplace_back(word);
            }
        }
        body["scopes"] = std::move(scopes);
    }
    if (flags.requests_per_minute > 0) {
        body["requests_per_minute"] = flags.requests_per_minute;
    }
    if (!flags.expires.empty()) {
        double days = 0;
        std::string_view text = flags.expires;
        text.remove_suffix(text.ends_with('d') ? 1 : 0);
        const auto read = std::from_chars(text.data(), text.data() + text.size(), days);
        if (read.ec == std::errc() && read.ptr == text.data() + text.size()) {
            body["expires_in_days"] = days;
        } else {
            body["expires_at"] = flags.expires;
        }
    }
    return tell_key(
        flags, ask_server({flags.url, flags.key, kKeys, "POST", json::serialize(body)})
    );
}

std::string assigned(const json::object& from, std::string_view key) {
    const json::value* value = json::find(from, key);
    if (value == nullptr) {
        return "-";
    }
    return value->is_array()    ? joined(value->get_array())
           : value->is_string() ? std::string(value->get_string())
           : value->is_double() ? show_number(value->get_double())
                                : json::serialize(*value);
}

}  // namespace

std::string print_keys(const json::object& answer) {
    std::string out;
    for (const json::value& one : list_of(answer, "keys")) {
        if (!one.is_object()) {
            continue;
        }
        const json::object& key = one.get_object();
        const std::string id = text_of(key, "id");
        out += (id.empty() ? "(config)" : id) + "  " + text_of(key, "status") + "  " +
               text_of(key, "name") + "  tenant " + text_of(key, "tenant") + "  " +
               joined(list_of(key, "scopes"));
        const std::string expires = text_of(key, "expires_at");
        const std::string used = text_of(key, "last_used_at");
        out += (expires.empty() ? "" : "  until " + expires) +
               (used.empty() ? "" : "  used " + used) + "\n";
    }
    return out.empty() ? "no keys\n" : out;
}

std::string print_tenants(const json::object& answer) {
    std::string out;
    for (const json::value& one : list_of(answer, "tenants")) {
        if (one.is_object()) {
            const json::object& tenant = one.get_object();
            const auto disabled = json::find_bool(tenant, "disabled").value_or(std::nullopt);
            const std::string tier = text_of(tenant, "tier");
            out += text_of(tenant, "name") + "  " + (tier.empty() ? "no tier" : tier) +
                   "  weight " + assigned(tenant, "weight") + "  " + text_of(tenant, "source") +
                   (disabled.value_or(false) ? "  DISABLED\n" : "\n");
        }
    }
    return out.empty() ? "no tenants\n" : out;
}

std::string print_tenant(const json::object& tenant) {
    std::string out;
    for (const auto& member : tenant) {
        if (!member.value().is_null() &&
            !(member.value().is_array() && member.value().get_array().empty())) {
            const std::string name(member.key());
            out += name + ": " + assigned(tenant, name) + "\n";
        }
    }
    return out;
}

Result<json::object> read_assignments(const std::vector<std::string>& members) {
    json::object read;
    for (const std::string& member : members) {
        const auto equals = member.find('=');
        if (equals == std::string::npos || equals == 0) {
            return fail(
                Code::invalid_argument, "say NAME=VALUE, such as tier=pro, not '" + member + "'"
            );
        }
        const std::string name = member.substr(0, equals);
        const std::string text = member.substr(equals + 1);
        const bool is_list = name.starts_with("allowed_") || name.starts_with("denied_");
        auto value = json::parse(text);
        if (is_list && !(value && (value->is_array() || value->is_null()))) {
            json::array words;
            for (const std::string& word : split_commas(text)) {
                words.emplace_back(word);
            }
            read[name] = std::move(words);
        } else {
            read[name] = value ? std::move(*value) : json::value(text);
        }
    }
    return read;
}

int run_keys(KeysFlags flags) {
    if (flags.action == "list") {
        return list_all(flags, kKeys, flags.tenant, print_keys);
    }
    if (flags.what.empty()) {
        return complain(
            flags.action == "create" ? "say what the new key is called: comfyd keys create NAME"
                                     : "name the key to " + flags.action + " by its id"
        );
    }
    if (flags.action == "create") {
        return create_key(flags);
    }
    const std::string path = std::string(kKeys) + "/" + net::percent_encode(flags.what);
    if (flags.action == "rotate") {
        const json::object body{{"old_key_hours", flags.old_key_hours}};
        return tell_key(
            flags,
            ask_server({flags.url, flags.key, path + "/rotate", "POST", json::serialize(body)})
        );
    }
    if (flags.action == "remove") {
        return tell(
            flags.json,
            ask_server({flags.url, flags.key, path, "DELETE"}),
            "removed " + flags.what + "\n"
        );
    }
    return tell(
        flags.json,
        ask_server({flags.url, flags.key, path + "/revoke", "POST", "{}"}),
        "revoked " + flags.what + "\n"
    );
}

int run_tenants(TenantsFlags flags) {
    if (flags.action == "list") {
        return list_all(flags, kTenants, "", print_tenants);
    }
    if (flags.name.empty()) {
        return complain("name the tenant: comfyd tenants " + flags.action + " NAME");
    }
    auto members = read_assignments(flags.members);
    if (!members) {
        return complain(members.error().message);
    }
    Question question{flags.url, flags.key, kTenants};
    if (flags.action == "create") {
        (*members)["name"] = flags.name;
    } else {
        question.path += "/" + net::percent_encode(flags.name);
    }
    if (flags.action == "create" || flags.action == "set") {
        question.method = flags.action == "create" ? "POST" : "PATCH";
        question.body = json::serialize(*members);
    } else if (flags.action == "remove") {
        question.method = "DELETE";
    }
    const Asked asked = ask_server(std::move(question));
    const bool is_gone = flags.action == "remove";
    return tell(
        flags.json,
        asked,
        is_gone        ? "removed " + flags.name + "\n"
        : asked.answer ? print_tenant(*asked.answer)
                       : ""
    );
}

}  // namespace comfyd::app
