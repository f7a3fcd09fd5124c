#include "auth/sessions.hpp"

#include <algorithm>
#include <utility>

#include "auth/api_key.hpp"
#include "auth/browser_token.hpp"
#include "auth/digest.hpp"
#include "auth/jwt/base64url.hpp"
#include "auth/known_keys.hpp"
#include "base/sealing.hpp"
#include "base/text.hpp"

namespace comfyd::auth {
namespace {

constexpr int kPerOwnerMax = 100;
constexpr std::size_t kAgentBytesMax = 200;
constexpr std::chrono::minutes kNoteUseEvery{1};
constexpr std::string_view kByKey = "key";
constexpr std::string_view kByIssuer = "oidc";

tl::unexpected<Error> no_session() {
    return fail(Code::unauthorized, "the session has ended; log in again at /login");
}

std::string text_of(const json::object& about, const char* name) {
    return json::find_string(about, name).value_or(std::nullopt).value_or("");
}

// Of what a client says of itself, what may be shown.
std::string shown(std::string_view agent) {
    std::string kept;
    std::ranges::copy_if(agent.substr(0, kAgentBytesMax), std::back_inserter(kept), [](char c) {
        return c >= ' ' && c <= '~';
    });
    return kept;
}

bool is_of(const json::object& about, std::string_view token) {
    const auto digest = parse_digest(text_of(about, "sha256"));
    return digest && equal_constant_time(bytes_of(*digest), bytes_of(sha256(token)));
}

Session describe(const SessionRecord& record) {
    return {
        record.id,
        record.tenant,
        record.owner,
        text_of(record.about, "by"),
        parse_rfc3339(text_of(record.about, "began_at")).value_or(Time()),
        record.used_at,
        record.ends_at,
        text_of(record.about, "address"),
        text_of(record.about, "agent"),
    };
}

Scopes read_scopes(const json::object& about) {
    Scopes scopes;
    const auto words = json::find_array(about, "scopes");
    if (words && *words != nullptr) {
        for (const json::value& word : **words) {
            const bool is_text = word.is_string();
            scopes.add(
                is_text ? parse_scopes(view(word.get_string())).value_or(Scopes()) : Scopes()
            );
        }
    }
    return scopes;
}

}  // namespace

Sessions::Sessions(
    Options options, SessionStore& store, const DirectoryBoard& directory, Clock& clock
)
    : options_(std::move(options)),
      cookies_(options_.cookies),
      store_(store),
      directory_(directory),
      clock_(clock) {}

std::string Sessions::page_token(std::string_view token) {
    return jwt::to_base64url(bytes_of(hmac_sha256(token, "page")));
}

Task<Result<Sessions::Opened>> Sessions::open_by_key(std::string key, Origin from) const {
    const Digest digest = sha256(key);
    const auto id = id_of_key(key);
    auto caller = caller_of_key(*directory_.now(), id, digest, clock_.now());
    if (!caller) {
        co_return fail(std::move(caller.error()));
    }
    json::object about{{"by", kByKey}, {"key_sha256", to_hex(digest)}};
    if (id) {
        about["key"] = *id;
    }
    auto opened =
        co_await open(std::move(*caller), make_browser_token(), std::move(about), std::move(from));
    co_return opened;
}

Task<Result<Sessions::Opened>> Sessions::open_by_issuer(
    Caller caller, std::string id_token, Origin from
) const {
    if (auto enabled = check_tenant_is_enabled(*directory_.now(), caller.tenant); !enabled) {
        co_return fail(std::move(enabled.error()));
    }
    std::string token = make_browser_token();
    json::array scopes;
    for (const std::string_view word : words_of(caller.scopes)) {
        scopes.emplace_back(word);
    }
    json::object about{
        {"by", kByIssuer},
        {"issuer", options_.issuer},
        {"scopes", std::move(scopes)},
        {"tier", caller.tier},
        {"id_token", to_base64(Sealing(token).seal(id_token, "id_token"))},
    };
    auto opened =
        co_await open(std::move(caller), std::move(token), std::move(about), std::move(from));
    co_return opened;
}

Task<Result<Sessions::Opened>> Sessions::open(
    Caller caller, std::string token, json::object about, Origin from
) const {
    const Time now = clock_.now();
    about["sha256"] = to_hex(sha256(token));
    about["began_at"] = to_rfc3339(now);
    about["address"] = from.address;
    about["agent"] = shown(from.agent);
    auto saved = co_await store_.save_session(
        {SessionKind::session,
         *id_of_browser_token(token),
         caller.tenant,
         caller.key_name,
         now,
         now + std::min(options_.idle_max, options_.life_max),
         std::move(about)},
        kPerOwnerMax
    );
    if (!saved) {
        co_return fail(std::move(saved.error()));
    }
    co_return Opened{std::move(token), std::move(caller)};
}

Result<Caller> Sessions::judge(const SessionRecord& record) const {
    const DirectoryPtr directory = directory_.now();
    const std::string by = text_of(record.about, "by");
    if (by == kByKey) {
        const std::string id = text_of(record.about, "key");
        const auto digest = parse_digest(text_of(record.about, "key_sha256"));
        return digest ? caller_of_key(
                            *directory,
                            id.empty() ? std::nullopt : std::optional<std::string_view>(id),
                            *digest,
                            clock_.now()
                        )
                      : no_session();
    }
    if (by != kByIssuer || options_.issuer.empty() ||
        text_of(record.about, "issuer") != options_.issuer) {
        return no_session();
    }
    if (auto enabled = check_tenant_is_enabled(*directory, record.tenant); !enabled) {
        return fail(std::move(enabled.error()));
    }
    return Caller{
        record.tenant, record.owner, read_scopes(record.about), text_of(record.about, "tier")
    };
}

Task<Result<Sessions::Found>> Sessions::find(std::string token) const {
    const auto id = id_of_browser_token(token);
    if (!id) {
        co_return no_session();
    }
    auto record = co_await store_.find_session(SessionKind::session, *id);
    if (!record) {
        co_return fail(std::move(record.error()));
    }
    const Time now = clock_.now();
    if (!*record || !is_of((*record)->about, token) || now >= (*record)->ends_at) {
        co_return no_session();
    }
    auto caller = judge(**record);
    if (!caller && caller.error().code == Code::forbidden) {
        auto taken = co_await store_.take_session(SessionKind::session, *id);
        static_cast<void>(taken);  // it stays refused while the tenant is disabled
    }
    if (!caller) {
        co_return fail(std::move(caller.error()));
    }
    Session session = describe(**record);
    if (now >= session.used_at + kNoteUseEvery) {
        session.used_at = now;
        session.ends_at = std::min(now + options_.idle_max, session.began_at + options_.life_max);
        auto noted = co_await store_.note_session_use(*id, now, session.ends_at);
        static_cast<void>(noted);  // then it is noted with the next one
    }
    co_return Found{std::move(*caller), std::move(session)};
}

Task<Result<std::string>> Sessions::close(std::string token) const {
    const auto id = id_of_browser_token(token);
    if (!id) {
        co_return std::string();
    }
    auto record = co_await store_.find_session(SessionKind::session, *id);
    if (!record) {
        co_return fail(std::move(record.error()));
    }
    if (!*record || !is_of((*record)->about, token)) {
        co_return std::string();
    }
    auto taken = co_await store_.take_session(SessionKind::session, *id);
    if (!taken) {
        co_return fail(std::move(taken.error()));
    }
    const auto sealed = from_base64(text_of((*record)->about, "id_token"));
    co_return sealed ? Sealing(token).open(*sealed, "id_token").value_or("") : std::string();
}

Task<Result<std::vector<Session>>> Sessions::list(SessionQuery query) const {
    query.now = clock_.now();
    auto records = co_await store_.list_sessions(std::move(query));
    if (!records) {
        co_return fail(std::move(records.error()));
    }
    std::vector<Session> listed;
    std::ranges::transform(*records, std::back_inserter(listed), describe);
    co_return listed;
}

Task<Result<bool>> Sessions::end(std::string id, std::optional<Caller> owner) const {
    auto record = co_await store_.find_session(SessionKind::session, id);
    if (!record) {
        co_return fail(std::move(record.error()));
    }
    const bool is_theirs =
        *record &&
        (!owner || ((*record)->tenant == owner->tenant && (*record)->owner == owner->key_name));
    if (!is_theirs) {
        co_return false;
    }
    auto taken = co_await store_.take_session(SessionKind::session, std::move(id));
    co_return taken ? Result<bool>(taken->has_value()) : fail(std::move(taken.error()));
}

}  // namespace comfyd::auth
