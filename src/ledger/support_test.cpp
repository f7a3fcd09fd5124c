#include <atomic>

#include "auth/memory_identities.hpp"
#include "auth/memory_sessions.hpp"
#include "fleet/instances/memory_store.hpp"
#include "ledger/memory_bulks.hpp"
#include "ledger/memory_ledger.hpp"
#include "ledger/postgres_ledger.hpp"
#include "ledger/test_support.hpp"
#include "support/postgres.hpp"
#include "support/wait.hpp"

namespace comfyd::ledger::test {
namespace {

json::value text_of(const std::optional<Time>& time) {
    return time ? json::value(to_unix_ms(*time)) : json::value(nullptr);
}

// As JobId::make(), but of exactly this time, whatever the other tests of the process have made
// before.
JobId job_id_at(Time now) {
    static std::atomic<std::uint64_t> count = 0;
    JobId id;
    const auto ms = static_cast<std::uint64_t>(to_unix_ms(now));
    const std::uint64_t number = ++count;
    for (std::size_t i = 0; i < 6; ++i) {
        id.uuid.bytes[i] = static_cast<std::uint8_t>(ms >> (40 - 8 * i));
    }
    for (std::size_t i = 0; i < 8; ++i) {
        id.uuid.bytes[8 + i] = static_cast<std::uint8_t>(number >> (56 - 8 * i));
    }
    return id;
}

class SqliteStorage final : public Storage {
public:
    explicit SqliteStorage(Clock& clock) : clock_(clock) { reopen(); }

    jobs::Ledger& ledger() override { return *ledger_; }
    assets::Catalogue& catalogue() override { return *ledger_; }
    notify::Outbox& outbox() override { return *ledger_; }
    notify::Deliveries& deliveries() override { return *ledger_; }
    notify::EndpointStore& endpoints() override { return *ledger_; }
    auth::IdentityStore& identities() override { return *ledger_; }
    auth::SessionStore& sessions() override { return *ledger_; }
    fleet::InstanceStore& instances() override { return *ledger_; }
    models::RegisterStore& models() override { return *ledger_; }
    jobs::WorkflowStore& workflows() override { return *ledger_; }
    jobs::Notebook& notebook() override { return *ledger_; }
    jobs::BulkStore& bulks() override { return *ledger_; }
    void reopen() override {
        ledger_.reset();
        SqliteLedger::Options options;
        options.path = folder_.path() / "ledger.db";
        options.routing = &routing;
        ledger_ = get(SqliteLedger::open(options, clock_));
    }

private:
    TempFolder folder_;
    Clock& clock_;
    std::unique_ptr<SqliteLedger> ledger_;
};

// A database of its own, copied from one that has the tables already.
class PostgresStorage final : public Storage {
public:
    explicit PostgresStorage(Clock& clock) : clock_(clock), url_(make_postgres_database()) {
        reopen();
    }

    jobs::Ledger& ledger() override { return *ledger_; }
    assets::Catalogue& catalogue() override { return *ledger_; }
    notify::Outbox& outbox() override { return *ledger_; }
    notify::Deliveries& deliveries() override { return *ledger_; }
    notify::EndpointStore& endpoints() override { return *ledger_; }
    auth::IdentityStore& identities() override { return *ledger_; }
    auth::SessionStore& sessions() override { return *ledger_; }
    fleet::InstanceStore& instances() override { return *ledger_; }
    models::RegisterStore& models() override { return *ledger_; }
    jobs::WorkflowStore& workflows() override { return *ledger_; }
    jobs::Notebook& notebook() override { return *ledger_; }
    jobs::BulkStore& bulks() override { return *ledger_; }
    void reopen() override {
        ledger_.reset();
        PostgresLedger::Options options;
        options.url = url_;
        options.secret = "what all nodes know";
        options.routing = &routing;
        ledger_ = get(PostgresLedger::open(options, clock_));
    }

private:
    Clock& clock_;
    std::string url_;
    std::unique_ptr<PostgresLedger> ledger_;
};

class MemoryStorage final : public Storage {
public:
    explicit MemoryStorage(Clock& clock) : ledger_(clock) {}

