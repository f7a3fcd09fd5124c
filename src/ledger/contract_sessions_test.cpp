// Sessions of browsers and logins that have begun, for every storage.
#include <gmock/gmock.h>

#include "ledger/test_support.hpp"

namespace comfyd::ledger::test {
namespace {

using auth::SessionKind;
using auth::SessionQuery;
using auth::SessionRecord;
using std::chrono::hours;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr int kMany = 100;

class SessionsContract : public Contract {
protected:
    SessionRecord record(std::string id, std::string tenant = "acme", std::string owner = "app") {
        return {
            SessionKind::session,
            std::move(id),
            std::move(tenant),
            std::move(owner),
            clock_.now(),
            clock_.now() + hours(8),
            {{"by", "key"}},
        };
    }
    void save(SessionRecord record, int kept_max = kMany) {
        await_value(sessions().save_session(std::move(record), kept_max));
    }
    std::optional<SessionRecord> find(std::string id, SessionKind kind = SessionKind::session) {
        return await_value(sessions().find_session(kind, std::move(id)));
    }
    std::vector<std::string> listed(SessionQuery query = {}) {
        query.now = clock_.now();
        std::vector<std::string> ids;
        for (const SessionRecord& one : await_value(sessions().list_sessions(query))) {
            ids.push_back(one.id);
        }
        return ids;
    }
};
INSTANTIATE_TEST_SUITE_P(Ledger, SessionsContract, testing::ValuesIn(job_backends()), backend_name);

TEST_P(SessionsContract, AreKeptAsTheyWere) {
    SessionRecord saved = record("one", "\xC3\xA9 'quoted'", "");
    saved.about["deep"] = json::object{{"list", json::array{1, "two"}}};
    save(saved);
    storage_->reopen();
    const auto found = find("one");
    ASSERT_TRUE(found);
    EXPECT_EQ(found->tenant, saved.tenant);
    EXPECT_EQ(found->owner, "");
    EXPECT_EQ(found->used_at, saved.used_at);
    EXPECT_EQ(found->ends_at, saved.ends_at);
    EXPECT_EQ(found->about, saved.about);
    EXPECT_FALSE(find("one", SessionKind::begun_login)) << "kinds are apart";
    EXPECT_FALSE(find("another"));
}

TEST_P(SessionsContract, OneOfAllWhoTakeGetsIt) {
    SessionRecord begun = record("state");
    begun.kind = SessionKind::begun_login;
    save(begun);
    EXPECT_FALSE(await_value(sessions().take_session(SessionKind::session, "state")));
    const auto taken = await_value(sessions().take_session(SessionKind::begun_login, "state"));
    ASSERT_TRUE(taken);
    EXPECT_EQ(taken->about, begun.about);
    EXPECT_FALSE(await_value(sessions().take_session(SessionKind::begun_login, "state")));
    EXPECT_FALSE(find("state", SessionKind::begun_login));
}

TEST_P(SessionsContract, AUseOnlyMovesForward) {
    save(record("one"));
    const Time now = clock_.now();
    await_value(sessions().note_session_use("one", now + hours(1), now + hours(9)));
    await_value(sessions().note_session_use("one", now + Millis(5), now + hours(30)));
    await_value(sessions().note_session_use("gone", now + hours(1), now + hours(9)));
    const auto found = find("one");
    ASSERT_TRUE(found);
    EXPECT_EQ(found->used_at, now + hours(1));
    EXPECT_EQ(found->ends_at, now + hours(9));
    EXPECT_FALSE(find("gone"));
}

TEST_P(SessionsContract, ThoseThatEndedGoWithTheNextAndAreNotListed) {
    save(record("old"));
    clock_.advance(hours(8));
    EXPECT_THAT(listed(), IsEmpty());
    save(record("new", "other"));
    EXPECT_FALSE(find("old"));
    EXPECT_THAT(listed(), ElementsAre("new"));
}

TEST_P(SessionsContract, AnOwnersOldestMakeRoom) {
    for (const char* id : {"d", "c", "b"}) {
        save(record(id), 3);
        clock_.advance(Millis(10));
    }
    save(record("x", "acme", "another"), 3);
    save(record("y", "another", "app"), 3);
    SessionRecord begun = record("begun");
    begun.kind = SessionKind::begun_login;
    save(begun, 3);
    await_value(sessions().note_session_use("d", clock_.now(), clock_.now() + hours(8)));
    clock_.advance(Millis(10));
    save(record("a"), 3);
    EXPECT_THAT(listed(), ElementsAre("a", "b", "d", "x", "y")) << "c was used longest ago";
    EXPECT_TRUE(find("begun", SessionKind::begun_login));
    save(record("z"), 1);
    EXPECT_THAT(listed({.tenant = "acme", .owner = "app"}), ElementsAre("z"));
}

TEST_P(SessionsContract, AreListedByOwnerAndInPages) {
    for (int i = 0; i < 7; ++i) {
        save(record("id" + std::to_string(i), i % 2 == 0 ? "even" : "odd", i < 4 ? "low" : "high"));
    }
    EXPECT_THAT(listed({.tenant = "even"}), ElementsAre("id0", "id2", "id4", "id6"));
    EXPECT_THAT(listed({.tenant = "even", .owner = "low"}), ElementsAre("id0", "id2"));
    EXPECT_THAT(listed({.tenant = "nobody"}), IsEmpty());
    EXPECT_THAT(listed({.after = "id1", .limit = 3}), ElementsAre("id2", "id3", "id4"));
    EXPECT_THAT(listed({.after = "id6"}), IsEmpty());
}

}  // namespace
}  // namespace comfyd::ledger::test
