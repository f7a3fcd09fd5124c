// What a client gives for workers alone: whoever leads gets it, nobody reads it in the database.
#include "ledger/postgres_ledger.hpp"
#include "ledger/test_support.hpp"
#include "support/postgres.hpp"

namespace comfyd::ledger::test {
namespace {

class PostgresSecrets : public testing::Test {
protected:
    std::unique_ptr<PostgresLedger> open(std::string secret) {
        PostgresLedger::Options options;
        options.url = url_;
        options.secret = std::move(secret);
        return get(PostgresLedger::open(std::move(options), clock_));
    }
    jobs::Job accept(PostgresLedger& ledger) {
        auto spec = simple_spec();
        spec.secret_extra_data = {{"api_key", "xyzzy-plugh"}};
        auto made = make_new(std::move(spec), clock_.now());
        const jobs::Job job = made.change.job;
        EXPECT_TRUE(await_value(ledger.accept(std::move(made))).created);
        return job;
    }
    static json::object secrets_in(PostgresLedger& ledger) {
        auto page = await_value(ledger.arrivals("main", {}, 10));
        return page.jobs.size() == 1 ? page.jobs.front().secrets : json::object{{"jobs", "none"}};
    }
    std::string stored() const {
        return support::run_sql(
            url_, "SELECT coalesce(string_agg(encode(sealed, 'escape'), ''), '') FROM job_secrets"
        );
    }

    ManualClock clock_;
    const std::string url_ = support::PostgresServer::shared().make_database();
};

TEST_F(PostgresSecrets, WhoLeadsGetsThem) {
    const auto one = open("a secret of the cluster");
    accept(*one);
    const auto other = open("a secret of the cluster");
    EXPECT_EQ(secrets_in(*other), json::object({{"api_key", "xyzzy-plugh"}}));
    EXPECT_FALSE(stored().empty());
    EXPECT_EQ(stored().find("xyzzy"), std::string::npos);
}

TEST_F(PostgresSecrets, WithAnotherSecretOrNoneNobodyDoes) {
    const auto one = open("a secret of the cluster");
    accept(*one);
    EXPECT_EQ(secrets_in(*open("another")), json::object());
    EXPECT_EQ(secrets_in(*open("")), json::object());
}

TEST_F(PostgresSecrets, TheyGoWithTheEndOfTheJob) {
    const auto ledger = open("a secret of the cluster");
    const jobs::Job job = accept(*ledger);
    const auto started = get(jobs::start(job, "worker", 2, clock_.now()));
    await_value(ledger->commit(started));
    EXPECT_FALSE(stored().empty());
    await_value(ledger->commit(get(jobs::complete(started.job, {}, {}, 3, clock_.now()))));
    EXPECT_TRUE(stored().empty());
}

TEST_F(PostgresSecrets, WithoutASecretTheyAreNotStored) {
    const auto ledger = open("");
    accept(*ledger);
    EXPECT_TRUE(stored().empty());
    EXPECT_EQ(secrets_in(*ledger), json::object());
}

}  // namespace
}  // namespace comfyd::ledger::test
