// Tenants and API keys, for every storage.
#include <gmock/gmock.h>

#include "auth/key_record.hpp"
#include "auth/tenant.hpp"
#include "ledger/test_support.hpp"

namespace comfyd::ledger::test {
namespace {

using auth::IdentityKind;
using auth::IdentityRecord;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

class IdentitiesContract : public Contract {
protected:
    static IdentityRecord record(IdentityKind kind, std::string id, std::uint64_t revision = 1) {
        return {kind, std::move(id), revision, {{"of", revision}}};
    }
    // In an order of its own.
    std::vector<IdentityRecord> all() {
        auto read = await_value(identities().all_identities()).records;
        std::ranges::sort(read, {}, [](const IdentityRecord& one) {
            return std::pair(one.kind, one.id);
        });
        return read;
    }
};
INSTANTIATE_TEST_SUITE_P(
    Ledger, IdentitiesContract, testing::ValuesIn(job_backends()), backend_name
);

TEST_P(IdentitiesContract, AreKeptAndCounted) {
    EXPECT_EQ(await_value(identities().identity_changes()), 0U);
    await_value(identities().save_identity(record(IdentityKind::tenant, "acme")));
    await_value(identities().save_identity(record(IdentityKind::key, "acme")));
    await_value(identities().save_identity(record(IdentityKind::tenant, "\xC3\xA9 'quoted'")));
    await_value(identities().save_identity(record(IdentityKind::tenant, "acme", 2)));
    storage_->reopen();
    EXPECT_EQ(await_value(identities().identity_changes()), 4U);
    const auto stored = all();
    ASSERT_THAT(stored, SizeIs(3));
    EXPECT_EQ(stored[0].id, "acme");
    EXPECT_EQ(stored[0].revision, 2U);
    EXPECT_EQ(stored[0].about, (json::object{{"of", 2}}));
    EXPECT_EQ(stored[1].id, "\xC3\xA9 'quoted'");
    EXPECT_EQ(stored[2].kind, IdentityKind::key);
    EXPECT_EQ(stored[2].revision, 1U);

    EXPECT_TRUE(await_value(identities().remove_identity(IdentityKind::tenant, "acme")));
    EXPECT_FALSE(await_value(identities().remove_identity(IdentityKind::tenant, "acme")));
    EXPECT_EQ(await_value(identities().identity_changes()), 5U);
    EXPECT_THAT(all(), SizeIs(2));
    EXPECT_EQ(await_value(identities().all_identities()).changes, 5U);
}

TEST_P(IdentitiesContract, WhoeverIsSlowerIsRefused) {
    await_value(identities().save_identity(record(IdentityKind::key, "k")));
    auto other = record(IdentityKind::key, "k");
    other.about = {{"of", "another"}};
    EXPECT_EQ(await_code(identities().save_identity(other)), Code::conflict);
    EXPECT_EQ(
        await_code(identities().save_identity(record(IdentityKind::key, "k", 3))), Code::conflict
    );
    EXPECT_EQ(
        await_code(identities().save_identity(record(IdentityKind::key, "new", 2))), Code::conflict
    );
    EXPECT_EQ(await_value(identities().identity_changes()), 1U);
}

TEST_P(IdentitiesContract, UsesOfKeysAreNotedAndOnlyGrow) {
    const Time now = clock_.now();
    await_value(identities().save_identity(record(IdentityKind::key, "a")));
    await_value(identities().save_identity(record(IdentityKind::key, "b")));
    await_value(identities().note_key_uses({{"a", now}, {"b", now}, {"gone", now}}));
    await_value(identities().note_key_uses({{"a", now - Millis(5)}, {"b", now + Millis(5)}}));
    storage_->reopen();
    EXPECT_THAT(
        await_value(identities().all_identities()).uses,
        ElementsAre(Pair("a", now), Pair("b", now + Millis(5)))
    );
    EXPECT_EQ(await_value(identities().identity_changes()), 2U) << "a use is no change";
    await_value(identities().remove_identity(IdentityKind::key, "a"));
    EXPECT_THAT(await_value(identities().all_identities()).uses, SizeIs(1));
    await_value(identities().note_key_uses({}));
}

TEST_P(IdentitiesContract, TenantsAndKeysComeBackAsTheyWere) {
    auth::Tenant tenant;
    tenant.name = "acme";
    tenant.revision = 1;
    const json::object members{
        {"tier", "enterprise"},
        {"weight", 2.5},
        {"running_max", 4},
        {"usd_per_month", 100},
        {"requests_per_minute", 0},
        {"denied_nodes", json::array{"Bad*"}},
        {"allowed_pools", json::array{"gold", "default"}},
        {"pool", "gold"},
        {"retention", "glacier"},
    };
    tenant = tenant.with(members).value();
    auth::KeyRecord key;
    key.id = "abcdefgh";
    key.revision = 1;
    key.name = "ci \xF0\x9F\x8E\xA8";
    key.tenant = "acme";
    key.scopes = {auth::Scope::jobs_read, auth::Scope::admin};
    key.sha256 = sha256("key");
    key.previous_sha256 = sha256("older");
    key.previous_until = clock_.now() + Millis(7);
    key.created_at = clock_.now();
    key.expires_at = clock_.now() + Millis(1000);
    await_value(identities().save_identity(tenant.to_record()));
    await_value(identities().save_identity(key.to_record()));
    const auto stored = all();
    ASSERT_THAT(stored, SizeIs(2));
    EXPECT_EQ(auth::Tenant::restore(stored[0]).about(), tenant.about());
    const auto restored = auth::KeyRecord::restore(stored[1]);
    ASSERT_TRUE(restored);
    EXPECT_EQ(restored->to_record().about, key.to_record().about);
    EXPECT_EQ(restored->scopes, key.scopes);
    EXPECT_EQ(restored->previous_sha256, key.previous_sha256);
}

}  // namespace
}  // namespace comfyd::ledger::test
