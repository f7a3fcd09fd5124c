#include "ledger/postgres/endpoint_store.hpp"

#include <utility>

#include "ledger/codec.hpp"

namespace comfyd::ledger::postgres {
namespace {

// One that is there as it is to be was saved by an attempt whose answer was lost.
constexpr char kSave[] =
    "WITH saved AS (INSERT INTO endpoints (id, tenant, revision, about, secrets) "
    "SELECT $1, $2, $3, $4, $5 WHERE $3 = 1 OR EXISTS (SELECT 1 FROM endpoints WHERE id = $1) "
    "ON CONFLICT (id) DO UPDATE SET revision = excluded.revision, about = excluded.about, "
    "secrets = excluded.secrets WHERE endpoints.revision = excluded.revision - 1 RETURNING 1), "
    "counted AS (UPDATE endpoint_changes SET count = count + 1 "
    "WHERE EXISTS (SELECT 1 FROM saved)) "
    "SELECT 1 FROM saved UNION ALL "
    "SELECT 1 FROM endpoints WHERE id = $1 AND revision = $3 AND about = $4";
constexpr char kRemove[] =
    "WITH removed AS (DELETE FROM endpoints WHERE id = $1 RETURNING 1), "
    "counted AS (UPDATE endpoint_changes SET count = count + 1 "
    "WHERE EXISTS (SELECT 1 FROM removed)) SELECT 1 FROM removed";
constexpr char kChanges[] = "SELECT count FROM endpoint_changes";
constexpr char kAll[] = "SELECT id, tenant, revision, about, secrets FROM endpoints ORDER BY id";

}  // namespace

SaveEndpoint::SaveEndpoint(const notify::Endpoint& endpoint, const SecretTexts& texts)
    : id_(endpoint.id),
      tenant_(endpoint.tenant),
      revision_(endpoint.revision),
      about_(json::serialize(endpoint.about())),
      secrets_(texts.write(json::serialize(endpoint.secrets()), endpoint.id.to_string())) {}

bool SaveEndpoint::join(Batch& batch) {
    place_ = batch.add({kSave, {id_, tenant_, revision_, about_, Bytes{secrets_}}});
    return true;
}

void SaveEndpoint::conclude(const Batch& batch) {
    if (batch.answer(place_).empty()) {
        outcome.emplace(fail(
            Code::conflict, "the endpoint was changed meanwhile; read it again and decide anew"
        ));
    } else {
        outcome.emplace();
    }
}

bool RemoveEndpoint::join(Batch& batch) {
    place_ = batch.add({kRemove, {id_}});
    return true;
}

void RemoveEndpoint::conclude(const Batch& batch) {
    outcome.emplace(!batch.answer(place_).empty() || batch.at.is_again);
}

Statement count_endpoint_changes() {
    return {kChanges};
}

Statements find_all_endpoints() {
    return {{kChanges}, {kAll}};
}

Result<notify::AllEndpoints> read_all_endpoints(
    const std::vector<Rows>& answers, const SecretTexts& texts
) {
    notify::AllEndpoints all;
    all.changes =
        answers.at(0).empty() ? 0 : static_cast<std::uint64_t>(answers.at(0)[0].integer(0));
    const Rows& rows = answers.at(1);
    for (int i = 0; i < rows.size(); ++i) {
        const Row row = rows[i];
        const notify::EndpointId id{row.uuid(0)};
        const auto opened = texts.read(row.bytes(4), id.to_string());
        const auto about = decode_object(row.text(3));
        const auto secrets = decode_object(opened.value_or(""));
        if (!about || !secrets) {
            return fail(damaged("endpoint"));
        }
        auto endpoint = notify::Endpoint::restore(
            id, row.string(1), static_cast<std::uint64_t>(row.integer(2)), *about, *secrets
        );
        if (opened && endpoint) {
            all.endpoints.push_back(std::move(*endpoint));
        }
    }
    return all;
}

}  // namespace comfyd::ledger::postgres
