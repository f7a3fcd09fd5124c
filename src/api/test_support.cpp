#include "api/test_support.hpp"

#include <algorithm>
#include <thread>

#include "api/dialects/dialects.hpp"
#include "api/dialects/fleet/fleet.hpp"

namespace comfyd::api::test {

Task<Result<jobs::Accepted>> MemoryLedger::accept(jobs::NewJob job) {
    const std::scoped_lock lock(mutex_);
    const auto key = std::pair(job.spec.tenant, job.spec.idempotency_key);
    jobs::Accepted accepted;
    if (!key.second.empty() && keys_.contains(key)) {
        const JobId holder = keys_.at(key);
        accepted.existing = jobs_.at(holder);
        accepted.existing_request_hash = specs_.at(holder).request_hash;
        co_return accepted;
    }
    const JobId id = job.change.job.id;
    if (!key.second.empty()) {
        keys_.emplace(key, id);
    }
    jobs_[id] = job.then ? job.then->job : job.change.job;
    specs_[id] = std::move(job.spec);
    events_[id].push_back(job.change.event);
    if (job.warning) {
        events_[id].push_back(*job.warning);
    }
    if (job.then) {
        events_[id].push_back(job.then->event);
    }
    accepted.created = true;
    co_return accepted;
}

Task<Result<jobs::Accepted>> MemoryLedger::find_key(std::string tenant, std::string key) {
    const std::scoped_lock lock(mutex_);
    jobs::Accepted found;
    if (const auto holder = keys_.find({tenant, key}); holder != keys_.end()) {
        found.existing = jobs_.at(holder->second);
        found.existing_request_hash = specs_.at(holder->second).request_hash;
    }
    co_return found;
}

Task<Result<std::optional<jobs::Job>>> MemoryLedger::find_reusable(
    std::string tenant, std::string key
) {
    const std::scoped_lock lock(mutex_);
    for (auto job = jobs_.rbegin(); job != jobs_.rend(); ++job) {
        if (job->second.tenant == tenant && job->second.reuse_key == key &&
            job->second.state == jobs::State::completed && !job->second.reused_from) {
            co_return job->second;
        }
    }
    co_return std::nullopt;
}

Task<Result<>> MemoryLedger::commit(jobs::Change change) {
    const std::scoped_lock lock(mutex_);
    const JobId id = change.job.id;
    if (jobs_.at(id).revision != change.job.revision - 1) {
        co_return fail(Code::conflict, "stale");
    }
    if (auto entry = jobs::stats_of(change)) {
        stats_[entry->key].add(entry->totals);
    }
    jobs_[id] = std::move(change.job);
    events_[id].push_back(std::move(change.event));
    co_return Result<>();
}

Task<Result<std::optional<jobs::Job>>> MemoryLedger::find(JobId id) {
    const std::scoped_lock lock(mutex_);
    const auto found = jobs_.find(id);
    co_return found == jobs_.end() ? std::nullopt : std::optional(found->second);
}

Task<Result<std::optional<jobs::Spec>>> MemoryLedger::find_spec(JobId id) {
    const std::scoped_lock lock(mutex_);
    const auto found = specs_.find(id);
    co_return found == specs_.end() ? std::nullopt : std::optional(found->second);
}

Task<Result<jobs::Page>> MemoryLedger::list(jobs::ListQuery query) {
    const std::scoped_lock lock(mutex_);
    last_query = query;
    jobs::Page page;
    for (auto job = jobs_.rbegin(); job != jobs_.rend(); ++job) {
        const auto& states = query.states;
        const bool fits =
            (states.empty() ||
             std::find(states.begin(), states.end(), job->second.state) != states.end()) &&
            (!query.cursor || job->first < *query.cursor) &&
            (!query.tenant || job->second.tenant == *query.tenant) &&
            (query.workflow_id.empty() || job->second.workflow_id == query.workflow_id);
        if (!fits) {
            continue;
        }
        if (page.jobs.size() == static_cast<std::size_t>(query.limit)) {
            page.next_cursor = page.jobs.back().id;
            break;
        }
        page.jobs.push_back(job->second);
    }
    co_return page;
}

Task<Result<std::vector<jobs::Event>>> MemoryLedger::events(JobId id, std::uint64_t after) {
    const std::scoped_lock lock(mutex_);
    std::vector<jobs::Event> events;
    for (const jobs::Event& event : events_[id]) {
        if (event.sequence > after) {
            events.push_back(event);
        }
    }
    co_return events;
}

Task<Result<jobs::WebhookStatus>> MemoryLedger::webhook_status(JobId) {
    co_return jobs::WebhookStatus{webhooks_arrived, webhooks_arrived, false};
}

Task<Result<std::optional<jobs::Stamp>>> MemoryLedger::stamp(JobId id) {
    const std::scoped_lock lock(mutex_);
    const auto found = jobs_.find(id);
    if (found == jobs_.end() || !jobs::is_terminal(found->second.state)) {
        co_return std::nullopt;
    }
    const jobs::Job& job = found->second;
    co_return jobs::Stamp{job.tenant, job.revision, job.has_webhook && webhooks_arrived};
}

Task<Result<jobs::StateCounts>> MemoryLedger::counts(std::optional<std::string>) {
    co_return jobs::StateCounts{};
}

Task<Result<std::vector<jobs::Unfinished>>> MemoryLedger::unfinished(std::optional<JobId>, int) {
    co_return std::vector<jobs::Unfinished>();
}

Task<Result<jobs::Stats>> MemoryLedger::stats(jobs::StatsQuery query) {
    const std::scoped_lock lock(mutex_);
    jobs::StatsSum sum(query.group_by);
    for (const auto& [key, totals] : stats_) {
        if ((!query.tenant || key.tenant == *query.tenant) &&
            key.hour >= jobs::hour_of(query.from) && key.hour <= query.to) {
            sum.add(key, totals);
        }
    }
    co_return sum.take();
}

Task<Result<jobs::Purged>> MemoryLedger::purge(Time, int) {
    co_return jobs::Purged{};
}

Task<Result<>> MemoryLedger::discard(JobId id) {
    const std::scoped_lock lock(mutex_);
    const auto found = jobs_.find(id);
    if (found == jobs_.end()) {
        co_return fail(Code::not_found, "no such job");
    }
    if (!jobs::is_terminal(found->second.state)) {
        co_return fail(Code::conflict, "it has not ended");
    }
    jobs_.erase(id);
    specs_.erase(id);
    events_.erase(id);
    std::erase_if(keys_, [&](const auto& entry) { return entry.second == id; });
    co_return Result<>();
}

jobs::Spec MemoryLedger::spec(const JobId& id) {
    const std::scoped_lock lock(mutex_);
    return specs_.at(id);
}

std::vector<jobs::Event> MemoryLedger::stored(const JobId& id) {
    const std::scoped_lock lock(mutex_);
    return events_.at(id);
}

jobs::ListQuery MemoryLedger::query() {
    const std::scoped_lock lock(mutex_);
    return last_query;
}

jobs::WorkerInfo ScriptedWorker::info() const {
    jobs::WorkerInfo info;
    info.id = id_;
    info.status = down          ? jobs::WorkerStatus::down
                  : available() ? jobs::WorkerStatus::idle
                                : jobs::WorkerStatus::running;
    return info;
}

Task<Result<jobs::AttemptResult>> ScriptedWorker::run(
    jobs::Assignment assignment, jobs::AttemptListener& listener, jobs::StopRequest& stop
) {
    busy_ = true;
    jobs::Progress progress;
    progress.value = 0.5;
    progress.nodes_done = 1;
    progress.nodes_total = 2;
    listener.on_progress(progress);
    listener.on_preview("jpeg bytes", "image/jpeg");
    if (usage) {
        listener.on_usage(*usage);
    }
    if (script == Script::wait_for_stop) {
        while (!stop.reason) {
            co_await stop.requested.wait();
        }
        busy_ = false;
        co_return fail(*stop.reason, "stopped");
    }
    if (script == Script::fail) {
        busy_ = false;
        co_return fail(
            Code::node_execution_error,
            "the sampler burst",
            {{"node_id", "3"}, {"node_type", "KSampler"}}
        );
    }
    listener.on_output(output);
    jobs::AttemptResult result;
    result.outputs.push_back(output);
    busy_ = false;
    co_return result;
}

TestApi::~TestApi() {
    on_core([this] { hub_.end_all(Code::shutting_down); });
    loop_.run(await_on(core_.executor(), stop_service(service)));
    loop_.run(close_client(client_));
    server_.stop(Millis(5000));
    threads_.stop();
    core_.stop();
    std::filesystem::remove_all(directory_);
}

std::string TestApi::url(std::string_view path) const {
    return "http://127.0.0.1:" + std::to_string(port) + std::string(path);
}

net::ClientResponse TestApi::send(
    std::string method, std::string_view path, std::string body, net::Headers headers
) {
    net::ClientRequest request;
    request.method = std::move(method);
    request.url = path.starts_with("http") ? std::string(path) : url(path);
    request.body = std::move(body);
    request.headers = std::move(headers);
    auto response = loop_.run(client_.send(std::move(request)));
    EXPECT_TRUE(response) << (response ? "" : response.error().message);
    return response ? std::move(*response) : net::ClientResponse{};
}

net::ClientResponse TestApi::get(std::string_view path, net::Headers headers) {
    return send("GET", path, {}, std::move(headers));
}

net::ClientResponse TestApi::post(std::string_view path, std::string body, net::Headers headers) {
    headers.set("Content-Type", "application/json");
    return send("POST", path, std::move(body), std::move(headers));
}

net::ClientResponse TestApi::upload(const std::vector<net::FormPart>& parts, net::Headers headers) {
    net::Multipart form = net::make_multipart(parts);
    headers.set("Content-Type", form.content_type);
    return send("POST", "/api/v2/assets", std::move(form.body), std::move(headers));
}

void TestApi::open_worker(ScriptedWorker::Script script) {
    on_core([this, script] {
        fleet.worker->script = script;
        fleet.worker->open = true;
        fleet.changed();
    });
}

void TestApi::wait_until_no_stream() const {
    while (services.streams->load() != 0) {
        std::this_thread::yield();
    }
}

json::object TestApi::wait_for_status(const std::string& path, std::string_view status) {
    for (int round = 0; round < 100'000; ++round) {
        const auto response = get(path);
        auto job = json::parse_object(response.body);
        if (!job || !job->contains("status")) {
            break;
        }
        if (std::string_view(job->at("status").get_string()) == status) {
            return std::move(*job);
        }
    }
    ADD_FAILURE() << path << " never became " << status;
    return {};
}

Task<std::string> TestApi::render(observe::Metrics& metrics) {
    co_return metrics.render(nullptr);
}

Task<Result<>> TestApi::drain(std::string worker, std::string known) {
    if (worker != known) {
        co_return fail(Code::not_found, "no worker has the id " + worker);
    }
    co_return Result<>();
}

Task<bool> TestApi::stop_service(jobs::Service& service) {
    co_await service.stop(Millis(0));
    co_return true;
}

Task<bool> TestApi::close_client(net::Client& client) {
    client.close_idle();
    co_return true;
}

std::filesystem::path TestApi::make_directory() {
    static std::atomic<int> count{0};
    // A store makes hundreds of folders, which takes seconds on a busy disk.
    const std::filesystem::path memory = "/dev/shm";
    return (std::filesystem::is_directory(memory) ? memory : std::filesystem::temp_directory_path()
           ) /
           ("comfyd-api-" + std::to_string(::getpid()) + "-" + std::to_string(count++));
}

TestApi::TestApi(Arrangement setup)
    : authenticator(
          setup.authenticator ? setup.authenticator : auth::make_key_authenticator(setup.keys)
      ),
      hub_(core_.executor()),
      service(core_.executor(), clock, ledger, hub_, setup.jobs),
      store_(
          assets::StoreOptions{.directory = directory_},
          records,
          clock,
          pool_,
          setup.make_stores ? setup.make_stores() : assets::BlobStores()
      ),
      services{
          {service,
           store_,
           clock,
           [catalogue = setup.catalogue] { return catalogue; },
           setup.admission},
          signer,
          workflows,
          [this]() -> Result<> {
              return ready ? Result<>() : fail(Code::worker_unavailable, "no worker is up");
          },
          [this]() -> Task<std::string> { return render(metrics); },
          [this](std::string worker, bool) { return drain(std::move(worker), fleet.worker->id()); },
          metrics,
          setup.options,
      },
      router(*authenticator, metrics, clock),
      server_(
          threads_.contexts(),
          setup.limits,
          [this](net::Exchange& exchange) { return router.handle(exchange); }
      ),
      client_(loop_.executor(), {}) {
    router.set_rules(setup.rules);
    add_operations(router, services);
    add_admin(router, services);
    add_stream_tickets(router, services);
    add_comfy_v2(router, services);
    add_dead_letters(router, services);
    add_workflows(router, services);
    add_stats(router, services);
    add_scale(router, services);
    add_comfyui_execute(router, services);
    add_tasks(router, services);
    add_runpod(router, services);
    if (setup.add_routes) {
        setup.add_routes(router);
    }
    EXPECT_TRUE(store_.open());
    core_.start();
    EXPECT_TRUE(loop_.run(await_on(core_.executor(), service.lead("main", {ledger, fleet}))));
    threads_.start();
    auto endpoint = server_.listen({"127.0.0.1", 0});
    EXPECT_TRUE(endpoint);
    port = endpoint->port;
}

json::object parse(const std::string& text) {
    auto parsed = json::parse_object(text);
    EXPECT_TRUE(parsed) << text;
    return parsed ? std::move(*parsed) : json::object();
}

net::Headers header(std::string_view name, std::string value) {
    net::Headers headers;
    headers.set(name, std::move(value));
    return headers;
}

std::string error_code(const net::ClientResponse& response) {
    const json::object body = parse(response.body);
    const json::value* error = json::find(body, "error");
    return error == nullptr ? std::string() : std::string(error->at("code").get_string());
}

}  // namespace comfyd::api::test
