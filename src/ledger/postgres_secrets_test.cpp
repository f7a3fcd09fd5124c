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

class PostgresTargets : public PostgresSecrets {
protected:
    jobs::Job accept_with_webhook(PostgresLedger& ledger) {
        auto spec = simple_spec();
        spec.webhook.emplace();
        spec.webhook->url = "https://example.com/";
        spec.webhook->secret = "xyzzy-plugh";
        spec.webhook->events = {"execution.queued"};
        auto made = make_new(std::move(spec), clock_.now());
        const jobs::Job job = made.change.job;
        EXPECT_TRUE(await_value(ledger.accept(std::move(made))).created);
        return job;
    }
    // All that stands in tables which may hold it.
    std::string everything() const {
        return support::run_sql(
            url_,
            "SELECT coalesce(string_agg(t, ' '), '') FROM (SELECT encode(target, 'escape') AS t "
            "FROM outbox_targets UNION ALL SELECT spec FROM job_specs UNION ALL "
            "SELECT encode(secrets, 'escape') || about FROM endpoints) all_of_them"
        );
    }
};

TEST_F(PostgresTargets, SecretsOfWebhooksAreSealed) {
    const auto ledger = open("a secret of the cluster");
    const jobs::Job job = accept_with_webhook(*ledger);
    notify::Endpoint endpoint;
    endpoint.id = notify::EndpointId::make(clock_.now());
    endpoint.tenant = "local";
    endpoint.revision = 1;
    endpoint.webhook.url = "https://example.com/";
    endpoint.webhook.secret = "xyzzy-plugh";
    await_value(ledger->save_endpoint(endpoint));
    EXPECT_NE(everything().find("example.com"), std::string::npos) << "addresses of endpoints";
    EXPECT_EQ(everything().find("xyzzy"), std::string::npos);

    const auto other = open("a secret of the cluster");
    EXPECT_EQ(await_value(other->find_spec(job.id))->webhook->secret, "xyzzy-plugh");
    EXPECT_EQ(await_value(other->all_endpoints()).endpoints.at(0).webhook.secret, "xyzzy-plugh");
    const auto due = await_value(other->due(clock_.now(), 10));
    ASSERT_EQ(due.size(), 1U);
    EXPECT_EQ(std::get<jobs::Webhook>(due[0].target.value()).secret, "xyzzy-plugh");
}

TEST_F(PostgresTargets, ThePlanOfABatchIsSealed) {
    jobs::Bulk bulk;
    bulk.id = jobs::BulkId::make(clock_.now());
    bulk.tenant = "local";
    const std::string plan = R"({"webhook": {"secret": "xyzzy-plugh"}})";
    const auto ledger = open("a secret of the cluster");
    await_value(ledger->add_bulk(bulk, plan));
    EXPECT_EQ(
        support::run_sql(url_, "SELECT plan FROM bulk_plans").find("xyzzy"), std::string::npos
    );
    const auto other = open("a secret of the cluster");
    EXPECT_EQ(await_value(other->find_bulk_plan(bulk.id)), plan);
    const auto stranger = open("another");
    EXPECT_FALSE(await(stranger->find_bulk_plan(bulk.id)));

    jobs::Bulk older = bulk;
    older.id = jobs::BulkId::make(clock_.now());
    await_value(open("")->add_bulk(older, plan));
    EXPECT_EQ(await_value(other->find_bulk_plan(older.id)), plan) << "from before there was one";
}

TEST_F(PostgresTargets, NotesOfUploadsAreSealed) {
    assets::BlobRecord record;
    record.hash = "blake3:" + std::string(64, 'a');
    record.store = "main";
    record.generation = 1;
    record.key = "k";
    const auto ledger = open("a secret of the cluster");
    await_value(ledger->begin_upload(record, clock_.now()));
    await_value(ledger->note_upload(record, "https://drive.example/session/xyzzy"));
    EXPECT_EQ(
        support::run_sql(url_, "SELECT encode(note, 'escape') FROM blobs").find("xyzzy"),
        std::string::npos
    );
    const auto noted = [this](const std::string& secret) {
        return await_value(open(secret)->uploads(clock_.now(), 1)).at(0).record.note;
    };
    EXPECT_EQ(noted("a secret of the cluster"), "https://drive.example/session/xyzzy");
    EXPECT_EQ(noted("another"), "") << "it is begun anew";
}

TEST_F(PostgresTargets, WithAnotherSecretNobodyIsTold) {
    const jobs::Job job = accept_with_webhook(*open("a secret of the cluster"));
    const auto other = open("another");
    EXPECT_FALSE(await_value(other->find_spec(job.id))->webhook) << "the job itself can run";
    const auto due = await_value(other->due(clock_.now(), 10));
    ASSERT_EQ(due.size(), 1U);
    EXPECT_FALSE(due[0].target);
}

TEST_F(PostgresTargets, WithoutASecretTheyAreKeptAsTheyAre) {
    const jobs::Job job = accept_with_webhook(*open(""));
    EXPECT_EQ(
        await_value(open("one since then")->find_spec(job.id))->webhook->secret, "xyzzy-plugh"
    );
}

}  // namespace
}  // namespace comfyd::ledger::test
