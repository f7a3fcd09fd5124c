#include "fleet/fleet.hpp"

#include <algorithm>
#include <utility>

#include <boost/asio/post.hpp>

#include "base/deadline.hpp"
#include "base/on_executor.hpp"
#include "base/stall_watch.hpp"
#include "fleet/comfy_worker.hpp"
#include "fleet/coming_worker.hpp"

namespace comfyd::fleet {
namespace {

constexpr int kQuestionsPerSecond = 128;
constexpr Millis kLongWait = std::chrono::hours(1);

// An engine is a process of ours on this machine: it comes back at once where it ends, and is ended
// where it does not do what it is told.
FleetOptions for_engines(FleetOptions options) {
    options.backoff_min = Millis(5);
    options.backoff_max = Millis(250);
    options.reconnect_delay = Millis(5);
    options.poll_interval = Millis(200);
    options.settle = Millis(10);
    options.refused_span = Millis(0);
    options.cancel_poll = Millis(10);
    options.cancel_grace = Millis(500);
    return options;
}

}  // namespace

Fleet::Fleet(
    Executor core,
    const Clock& clock,
    std::vector<Lane> lanes,
    assets::Store& store,
    Pool& pool,
    ClassCache& classes,
    NodeCosts& node_costs,
    FleetOptions options
)
    : core_(core),
      clock_(clock),
      lanes_(std::move(lanes)),
      store_(store),
      pool_(pool),
      options_(std::move(options)),
      engine_options_(for_engines(options_)),
      classes_(classes),
      node_costs_(node_costs),
      processes_(core),
      runs_changed_(core),
      changes_(std::make_shared<Changes>()),
      catalogue_(std::make_shared<workflow::Catalogue>(std::vector<workflow::Catalogue::Entry>())) {
}

Fleet::~Fleet() {
    changes_->callbacks.clear();
}

Result<> Fleet::add_comfyui(WorkerConfig config) {
    auto name = comfy::server_name(config.url);
    if (!name) {
        return fail(std::move(name.error()));
    }
    if (config.id.empty()) {
        config.id = std::move(*name);
    }
    if (config.slots < 1) {
        return fail(Code::invalid_argument, "worker " + config.id + ": slots must be 1 or more");
    }
    if (find_member(config.id) != nullptr) {
        return fail(Code::conflict, "there is a worker '" + config.id + "' already");
    }
    return add(std::move(config), options_);
}

Result<> Fleet::add_engine(EngineConfig config) {
    if (find_member(config.id) != nullptr) {
        return fail(Code::conflict, "there is a worker '" + config.id + "' already");
    }
    WorkerConfig worker{config.id, "unix:" + config.socket};
    worker.pool = config.pool;
    worker.classes = std::move(config.classes);
    worker.process = std::make_shared<Supervisor>(
        core_,
        std::move(config.command),
        SupervisorOptions{},
        [this, id = config.id] { changed(id); }
    );
    auto added = add(std::move(worker), engine_options_);
    update_catalogue();
    tell_all_of_engine(members_.back());
    return added;
}

Result<> Fleet::add(WorkerConfig config, const FleetOptions& options) {
    COMFYD_ON(core_);
    const std::string id = config.id;
    auto process = config.process;
    const Lane& lane = lanes_[added_++ % lanes_.size()];
    auto worker = std::make_shared<ComfyWorker>(
        std::move(config),
        ComfyWorkerParts{
            core_,
            lane.executor,
            lane.http,
            clock_,
            store_,
            pool_,
            classes_,
            node_costs_,
            options,
            [this, id] { changed(id); },
            [this, id] {
                update_catalogue();
                changed(id);
            },
            [this](const Requirement& requirement) { return is_left_to_engine(requirement); },
            [this](const std::string& pool) { return may_rest_one(pool); }
        }
    );
    members_.push_back({worker, std::move(process)});
    by_id_[id] = worker;
    if (started_) {
        start(members_.back());
    }
    changed(id);
    return {};
}

bool Fleet::is_left_to_engine(const Requirement& requirement) const {
    return options_.offload && std::ranges::any_of(members_, [&](const Member& member) {
               return member.process && !member.worker->is_draining() &&
                      member.worker->can_run(requirement);
           });
}

// At most half of a pool: where all fail, the fault is elsewhere.
bool Fleet::may_rest_one(const std::string& pool) const {
    std::size_t all = 0;
    std::size_t resting = 0;
    for (const Member& member : members_) {
        if (member.worker->pool() == pool) {
            all += 1;
            resting += member.worker->is_quarantined() ? 1 : 0;
        }
    }
    return 2 * (resting + 1) <= all;
}

// What others may run depends on whether there is an engine.
void Fleet::tell_all_of_engine(const Member& member) {
    if (member.process && options_.offload) {
        for (const Member& other : members_) {
            changed(other.worker->id());
        }
    }
}

void Fleet::start() {
    COMFYD_ON(core_);
    started_ = true;
    for (const Member& member : members_) {
        start(member);
    }
}

void Fleet::start(const Member& member) {
    if (member.process) {
        member.process->start(processes_);
    }
    member.worker->start();
}

Task<bool> Fleet::engines_are_up(Millis patience) {
    constexpr Millis kLook{5};
    const auto is_up = [](const Member& member) {
        return !member.process || member.worker->is_up();
    };
    const Deadline deadline = Deadline::in(patience);
    bool up = std::ranges::all_of(members_, is_up);
    while (!up && !deadline.has_passed()) {
        co_await sleep_for(kLook);
        up = std::ranges::all_of(members_, is_up);
    }
    co_return up;
}

std::uint64_t Fleet::engine_ends() const {
    std::uint64_t ends = ends_before_;
    for (const Member& member : members_) {
        ends += member.process ? member.process->ends() : 0;
    }
    return ends;
}

Task<> Fleet::stop() {
    COMFYD_ON(core_);
    started_ = false;
    const std::vector<Member> members = members_;
    for (const Member& member : members) {
        member.worker->cancel();
    }
    for (const Member& member : members) {
        co_await let_go(member);
    }
    processes_.cancel();
    while (processes_.size() > 0) {
        co_await processes_.join();
    }
}

// Ends the watching, and the process where it is ours.
Task<> Fleet::let_go(Member member) {
    member.worker->cancel();
    co_await member.worker->join();
    if (member.process) {
        co_await member.process->stop();
    }
}

Task<Result<>> Fleet::remove(std::string id, Millis patience) {
    COMFYD_ON(core_);
    Member* found = find_member(id);
    if (found == nullptr) {
        co_return fail(Code::not_found, "there is no worker '" + id + "'");
    }
    if (std::exchange(found->is_leaving, true)) {
        co_return fail(Code::conflict, "the worker '" + id + "' is being removed already");
    }
    const Member member = *found;
    member.worker->set_draining(true);
    tell_all_of_engine(member);
    auto finished = co_await finish_runs(member.worker, patience);
    if (!finished) {
        if (Member* still = find_member(id)) {
            still->is_leaving = false;
        }
        co_return finished;
    }
    member.worker->give_back();  // to what is on its way there it is closed
    co_await let_go(member);
    ends_before_ += member.process ? member.process->ends() : 0;
    std::erase_if(members_, [&member](const Member& other) {
        return other.worker == member.worker;
    });
    by_id_.erase(id);
    if (options_.left) {
        options_.left(id);
    }
    update_catalogue();
    changed(id);
    tell_all_of_engine(member);
    co_return Result<>();
}

Task<Result<>> Fleet::finish_runs(std::shared_ptr<ComfyWorker> worker, Millis patience) {
    using Ticks = std::chrono::steady_clock;
    const auto began = Ticks::now();
    bool is_given_back = false;
    while (!worker->is_idle()) {
        const auto left = patience - std::chrono::floor<Millis>(Ticks::now() - began);
        if (left <= Millis(0) && !is_given_back) {
            is_given_back = true;
            worker->give_back();
        }
        co_await runs_changed_.wait_for(is_given_back ? kLongWait : std::min(left, kLongWait));
        const bool stop = co_await is_cancelled();
        if (stop) {
            co_return fail(Code::cancelled, "the removal of a worker was stopped");
        }
    }
    co_return Result<>();
}

Result<> Fleet::drain(const std::string& id) {
    return set_draining(id, true);
}
Result<> Fleet::resume(const std::string& id) {
    return set_draining(id, false);
}

void Fleet::hear_ready(const std::string& id) {
    COMFYD_ON(core_);
    if (const Member* member = find_member(id)) {
        member->worker->hear_ready();
    }
}

Result<> Fleet::set_draining(const std::string& id, bool draining) {
    COMFYD_ON(core_);
    const Member* member = find_member(id);
    if (member == nullptr) {
        return fail(Code::not_found, "there is no worker '" + id + "'");
    }
    if (member->is_leaving) {
        return fail(Code::conflict, "the worker '" + id + "' is being removed");
    }
    member->worker->set_draining(draining);
    tell_all_of_engine(*member);
    return {};
}

bool Fleet::may_ask(const std::string& tenant) {
    const auto now = std::chrono::steady_clock::now();
    if (now - asking_since_ >= std::chrono::seconds(1)) {
        asking_since_ = now;
        asked_.clear();
    }
    return ++asked_[tenant] <= kQuestionsPerSecond;
}

Task<bool> Fleet::has_input(std::string tenant, std::string name) {
    if (!may_ask(tenant)) {
        co_return false;
    }
    const std::vector<Member> members = members_;
    bool found = false;  // lives in this frame until every task has ended
    TaskGroup questions(core_);
    for (const Member& member : members) {
        questions.spawn("has input", ask_for_input(member, name, found));
    }
    while (questions.size() > 0) {
        co_await questions.join();
    }
    co_return found;
}

Task<> Fleet::ask_for_input(const Member& member, std::string name, bool& found) {
    const bool has = co_await member.worker->has_input(std::move(name));
    found = found || has;
}

std::shared_ptr<const workflow::Catalogue> Fleet::catalogue() const {
    const Lock lock(catalogue_mutex_);
    return catalogue_;
}

Task<std::optional<workflow::PromptVerdict>> Fleet::judge(
    json::object prompt, std::vector<std::string> targets, Requirement requirement
) {
    std::shared_ptr<ComfyWorker> chosen;
    for (const Member& member : members_) {
        if (member.worker->can_judge() && member.worker->can_run(requirement) &&
            (!chosen || member.worker->load() < chosen->load())) {
            chosen = member.worker;
        }
    }
    if (!chosen) {
        co_return std::nullopt;
    }
    auto verdict = co_await chosen->judge(std::move(prompt), std::move(targets));
    co_return verdict;
}

std::vector<std::shared_ptr<jobs::Worker>> Fleet::workers() const {
    std::vector<std::shared_ptr<jobs::Worker>> all;
    all.reserve(members_.size());
    for (const Member& member : members_) {
        all.push_back(member.worker);
    }
    for (const auto& [id, worker] : coming_) {
        if (!by_id_.contains(id)) {
            all.push_back(worker);
        }
    }
    return all;
}

std::shared_ptr<jobs::Worker> Fleet::find(const std::string& id) const {
    if (const auto found = by_id_.find(id); found != by_id_.end()) {
        return found->second;
    }
    const auto coming = coming_.find(id);
    return coming == coming_.end() ? nullptr : coming->second;
}

std::vector<std::string> Fleet::hindrances(const std::string& pool) const {
    std::vector<std::string> all;
    for (const auto& [name, why] : hindrances_) {
        if (pool.empty() || pool == name) {
            all.push_back(why);
        }
    }
    return all;
}

void Fleet::set_coming(std::vector<jobs::WorkerInfo> coming) {
    COMFYD_ON(core_);
    auto before = std::exchange(coming_, {});
    for (jobs::WorkerInfo& info : coming) {
        const std::string id = info.id;
        if (auto known = before.extract(id)) {
            known.mapped()->tell(std::move(info));
            coming_.insert(std::move(known));
            continue;
        }
        const auto classes = remembered_.find(info.pool);
        coming_[id] = std::make_shared<ComingWorker>(
            std::move(info), classes == remembered_.end() ? nullptr : classes->second.classes
        );
        changed(id);
    }
    for (const auto& [id, worker] : before) {
        changed(id);
    }
}

void Fleet::meet_agent(const WorkerConfig& worker, std::uint64_t disk_free_bytes) {
    COMFYD_ON(core_);
    const auto coming = coming_.find(worker.id);
    if (coming == coming_.end()) {
        return;
    }
    const Lane& lane = lanes_.front();
    coming->second->meet(
        {lane.executor,
         lane.http,
         pool_,
         options_,
         clock_,
         worker.url,
         worker.token,
         disk_free_bytes}
    );
    changed(worker.id);
}

void Fleet::on_change(OnChange callback) {
    changes_->callbacks.push_back(std::move(callback));
}

// Posted, because a worker calls this in the middle of its own changes.
void Fleet::changed(const std::string& worker) {
    runs_changed_.notify();
    const bool is_posted = !changes_->workers.empty();
    changes_->workers.insert(worker);
    if (is_posted) {
        return;
    }
    boost::asio::post(core_, [changes = changes_] {
        const NowDoing doing("telling of changed workers");
        const auto workers = std::exchange(changes->workers, {});
        const auto callbacks = changes->callbacks;
        for (const auto& callback : callbacks) {
            callback(workers);
        }
    });
}

void Fleet::remember_pool(
    const std::string& pool,
    std::string software,
    std::shared_ptr<const workflow::NodeClasses> known,
    const Prospects& prospects
) {
    COMFYD_ON(core_);
    remembered_[pool] = {std::move(software), std::move(known)};
    std::erase_if(prospects_, [&pool](const auto& prospect) { return prospect.pool == pool; });
    prospects_.insert(prospects_.end(), prospects.begin(), prospects.end());
    update_catalogue();
}

// A pool that has no worker now, and is known to have had some, stands there under its own name.
std::vector<workflow::Catalogue::Entry> Fleet::catalogue_entries() {
    std::vector<workflow::Catalogue::Entry> entries;
    std::set<std::string> pools;
    for (const Member& member : members_) {
        auto classes = member.worker->classes();
        if (!classes) {
            continue;
        }
        const std::string& pool = member.worker->pool();
        pools.insert(pool);
        const std::string& software = member.worker->software();
        const auto found = remembered_.find(pool);
        if (found != remembered_.end() && found->second.software == software) {
            found->second.classes = classes;
        }
        const MachineFacts facts = member.worker->facts();
        entries.push_back(
            {.worker = member.worker->id(),
             .classes = std::move(classes),
             .pool = pool,
             .software = software,
             .gpu = std::string(facts.gpu),
             .region = std::string(facts.region),
             .gpu_memory_bytes = facts.gpu_memory_bytes,
             .fetches_models = member.worker->fetches_models()}
        );
    }
    for (const auto& [pool, known] : remembered_) {
        if (known.classes && !pools.contains(pool)) {
            entries.push_back(
                {.worker = "pool " + pool,
                 .classes = known.classes,
                 .pool = pool,
                 .software = known.software,
                 .is_memory = true,
                 .fetches_models = true}
            );
        }
    }
    return entries;
}

void Fleet::update_catalogue() {
    const NowDoing doing("joining the workers' classes");
    auto entries = catalogue_entries();
    const auto before = catalogue();
    if (before->workers() == entries && before->prospects() == prospects_) {
        return;
    }
    auto made = std::make_shared<const workflow::Catalogue>(std::move(entries), prospects_);
    const Lock lock(catalogue_mutex_);
    catalogue_ = std::move(made);
}

Fleet::Member* Fleet::find_member(const std::string& id) {
    for (Member& member : members_) {
        if (member.worker->id() == id) {
            return &member;
        }
    }
    return nullptr;
}

}  // namespace comfyd::fleet
