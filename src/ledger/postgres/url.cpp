#include <libpq-fe.h>

#include <array>
#include <memory>
#include <string_view>
#include <utility>

#include "ledger/postgres/connection.hpp"

namespace comfyd::ledger::postgres {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kDefaults{{
    {"target_session_attrs", "read-write"},
    {"connect_timeout", "2"},
    {"tcp_user_timeout", "3000"},
    {"keepalives_idle", "5"},
    {"keepalives_interval", "2"},
    {"keepalives_count", "3"},
    {"application_name", "comfyd"},
}};

struct FreeOptions {
    void operator()(PQconninfoOption* options) const { PQconninfoFree(options); }
};
using Options = std::unique_ptr<PQconninfoOption, FreeOptions>;

void append(std::string& to, std::string_view key, std::string_view value) {
    to.append(to.empty() ? "" : " ").append(key).append("='");
    for (const char c : value) {
        if (c == '\'' || c == '\\') {
            to += '\\';
        }
        to += c;
    }
    to += '\'';
}

}  // namespace

Result<std::string> with_defaults(const std::string& url) {
    char* message = nullptr;
    const Options options(PQconninfoParse(url.c_str(), &message));
    const std::unique_ptr<char, decltype(&PQfreemem)> freed(message, PQfreemem);
    if (!options) {
        std::string why = message == nullptr ? "" : message;
        while (!why.empty() && why.back() == '\n') {
            why.pop_back();
        }
        return fail(
            Code::config_invalid, "the URL of the PostgreSQL ledger cannot be read: " + why
        );
    }
    std::string conninfo;
    for (const PQconninfoOption* option = options.get(); option->keyword != nullptr; ++option) {
        std::string_view value = option->val == nullptr ? "" : option->val;
        for (const auto& [key, standard] : kDefaults) {
            if (value.empty() && key == option->keyword) {
                value = standard;
            }
        }
        if (!value.empty()) {
            append(conninfo, option->keyword, value);
        }
    }
    return conninfo;
}

std::string shown(const std::string& url) {
    const Options options(PQconninfoParse(url.c_str(), nullptr));
    std::string text;
    for (const PQconninfoOption* option = options.get();
         option != nullptr && option->keyword != nullptr;
         ++option) {
        const std::string_view key = option->keyword;
        if (option->val != nullptr && (key == "host" || key == "port" || key == "dbname")) {
            text.append(text.empty() ? "" : " ").append(key).append("=").append(option->val);
        }
    }
    return text;
}

}  // namespace comfyd::ledger::postgres
