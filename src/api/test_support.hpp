// For the tests of api: a whole service behind a real server on the loopback, with a ledger and
// asset records in memory and one worker that does what the test says.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>

#include "api/dialects/dialects.hpp"
#include "api/router.hpp"
#include "api/services.hpp"
#include "api/test_workflows.hpp"
#include "assets/test_support.hpp"
#include "base/hop.hpp"
#include "events/local_hub.hpp"
#include "net/client.hpp"
#include "net/server.hpp"
#include "net/test_support.hpp"

namespace comfyd::api::test {

class MemoryLedger final : public jobs::Ledger {
public:
    Task<Result<jobs::Accepted>> accept(jobs::NewJob job) override;
    Task<Result<jobs::Accepted>> find_key(std::string tenant, std::string key) override;
    Task<Result<std::optional<jobs::Job>>> find_reusable(std::string tenant, std::string key)
        override;
    Task<Result<>> commit(jobs::Change change) override;
    Task<Result<std::optional<jobs::Job>>> find(JobId id) override;
    Task<Result<std::optional<jobs::Spec>>> find_spec(JobId id) override;
    Task<Result<jobs::Page>> list(jobs::ListQuery query) override;
    Task<Result<std::vector<jobs::Event>>> events(JobId id, std::uint64_t after) override;
    Task<Result<jobs::WebhookStatus>> webhook_status(JobId) override;
    Task<Result<std::optional<jobs::Stamp>>> stamp(JobId id) override;
    Task<Result<jobs::StateCounts>> counts(std::optional<std::string>) override;
    Task<Result<std::vector<jobs::Unfinished>>> unfinished(std::optional<JobId>, int) override;
    Task<Result<jobs::Stats>> stats(jobs::StatsQuery query) override;
    Task<Result<jobs::Purged>> purge(Time before, int limit) override;
    Task<Result<>> discard(JobId id) override;

    std::atomic<bool> webhooks_arrived{false};  // all of them, or none

    jobs::Spec spec(const JobId& id);
    std::vector<jobs::Event> stored(const JobId& id);
    jobs::ListQuery query();

private:
    std::mutex mutex_;
    std::map<JobId, jobs::Job> jobs_;
    std::map<JobId, jobs::Spec> specs_;
    std::map<JobId, std::vector<jobs::Event>> events_;
    std::map<std::pair<std::string, std::string>, JobId> keys_;
    std::map<jobs::StatsKey, jobs::Totals> stats_;
    jobs::ListQuery last_query;
};

// Takes nothing until open() is called; then each attempt reports progress, a preview and one
// output, or waits to be stopped, or fails.
class ScriptedWorker final : public jobs::Worker {
public:
    enum class Script { succeed, wait_for_stop, fail };

    jobs::WorkerInfo info() const override;
    const std::string& id() const override { return id_; }
    bool available() const override { return open && !busy_; }
    bool can_run(const Requirement&) const override { return true; }
    Task<Result<jobs::AttemptResult>> run(
        jobs::Assignment assignment, jobs::AttemptListener& listener, jobs::StopRequest& stop
    ) override;

    // Set on the core executor, or before it runs.
    bool open = false;
    bool down = false;  // says so
    Script script = Script::succeed;
    jobs::Output output;
    std::optional<jobs::Usage> usage;

private:
    std::string id_ = "scripted";
    bool busy_ = false;
};

class OneWorkerFleet final : public jobs::Fleet {
public:
    std::vector<std::shared_ptr<jobs::Worker>> workers() const override { return {worker}; }
    std::shared_ptr<jobs::Worker> find(const std::string& id) const override {
        return id == worker->id() ? worker : nullptr;
    }
    void on_change(OnChange callback) override { on_change_ = std::move(callback); }
    void changed() const { on_change_({worker->id()}); }

    std::shared_ptr<ScriptedWorker> worker = std::make_shared<ScriptedWorker>();

private:
    OnChange on_change_;
};

struct Arrangement {
    std::vector<auth::ApiKey> keys;
    std::shared_ptr<const auth::Authenticator> authenticator;  // empty: over the keys
    std::function<assets::BlobStores()> make_stores;           // beside a folder
    ApiOptions options;
    admission::Rules admission;
    Router::Rules rules;
    net::ServerLimits limits;
    jobs::ServiceOptions jobs;
    std::function<void(Router&)> add_routes;
    // What the fleet has. Empty: no worker said what it has, so classes are not checked.
    std::shared_ptr<const workflow::Catalogue> catalogue =
        std::make_shared<const workflow::Catalogue>(std::vector<workflow::Catalogue::Entry>());
};

class TestApi {
public:
    explicit TestApi(Arrangement setup = {});
    ~TestApi();

    std::string url(std::string_view path) const;
    net::ClientResponse send(
        std::string method, std::string_view path, std::string body = {}, net::Headers headers = {}
    );
    net::ClientResponse get(std::string_view path, net::Headers headers = {});
    net::ClientResponse post(std::string_view path, std::string body, net::Headers headers = {});
    net::ClientResponse upload(const std::vector<net::FormPart>& parts, net::Headers headers = {});

    // Lets the worker take jobs.
    void open_worker(ScriptedWorker::Script script = ScriptedWorker::Script::succeed);
    template <class Work>
    void on_core(Work work) {
        loop_.run(call_on(core_.executor(), [work] {
            work();
            return true;
        }));
    }
    // Polls the job until it has this status.
    // A stream's place is free a moment after its client has read the end of it.
    void wait_until_no_stream() const;
    // Of the core.
    events::LocalHub& hub() { return hub_; }
    json::object wait_for_status(const std::string& path, std::string_view status);

private:
    static Task<std::string> render(observe::Metrics& metrics);
    static Task<Result<>> drain(std::string worker, std::string known);
    static Task<bool> stop_service(jobs::Service& service);
    static Task<bool> close_client(net::Client& client);
    static std::filesystem::path make_directory();

    std::filesystem::path directory_ = make_directory();
    net::test::Loop loop_;
    net::IoThread core_{"core"};
    net::IoThreads threads_{2};
    Pool pool_{1};

public:
    ManualClock clock;
    std::shared_ptr<const auth::Authenticator> authenticator;
    MemoryLedger ledger;
    assets::test::MemoryCatalogue records;
    MemoryWorkflows workflows;
    OneWorkerFleet fleet;
    observe::Metrics metrics;
    assets::LinkSigner signer{"key of the links"};
    std::atomic<bool> ready{true};
    std::uint16_t port = 0;

private:
    events::LocalHub hub_;

public:
    jobs::Service service;

private:
    assets::Store store_;

public:
    Services services;
    Router router;

private:
    net::Server server_;
    net::Client client_;
};

json::object parse(const std::string& text);
net::Headers header(std::string_view name, std::string value);
// The code of an error body.
std::string error_code(const net::ClientResponse& response);

}  // namespace comfyd::api::test
