#include "auth/key_record.hpp"

#include <utility>

#include "auth/digest.hpp"

namespace comfyd::auth {
namespace {

std::optional<Digest> digest_of(const json::object& from, std::string_view key) {
    const auto text = json::find_string(from, key);
    return text && *text ? parse_digest(**text) : std::nullopt;
}

std::optional<Time> time_of(const json::object& from, std::string_view key) {
    const auto ms = json::find_int(from, key);
    return ms && *ms ? std::optional(from_unix_ms(**ms)) : std::nullopt;
}

json::value or_null(const std::optional<Time>& time) {
    return time ? json::value(to_unix_ms(*time)) : json::value(nullptr);
}

}  // namespace

IdentityRecord KeyRecord::to_record() const {
    const auto words = words_of(scopes);
    json::array listed;
    for (const std::string_view word : words) {
        listed.emplace_back(word);
    }
    json::object about{
        {"name", name},
        {"tenant", tenant},
        {"scopes", std::move(listed)},
        {"sha256", to_hex(sha256)},
        {"created_at", to_unix_ms(created_at)},
        {"expires_at", or_null(expires_at)},
        {"revoked_at", or_null(revoked_at)},
        {"previous_until", or_null(previous_until)},
        {"requests_per_minute", requests_per_minute},
    };
    if (previous_sha256) {
        about["previous_sha256"] = to_hex(*previous_sha256);
    }
    return {IdentityKind::key, id, revision, std::move(about)};
}

std::optional<KeyRecord> KeyRecord::restore(const IdentityRecord& record) {
    const auto name = json::find_string(record.about, "name");
    const auto tenant = json::find_string(record.about, "tenant");
    const auto scopes = json::find_array(record.about, "scopes");
    const auto sha256 = digest_of(record.about, "sha256");
    if (!name || !*name || !tenant || !*tenant || !scopes || *scopes == nullptr || !sha256) {
        return std::nullopt;
    }
    KeyRecord key;
    key.id = record.id;
    key.revision = record.revision;
    key.name = **name;
    key.tenant = **tenant;
    key.sha256 = *sha256;
    key.scopes = {};
    for (const json::value& word : **scopes) {
        // A scope that came with a later version gives nothing here.
        if (word.is_string()) {
            key.scopes.add(parse_scopes(std::string_view(word.get_string())).value_or(Scopes()));
        }
    }
    key.previous_sha256 = digest_of(record.about, "previous_sha256");
    key.previous_until = time_of(record.about, "previous_until");
    key.created_at = time_of(record.about, "created_at").value_or(Time());
    key.expires_at = time_of(record.about, "expires_at");
    key.revoked_at = time_of(record.about, "revoked_at");
    const auto rate = json::find_number(record.about, "requests_per_minute");
    key.requests_per_minute = rate ? rate->value_or(0) : 0;
    return key;
}

}  // namespace comfyd::auth
