// Batches under virtual time: the real Keeper and its Tenders over the real service, a store whose
// answers come late, machines that fail, processes that die in the middle, and clients who pause,
// go on and cancel. Whatever happens, each item is one job and ends once, and the end is told.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>

#include <boost/asio/co_spawn.hpp>

#include "assets/memory_catalogue.hpp"
#include "bulk/keeper.hpp"
#include "ledger/memory_bulks.hpp"
#include "simulation/process.hpp"
#include "simulation/seeds.hpp"
#include "simulation/world.hpp"

namespace comfyd::simulation {
namespace {

constexpr std::uint64_t kSchedules = 1'000;

std::shared_ptr<const workflow::Catalogue> catalogue() {
    const auto classes = workflow::NodeClasses::from_object_info(*json::parse(
        R"({"A": {"input": {"required": {"n": ["INT", {"default": 0}]}}, "output": [],
                  "output_node": true}})"
    ));
    return std::make_shared<const workflow::Catalogue>(
        std::vector<workflow::Catalogue::Entry>{{"w0", *classes}}
    );
}

// What is written stays; whoever wrote it may be dead before he hears of it.
class LateStore final : public jobs::BulkStore {
public:
    LateStore(ledger::MemoryBulks& bulks, Chance& chance) : bulks_(bulks), chance_(chance) {}

    Task<Result<jobs::BulkAdded>> add_bulk(jobs::Bulk bulk, std::string plan) override {
        return late(bulks_.add_bulk(std::move(bulk), std::move(plan)));
    }
    Task<Result<>> commit_bulk(jobs::BulkChange change) override {
        return late(bulks_.commit_bulk(std::move(change)));
    }
    Task<Result<>> remove_bulk(jobs::BulkId id) override { return late(bulks_.remove_bulk(id)); }
    Task<Result<std::optional<jobs::Bulk>>> find_bulk(jobs::BulkId id) override {
        return late(bulks_.find_bulk(id));
    }
    Task<Result<std::optional<std::string>>> find_bulk_plan(jobs::BulkId id) override {
        return late(bulks_.find_bulk_plan(id));
    }
    Task<Result<jobs::BulkPage>> list_bulks(
        std::string tenant, std::optional<jobs::BulkId> before, int limit
    ) override {
        return late(bulks_.list_bulks(std::move(tenant), before, limit));
    }
    Task<Result<std::vector<jobs::BulkItem>>> bulk_items(jobs::BulkItemQuery query) override {
        return late(bulks_.bulk_items(query));
    }
    Task<Result<std::vector<jobs::Bulk>>> open_bulks(int limit) override {
        return late(bulks_.open_bulks(limit));
    }
    Task<Result<std::vector<jobs::BulkId>>> ended_bulks(Time before, int limit) override {
        return late(bulks_.ended_bulks(before, limit));
    }

private:
    template <class T>
    Task<Result<T>> late(Task<Result<T>> work) {
        if (chance_.one_in(12)) {
            co_return fail(Code::storage_unavailable, "not now");
        }
        auto result = co_await std::move(work);
        if (chance_.one_in(2)) {
            const bool goes_on = co_await sleep_for(chance_.millis(1, 40));
            if (!goes_on) {
                co_return fail(Code::cancelled, "nobody waits for it any more");
            }
        }
        co_return result;
    }

    ledger::MemoryBulks& bulks_;
    Chance& chance_;
};

class BatchSchedule {
public:
    explicit BatchSchedule(std::uint64_t seed) : world_(seed, false) {
        options_.tender.in_flight_max = 1 + chance().below(6);
        make_bulk(1 + chance().below(25));
        start();
    }
    ~BatchSchedule() { die(); }

