// A ledger that is moved tells the same afterwards.
#include "ledger/copy.hpp"

#include <gmock/gmock.h>

#include <map>

#include "ledger/test_support.hpp"
#include "support/postgres.hpp"

namespace comfyd::ledger::test {
namespace {

const std::string kSecret = "a secret of the cluster";
const std::string kHash = "blake3:" + std::string(64, 'a');

class PostgresCopy : public testing::Test {
protected:
    PostgresCopy() { fill(*get(open_storage("sqlite:" + path_.string(), {}, clock_))); }

    jobs::Job accept(ledger::Storage& ledger, const jobs::Spec& spec) {
        auto made = make_new(spec, clock_.now());
        made.warning = jobs::warn(made.change, made.spec);
        const auto job = made.change.job;
        EXPECT_TRUE(await_value(ledger.accept(made)).created);
        return job;
    }
    void fill(ledger::Storage& ledger) {
        accept(ledger, full_spec());
        auto spec = simple_spec("other");
        spec.workflow = R"({"image": "asset:", "hash": ")" + kHash + R"("})";
        spec.webhook.emplace();
        spec.webhook->url = "https://example.com/";
        spec.webhook->events = {"execution.queued", "execution.started", "execution.completed"};
        const auto job = accept(ledger, spec);
        const auto started = get(jobs::start(job, "worker", 2, clock_.now()));
        await_value(ledger.commit(started));
        jobs::Output output = full_output(clock_.now());
        output.hash = kHash;
        output.bytes = std::make_shared<const std::string>("small\0bytes", 11);
        auto completed =
            get(jobs::complete(started.job, {output}, {{"9", 1}}, 3, clock_.now() + Millis(1'234)));
        jobs::Usage usage;
        usage.gpu = Millis(7);
        jobs::add_usage(completed, usage);
        await_value(ledger.commit(completed));
        accept(ledger, spec);
        jobs::WorkflowSave save;
        save.of = {"local", "portrait"};
        save.version.workflow = spec.workflow;
        save.version.content_hash = "1";
        await_value(ledger.save_workflow(save));
        await_value(ledger.set_workflow_label(save.of, "live", 1, std::nullopt));
        await_value(ledger.write_note("learned", "much"));
        await_value(ledger.save_identity(
            {auth::IdentityKind::tenant, "acme \xC3\xA9", 1, {{"tier", "pro"}}}
        ));
        await_value(ledger.save_identity({auth::IdentityKind::key, "abcdefgh", 1, {{"of", 1}}}));
        await_value(ledger.note_key_uses({{"abcdefgh", clock_.now()}}));
        fill_bulk(ledger);
    }
    void fill_bulk(ledger::Storage& ledger) {
        jobs::Bulk bulk;
        bulk.id = bulk_;
        bulk.tenant = "local";
        bulk.idempotency_key = "key";
        await_value(ledger.add_bulk(bulk, "plan"));
        jobs::BulkItem first;
        first.params = R"({"image": "blake3:)" + std::string(64, 'b') + R"("})";
        jobs::BulkItem second;
        second.index = 1;
        second.params = "{}";
        second.custom_id = "named";
        auto added = get(add_items(bulk, {first, second}));
        await_value(ledger.commit_bulk(added));
        auto loaded = get(finish_loading(added.bulk, clock_.now()));
        await_value(ledger.commit_bulk(loaded));
        second.state = jobs::ItemState::failed;
        second.failure = jobs::Failure::from(Error(Code::internal, "no"));
        await_value(ledger.commit_bulk(
            move_items(loaded.bulk, {{jobs::ItemState::waiting, second}}, clock_.now())
        ));
    }
    // All that a client could see, as text.
    std::map<std::string, std::string> describe_all(ledger::Storage& ledger) {
        std::map<std::string, std::string> shown;
        for (const auto& job : await_value(ledger.list({})).jobs) {
            const std::string id = job.id.to_string();
            shown[id] = json::serialize(describe(job));
            shown[id + " spec"] =
                json::serialize(describe(await_value(ledger.find_spec(job.id)).value()));
            for (const auto& event : await_value(ledger.events(job.id, 0))) {
                shown[id + " " + std::to_string(event.sequence)] = json::serialize(describe(event));
            }
            for (const auto& output : job.outputs) {
                shown["asset"] =
                    json::serialize(describe(await_value(ledger.find(output.asset)).value()));
            }
        }
        const auto workflow = await_value(ledger.find_workflow({"local", "portrait"})).value();
        shown["workflow"] = workflow.tag + std::to_string(workflow.labels.at("live"));
        shown["note"] = await_value(ledger.read_note("learned")).value();
        const auto identities = await_value(ledger.all_identities());
        for (const auth::IdentityRecord& one : identities.records) {
            shown["identity " + one.id] = std::to_string(one.revision) + json::serialize(one.about);
        }
        for (const auto& [key, used_at] : identities.uses) {
            shown["use of " + key] = to_rfc3339(used_at);
        }
        shown["bytes"] = await_value(ledger.kept_bytes(kHash)).value();
        const auto bulk = await_value(ledger.find_bulk(bulk_)).value();
        shown["bulk"] = std::to_string(bulk.revision) + bulk.idempotency_key +
                        await_value(ledger.find_bulk_plan(bulk_)).value();
        for (const auto& item : await_value(ledger.bulk_items({.bulk = bulk_}))) {
            shown["item " + std::to_string(item.index)] =
                item.custom_id + item.params + std::string(to_string(item.state)) +
                (item.failure ? item.failure->message : "");
        }
        const auto counts = await_value(ledger.counts(std::nullopt));
        shown["queued"] = std::to_string(counts.of(jobs::State::queued));
        shown["completed"] = std::to_string(counts.of(jobs::State::completed));
        shown["pending"] = std::to_string(await_value(ledger.counts()).pending);
        const auto stats =
            await_value(ledger.stats({std::nullopt, clock_.now(), clock_.now() + Millis(5'000)}));
        shown["stats"] = std::to_string(stats.totals.completed) + " " +
                         std::to_string(stats.totals.gpu.count()) + " " +
                         stats.totals.queued.encode() + " " + stats.totals.ran.encode();
        const auto key =
            await_value(ledger.find_key(full_spec().tenant, full_spec().idempotency_key));
        shown["key"] = key.existing->id.to_string() + key.existing_request_hash;
        return shown;
    }

    ManualClock clock_;
    const jobs::BulkId bulk_ = jobs::BulkId::make(clock_.now());
    TempFolder folder_;
    const std::filesystem::path path_ = folder_.path() / "ledger.db";
    const std::string url_ = support::PostgresServer::shared().make_database();
    std::map<std::string, std::uint64_t> told_;
    Result<> copy() {
        return copy_ledger(
            path_,
            url_,
            kSecret,
            clock_,
            [this](std::string_view table, std::uint64_t rows) { told_[std::string(table)] = rows; }
        );
    }
    std::unique_ptr<ledger::Storage> open_copy() {
        OpenOptions options;
        options.secret = kSecret;
        return get(open_storage(url_, options, clock_));
    }
};

TEST_F(PostgresCopy, EverythingIsThereAndGoesOn) {
    get(copy());
    EXPECT_EQ(told_["jobs"], 3U);
    EXPECT_EQ(told_["contents"], 1U);
    EXPECT_EQ(told_["identities"], 2U);
    EXPECT_EQ(support::run_sql(url_, "SELECT count(*) FROM jobs_20231113"), "3");
    const auto before = get(open_storage("sqlite:" + path_.string(), {}, clock_));
    const auto after = open_copy();
    EXPECT_EQ(describe_all(*after), describe_all(*before));

    auto due = await_value(after->due(clock_.now(), 10));
    ASSERT_EQ(due.size(), 2U);
    await_value(after->delivered(due[0], clock_.now()));
    EXPECT_EQ(await_value(after->counts()).pending, 3U);
    EXPECT_EQ(await_value(after->purge(clock_.now() + Millis(9'000), 10)).jobs, 0)
        << "an unfinished job takes its output, and its webhook is to be delivered";
    EXPECT_EQ(
        support::run_sql(url_, "SELECT asset FROM bulk_assets"), "blake3:" + std::string(64, 'b')
    );
    jobs::WorkflowSave save;
    save.of = {"local", "another"};
    EXPECT_TRUE(await_value(after->save_workflow(save)).created);
}

TEST_F(PostgresCopy, SecretsOfClientsAreSealedOnTheWay) {
    notify::Endpoint endpoint;
    endpoint.id = notify::EndpointId::make(clock_.now());
    endpoint.tenant = "local";
    endpoint.revision = 1;
    endpoint.webhook.url = "https://example.com/";
    endpoint.webhook.secret = "xyzzy-endpoint";
    {
        const auto from = get(open_storage("sqlite:" + path_.string(), {}, clock_));
        await_value(from->save_endpoint(endpoint));
        jobs::Spec spec = simple_spec();
        spec.webhook.emplace();
        spec.webhook->url = "https://example.com/";
        spec.webhook->secret = "xyzzy-webhook";
        spec.webhook->events = {"execution.queued"};
        accept(*from, spec);
        jobs::Bulk bulk;
        bulk.id = jobs::BulkId::make(clock_.now());
        bulk.tenant = "local";
        await_value(from->add_bulk(bulk, "xyzzy-plan"));
    }
    get(copy());
    const std::string everything = support::run_sql(
        url_,
        "SELECT string_agg(t, ' ') FROM (SELECT encode(target, 'escape') AS t FROM outbox_targets "
        "UNION ALL SELECT spec FROM job_specs UNION ALL SELECT plan FROM bulk_plans UNION ALL "
        "SELECT encode(secrets, 'escape') FROM endpoints) all_of_them"
    );
    EXPECT_EQ(everything.find("xyzzy"), std::string::npos);
    const auto after = open_copy();
    EXPECT_EQ(await_value(after->all_endpoints()).endpoints.at(0).webhook.secret, "xyzzy-endpoint");
    EXPECT_FALSE(copy_ledger(path_, url_, "", clock_, [](auto, auto) {}));
}

// By their places it is known who has heard of which.
TEST_F(PostgresCopy, EventsOfTheFleetKeepTheirPlaces) {
    fleet::FleetEvent event;
    event.fleet = "main";
    fleet::FleetEventPlace heard;
    {
        const auto from = get(open_storage("sqlite:" + path_.string(), {}, clock_));
        for (const char* what : {"one", "two", "three"}) {
            event.what = what;
            await_value(from->note_fleet_event(event));
        }
        heard = await_value(from->fleet_events_after("main", {}, 2)).at(1).place();
    }
    get(copy());
    const auto after = open_copy();
    event.what = "four";
    await_value(after->note_fleet_event(event));
    const auto unheard = await_value(after->fleet_events_after("main", heard, 10));
    ASSERT_EQ(unheard.size(), 2U);
    EXPECT_EQ(unheard[0].what, "three");
    EXPECT_EQ(unheard[1].what, "four");
    EXPECT_GT(unheard[1].number, unheard[0].number);
}

// Whoever was logged in logs in again (docs/cluster.md).
TEST_F(PostgresCopy, SessionsOfBrowsersStayBehind) {
    auth::SessionRecord session;
    session.id = std::string(64, 'a');
    session.tenant = "local";
    session.owner = "jo";
    session.used_at = clock_.now();
    session.ends_at = clock_.now() + std::chrono::hours(8);
    {
        const auto from = get(open_storage("sqlite:" + path_.string(), {}, clock_));
        await_value(from->save_session(session, 10));
    }
    get(copy());
    const auto after = open_copy();
    EXPECT_FALSE(await_value(after->find_session(session.kind, session.id)));
}

TEST_F(PostgresCopy, ATargetThatHasSomethingIsRefused) {
    get(copy());
    const auto again = copy();
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error().code, Code::conflict);
}

TEST_F(PostgresCopy, AFileThatAServerUsesIsRefused) {
    const auto used = get(open_storage("sqlite:" + path_.string(), {}, clock_));
    EXPECT_EQ(copy().error().code, Code::storage_unavailable);
}

}  // namespace
}  // namespace comfyd::ledger::test