    jobs::Ledger& ledger() override { return ledger_; }
    assets::Catalogue& catalogue() override { throw std::logic_error("it keeps no assets"); }
    notify::Outbox& outbox() override { throw std::logic_error("it keeps no deliveries"); }
    notify::Deliveries& deliveries() override { throw std::logic_error("it keeps no deliveries"); }
    notify::EndpointStore& endpoints() override { throw std::logic_error("it keeps no endpoints"); }
    jobs::WorkflowStore& workflows() override { throw std::logic_error("it keeps no workflows"); }
    jobs::Notebook& notebook() override { throw std::logic_error("it keeps no notes"); }
    jobs::BulkStore& bulks() override { return bulks_; }
    auth::IdentityStore& identities() override { return identities_; }
    auth::SessionStore& sessions() override { return sessions_; }
    fleet::InstanceStore& instances() override { return instances_; }
    models::RegisterStore& models() override { throw std::logic_error("it keeps no models"); }
    void reopen() override {}

private:
    MemoryLedger ledger_;
    MemoryBulks bulks_;
    auth::MemoryIdentities identities_;
    auth::MemorySessions sessions_;
    fleet::MemoryInstances instances_;
};

}  // namespace

json::object describe(const jobs::Job& job) {
    json::array outputs;
    for (const auto& output : job.outputs) {
        outputs.emplace_back(output.to_json());
    }
    return {
        {"id", job.id.to_string()},
        {"tenant", job.tenant},
        {"dialect", job.dialect},
        {"state", to_string(job.state)},
        {"priority", job.priority},
        {"batch", job.batch},
        {"fairness_key", job.fairness_key},
        {"created_at", to_unix_ms(job.created_at)},
        {"started_at", text_of(job.started_at)},
        {"finished_at", text_of(job.finished_at)},
        {"not_before", text_of(job.not_before)},
        {"deadline", text_of(job.deadline)},
        {"timeout", job.timeout.count()},
        {"attempt", job.attempt},
        {"max_attempts", job.max_attempts},
        {"worker", job.worker},
        {"shared", job.shared ? json::value(job.shared->to_json()) : json::value(nullptr)},
        {"cancel_requested", job.cancel_requested},
        {"sequence", job.sequence},
        {"revision", job.revision},
        {"workflow_id", job.workflow_id},
        {"metadata", job.metadata},
        {"dialect_data", job.dialect_data},
        {"has_webhook", job.has_webhook},
        {"node_count", job.node_count},
        {"reuse_key", job.reuse_key},
        {"reused_from",
         job.reused_from ? json::value(job.reused_from->to_string()) : json::value(nullptr)},
        {"outputs", std::move(outputs)},
        {"ui_outputs", job.ui_outputs},
        {"failure", job.failure ? json::value(job.failure->to_json()) : json::value(nullptr)},
        {"usage", job.usage ? json::value(job.usage->to_json()) : json::value(nullptr)},
    };
}

json::object describe(const jobs::Spec& spec) {
    return {
        {"tenant", spec.tenant},
        {"dialect", spec.dialect},
        {"workflow", spec.workflow},
        {"extra_data", spec.extra_data},
        {"secret_extra_data", spec.secret_extra_data},
        {"priority", spec.priority},
        {"batch", spec.batch},
        {"fairness_key", spec.fairness_key},
        {"timeout", spec.timeout.count()},
        {"deadline", text_of(spec.deadline)},
        {"max_attempts", spec.max_attempts},
        {"metadata", spec.metadata},
        {"dialect_data", spec.dialect_data},
        {"workflow_id", spec.workflow_id},
        {"webhook", spec.webhook ? json::value(spec.webhook->to_json()) : json::value(nullptr)},
        {"idempotency_key", spec.idempotency_key},
        {"request_hash", spec.request_hash},
        {"node_count", spec.node_count},
        {"requirement", spec.requirement.encoded()},
    };
}

json::object describe(const jobs::Event& event) {
    return {
        {"job", event.job.to_string()},
        {"sequence", event.sequence},
        {"type", to_string(event.type)},
        {"at", to_unix_ms(event.at)},
        {"state", to_string(event.state)},
        {"data", event.data},
    };
}

json::object describe(const assets::Asset& asset) {
    return {
        {"id", asset.id.to_string()},
        {"tenant", asset.tenant},
        {"hash", asset.hash},
        {"size_bytes", asset.size_bytes},
        {"content_type", asset.content_type},
        {"file_path", asset.file_path},
        {"tags", json::array(asset.tags.begin(), asset.tags.end())},
        {"created_at", to_unix_ms(asset.created_at)},
        {"expires_at", text_of(asset.expires_at)},
        {"job", asset.job ? json::value(asset.job->to_string()) : json::value(nullptr)},
        {"crc32", asset.crc32 ? json::value(*asset.crc32) : json::value(nullptr)},
        {"store", asset.store},
        {"retention",
         asset.retention ? json::value(to_string(*asset.retention)) : json::value(nullptr)},
        {"moves_at", text_of(asset.moves_at)},
    };
}

jobs::Spec simple_spec(std::string tenant) {
    jobs::Spec spec;
    spec.tenant = std::move(tenant);
    spec.dialect = "comfy-v2";
    spec.workflow = R"({"1":{"class_type":"SaveImage","inputs":{}}})";
    spec.requirement = Requirement::decode("SaveImage");
    return spec;
}

jobs::Spec full_spec() {
    jobs::Spec spec = simple_spec("acme \xF0\x9F\x8E\xA8 'quoted'");
    spec.workflow = std::string("{\"text\":\"zero ") + '\0' + " and \xC3\xA9\"}";
    spec.extra_data = {{"extra_pnginfo", json::object{{"workflow", json::array{1, 2.5, nullptr}}}}};
    spec.secret_extra_data = {{"api_key_comfy_org", "secret"}};
    spec.priority = 9;
    spec.batch = true;
    spec.fairness_key = "user \"7\"";
    spec.timeout = Millis(12'345);
    spec.deadline = from_unix_ms(1'800'000'000'123);
    spec.max_attempts = 7;
    spec.metadata = {{"order", 42}, {"name", "\xE7\x8C\xAB"}};
    spec.dialect_data = {{"output_config", json::object{{"format", "png"}}}};
    spec.workflow_id = "portrait-v3";
    jobs::Webhook webhook;
    webhook.url = "https://example.com/hook?a=b";
    webhook.secret = "whsec";
    webhook.headers = {{"X-One", "1"}, {"X-Two", "2"}};
    webhook.events = {"execution.started", "execution.completed"};
    spec.webhook = webhook;
    spec.idempotency_key = "key-1";
    spec.request_hash = "abc123";
    spec.node_count = 11;
    spec.requirement = Requirement::decode("KSampler\nSaveImage")
                           .on(
                               {.pool = "gold",
                                .gpu = "RTX 4090",
                                .region = "eu",
                                .memory_gb = 20.5,
                                .memory_part = 0.5}
                           );
    return spec;
}

jobs::Output full_output(Time now) {
    jobs::Output output;
    output.asset = AssetId::make(now);
    output.node_id = "9";
    output.name = "ComfyUI_00001_.png";
    output.subfolder = "a/b";
    output.folder = "output";
    output.type = "image";
    output.content_type = "image/png";
    output.size_bytes = 123'456'789'012;
    output.hash = "blake3:00";
    return output;
}

jobs::NewJob make_new(jobs::Spec spec, Time now) {
    jobs::NewJob job;
    job.change = jobs::make_job(job_id_at(now), spec, now);
    job.spec = std::move(spec);
    return job;
}

std::string make_postgres_database() {
    static const std::string kOriginal = [] {
        const std::string url = support::PostgresServer::shared().make_database();
        ManualClock clock;
        PostgresLedger::Options options;
        options.url = url;
        const auto ledger = get(PostgresLedger::open(options, clock));
        EXPECT_TRUE(support::wait_until([&url] {
            return support::run_sql(
                       url,
                       "SELECT count(*) > 2 FROM pg_inherits WHERE inhparent = 'jobs'::regclass"
                   ) == "t";
        }));
        return url.substr(url.rfind('/') + 1);
    }();
    return support::PostgresServer::shared().make_database(kOriginal);
}

std::vector<Backend> backends() {
    return {
        {"sqlite", [](Clock& clock) { return std::make_unique<SqliteStorage>(clock); }},
        {"postgres", [](Clock& clock) { return std::make_unique<PostgresStorage>(clock); }},
    };
}

std::vector<Backend> job_backends() {
    auto all = backends();
    all.push_back(
        {"memory", [](Clock& clock) { return std::make_unique<MemoryStorage>(clock); }, false}
    );
    return all;
}

}  // namespace comfyd::ledger::test