    // What is wrong; empty: nothing.
    std::string run() {
        for (int step = 20 + chance().below(40); step > 0 && wrong_.empty(); --step) {
            act();
            pass(chance().millis(1, 3'000));
            check();
        }
        finish();
        return wrong_;
    }

private:
    Chance& chance() { return world_.chance; }

    template <class T>
    T now(Task<Result<T>> task) {
        std::optional<Result<T>> done;
        boost::asio::co_spawn(
            world_.io,
            std::move(task),
            [&done](std::exception_ptr, Result<T> result) { done.emplace(std::move(result)); }
        );
        while (!done) {
            world_.io.poll_one();
        }
        if constexpr (!std::is_void_v<T>) {
            return std::move(**done);
        }
    }

    void make_bulk(int items) {
        jobs::Bulk bulk;
        bulk.id = id_ = jobs::BulkId::make(world_.time.now());
        bulk.tenant = "a";
        bulk.created_at = world_.time.now();
        bulk.has_webhook = true;
        bulk::Plan plan;
        plan.spec.tenant = "a";
        plan.spec.dialect = "batches";
        plan.workflow =
            *json::parse_object(R"({"prompt": {"1": {"class_type": "A", "inputs": {"n": 1}}}})");
        plan.webhook.emplace();
        plan.webhook->url = "https://own.example/";
        now(bulks_.add_bulk(bulk, encode_plan(plan)));
        std::vector<jobs::BulkItem> added;
        for (int i = 0; i < items; ++i) {
            jobs::BulkItem item;
            item.index = i;
            item.params = R"({"1.n": )" + std::to_string(i) + "}";
            added.push_back(std::move(item));
        }
        change([&](const jobs::Bulk& now_) { return add_items(now_, added); });
        change([&](const jobs::Bulk& now_) { return finish_loading(now_, world_.time.now()); });
    }

    // As a client's request does it, on whichever node.
    template <class Make>
    void change(const Make& make) {
        if (auto made = make(bulk())) {
            now(bulks_.commit_bulk(std::move(*made)));
            for (const auto& keeper : keepers_) {
                keeper->wake(id_);
            }
        }
    }
    jobs::Bulk bulk() { return *now(bulks_.find_bulk(id_)); }
    std::vector<jobs::BulkItem> items() {
        return now(bulks_.bulk_items({.bulk = id_, .limit = jobs::kBulkPageMax}));
    }

    void start() {
        process_ = std::make_unique<Process>(world_);
        pass(Millis(0));
        desk_ = std::unique_ptr<admission::Desk>(new admission::Desk{
            process_->service(), assets_, world_.time, [this] { return classes_; }
        });
        // Two for a while: one does not know yet that it is not in charge any more.
        const int count = chance().one_in(3) ? 2 : 1;
        for (int i = 0; i < count; ++i) {
            bulk::TenderTools tools{
                world_.io.get_executor(),
                store_,
                *desk_,
                {[this](notify::Target, notify::Announcement told) {
                     return announce(std::move(told));
                 },
                 [](const notify::Target&) { return notify::RetryWish(); }}
            };
            keepers_.push_back(std::make_unique<bulk::Keeper>(std::move(tools), options_));
            keepers_.back()->start();
        }
    }

    Task<notify::Outcome> announce(notify::Announcement told) {
        if (!is_healed_ && chance().one_in(2)) {
            co_return notify::Outcome{.kind = notify::Outcome::Kind::retry, .error = "no answer"};
        }
        told_.insert(told.event);
        co_return notify::Outcome{.kind = notify::Outcome::Kind::delivered};
    }

    // Nothing that it begins reaches the outside any more.
    void die() {
        if (!process_) {
            return;
        }
        process_->die();
        for (const auto& keeper : keepers_) {
            bool has_ended = false;
            boost::asio::co_spawn(world_.io, keeper->stop(), [&has_ended](std::exception_ptr) {
                has_ended = true;
            });
            for (int i = 0; i < 10'000 && !has_ended; ++i) {
                pass(Millis(10));
            }
            note(has_ended, "a keeper does not end");
        }
        keepers_.clear();
        for (int i = 0; i < 10'000 && !process_->has_ended(); ++i) {
            pass(Millis(10));
        }
        note(process_->has_ended(), "a process does not end");
        process_.reset();
        desk_.reset();
    }

    void act() {
        switch (chance().below(9)) {
            case 0:
                die();
                start();
                break;
            case 1:
                change([](const jobs::Bulk& now_) { return pause(now_); });
                break;
            case 2:
            case 3:
                change([](const jobs::Bulk& now_) { return resume(now_); });
                break;
            case 4:
                if (chance().one_in(6)) {
                    world_.rules.on_batch_cancelled();
                    change([this](const jobs::Bulk& now_) {
                        return cancel(now_, world_.time.now());
                    });
                }
                break;
            case 5: {
                Machine& machine = chance().pick(world_.machines.all);
                machine.is_reachable = !machine.is_reachable;
                process_->fleet().tell(machine.id);
                break;
            }
            case 6:
                world_.trouble.failures = 1 + chance().below(3);
                break;
            default:
                break;
        }
    }

    void pass(Millis span) {
        const Time then = world_.time.now() + span;
        settle();
        while (world_.time.next() && *world_.time.next() <= then) {
            world_.time.advance_to(*world_.time.next());
            settle();
        }
        world_.time.advance_to(then);
        settle();
    }
    void settle() {
        world_.io.poll();
        while (process_ && !process_->storage().is_idle()) {
            process_->storage().let_one_through();
            world_.io.poll();
        }
    }

    void note(bool holds, const std::string& rule) {
        if (!holds && wrong_.empty()) {
            wrong_ = rule;
        }
    }

    // What must hold at any time.
    void check() {
        const jobs::Bulk bulk = this->bulk();
        jobs::ItemCounts counts;
        counts.total = bulk.counts.total;
        std::set<JobId> used;
        for (const jobs::BulkItem& item : items()) {
            counts.move(jobs::ItemState::waiting, item.state);
            note(
                item.state != jobs::ItemState::running || item.job.has_value(),
                "an item runs without a job"
            );
            note(!item.job || used.insert(*item.job).second, "two items have the same job");
            if (item.state == jobs::ItemState::completed) {
                const auto job = world_.stored.entries().find(*item.job);
                note(
                    job != world_.stored.entries().end() &&
                        job->second.job.state == jobs::State::completed,
                    "an item is completed and its job is not"
                );
            }
        }
        note(counts == bulk.counts, "the counts are not those of the items");
        note(bulk.counts.running <= options_.tender.in_flight_max, "more is under way than may be");
        // An item whose turn was taken back was never submitted, so each has one job at most.
        std::map<std::int64_t, int> jobs_of;
        for (const auto& [id, entry] : world_.stored.entries()) {
            const json::value* index = entry.job.dialect_data.if_contains("batch_index");
            if (index != nullptr) {
                note(++jobs_of[index->to_number<std::int64_t>()] == 1, "an item has two jobs");
            }
        }
        note(told_.size() <= 1, "two different ends were told");
        if (const auto broken = world_.rules.broken()) {
            note(false, *broken);
        }
    }

    void finish() {
        is_healed_ = true;
        world_.trouble = {};
        world_.machines.heal();
        if (process_->is_up()) {
            process_->fleet().tell_all();
        } else {  // it could not read what is stored, and was started in vain
            die();
            start();
        }
        change([](const jobs::Bulk& now_) { return resume(now_); });
        for (int i = 0; i < 2'000 && wrong_.empty() && bulk().is_open(); ++i) {
            pass(Millis(10'000));
            check();
        }
        const jobs::Bulk bulk = this->bulk();
        note(has_ended(bulk.state), "it does not end");
        note(!bulk.news, "its end is not told");
        note(bulk.counts.waiting() == 0 && bulk.counts.running == 0, "an item has not ended");
        note(
            told_ == std::set<std::string>{"batch." + std::string(to_string(bulk.state))},
            "another end was told"
        );
    }

    World world_;
    ledger::MemoryBulks bulks_;
    LateStore store_{bulks_, world_.chance};
    assets::test::MemoryCatalogue records_;
    Pool pool_{1};
    assets::Store assets_{assets::StoreOptions{"/nonexistent"}, records_, world_.time, pool_};
    std::shared_ptr<const workflow::Catalogue> classes_ = catalogue();
    bulk::KeeperOptions options_;
    jobs::BulkId id_;
    std::unique_ptr<Process> process_;
    std::unique_ptr<admission::Desk> desk_;
    std::vector<std::unique_ptr<bulk::Keeper>> keepers_;
    std::set<std::string> told_;
    std::string wrong_;
    bool is_healed_ = false;
};

TEST(Batches, EverySeedKeepsTheRules) {
    const auto only = number_from("COMFYD_SIMULATE_SEED", 0);
    const auto first = only == 0 ? number_from("COMFYD_SIMULATE_FROM", 1) : only;
    const auto count = only == 0 ? kSchedules : 1;
    for (std::uint64_t seed = first; seed < first + count; ++seed) {
        BatchSchedule schedule(seed);
        EXPECT_EQ(schedule.run(), "") << "Again: COMFYD_SIMULATE_SEED=" << seed
                                      << " simulation_test --gtest_filter=Batches.*";
    }
}

}  // namespace
}  // namespace comfyd::simulation
