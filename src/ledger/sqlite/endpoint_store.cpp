#include "ledger/sqlite/endpoint_store.hpp"

#include <utility>

#include "ledger/codec.hpp"

namespace comfyd::ledger::sqlite {
namespace {

constexpr char kFindRevision[] = "SELECT revision FROM endpoints WHERE id = ?";
constexpr char kSave[] =
    "INSERT OR REPLACE INTO endpoints (id, tenant, revision, about, secrets) "
    "VALUES (?, ?, ?, ?, ?)";
constexpr char kRemove[] = "DELETE FROM endpoints WHERE id = ?";
constexpr char kAll[] = "SELECT id, tenant, revision, about, secrets FROM endpoints";
constexpr char kChanges[] = "SELECT count FROM endpoint_changes";
constexpr char kCountChange[] = "UPDATE endpoint_changes SET count = count + 1";

// 0: there is none.
Result<std::uint64_t> revision_of(Database& db, notify::EndpointId id) {
    Query query(db, kFindRevision);
    const auto row = query.bind(id).next();
    if (!row) {
        return fail(row.error());
    }
    return *row ? static_cast<std::uint64_t>(query.integer(0)) : 0;
}

}  // namespace

Result<> SaveEndpoint::operator()(Session& session) {
    const auto stored = revision_of(session.db, endpoint.id);
    if (!stored) {
        return fail(stored.error());
    }
    if (*stored + 1 != endpoint.revision) {
        return fail(
            Code::conflict, "the endpoint was changed meanwhile; read it again and decide anew"
        );
    }
    const std::string about = json::serialize(endpoint.about());
    const std::string secrets = json::serialize(endpoint.secrets());
    auto saved = Query(session.db, kSave)
                     .bind(endpoint.id, endpoint.tenant, endpoint.revision, about, secrets)
                     .run();
    return saved ? Query(session.db, kCountChange).bind().run() : saved;
}

Result<bool> RemoveEndpoint::operator()(Session& session) {
    const auto stored = revision_of(session.db, id);
    if (!stored) {
        return fail(stored.error());
    }
    if (*stored == 0) {
        return false;
    }
    if (auto removed = Query(session.db, kRemove).bind(id).run(); !removed) {
        return fail(std::move(removed.error()));
    }
    auto counted = Query(session.db, kCountChange).bind().run();
    return counted ? Result<bool>(true) : fail(std::move(counted.error()));
}

Result<notify::AllEndpoints> find_all_endpoints(Database& db) {
    notify::AllEndpoints all;
    const auto changes = count_endpoint_changes(db);
    if (!changes) {
        return fail(changes.error());
    }
    all.changes = *changes;
    Query query(db, kAll);
    query.bind();
    auto read = each_row(query, [&]() -> Result<> {
        const auto about = decode_object(query.text(3));
        const auto secrets = decode_object(query.text(4));
        if (!about || !secrets) {
            return fail(damaged("endpoint"));
        }
        auto endpoint = notify::Endpoint::restore(
            {query.uuid(0)},
            query.string(1),
            static_cast<std::uint64_t>(query.integer(2)),
            *about,
            *secrets
        );
        if (endpoint) {
            all.endpoints.push_back(std::move(*endpoint));
        }
        return {};
    });
    return read ? Result<notify::AllEndpoints>(std::move(all)) : fail(std::move(read.error()));
}

Result<std::uint64_t> count_endpoint_changes(Database& db) {
    Query query(db, kChanges);
    const auto row = query.bind().next();
    if (!row) {
        return fail(row.error());
    }
    return *row ? static_cast<std::uint64_t>(query.integer(0)) : 0;
}

}  // namespace comfyd::ledger::sqlite
