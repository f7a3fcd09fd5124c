// Random sequences of operations, compared with a model in memory after each step.
#include <algorithm>
#include <map>
#include <random>

#include "ledger/test_support.hpp"

namespace comfyd::ledger::test {
namespace {

using jobs::State;

struct ModelDelivery {
    std::uint64_t sequence = 0;
    Time next_attempt_at;
    int attempts = 0;
    enum { pending, delivered, dead } state = pending;
};
struct ModelJob {
    jobs::Job job;
    jobs::Spec spec;
    std::vector<jobs::Event> events;
    std::vector<ModelDelivery> deliveries;
};
struct ModelKey {
    JobId job;
    std::string request_hash;
    Time created_at;
};

class ModelTest : public Contract {
protected:
    int random(int below) { return static_cast<int>(random_() % static_cast<unsigned>(below)); }
    std::string random_tenant() { return std::string(1, static_cast<char>('a' + random(3))); }
    ModelJob* random_job() {
        if (model_.empty()) {
            return nullptr;
        }
        auto entry = model_.begin();
        std::advance(entry, random(static_cast<int>(model_.size())));
        return &entry->second;
    }

    void accept_random() {
        auto spec = simple_spec(random_tenant());
        spec.priority = 1 + random(10);
        spec.workflow_id = random(3) == 0 ? "w" : "";
        spec.metadata = random(2) == 0 ? json::object{{"n", random(1000)}} : json::object{};
        spec.idempotency_key = random(3) == 0 ? "key" + std::to_string(random(4)) : "";
        spec.request_hash = "hash" + std::to_string(random(100));
        if (random(2) == 0) {
            spec.webhook.emplace();
            spec.webhook->url = "https://example.com/";
            if (random(2) == 0) {
                spec.webhook->events = {
                    "execution.queued", "execution.started", "execution.cancelled"
                };
            }
        }
        const auto made = make_new(spec, clock_.now());
        const auto accepted = await_value(ledger().accept(made));
        auto& key = keys_[{spec.tenant, spec.idempotency_key}];
        const bool is_held = !spec.idempotency_key.empty() && key.job != JobId{} &&
                             key.created_at + std::chrono::hours(24) > clock_.now();
        ASSERT_EQ(accepted.created, !is_held);
        if (is_held) {
            ASSERT_EQ(describe(accepted.existing.value()), describe(model_.at(key.job).job));
            ASSERT_EQ(accepted.existing_request_hash, key.request_hash);
            return;
        }
        key = {made.change.job.id, spec.request_hash, clock_.now()};
        ModelJob entry{made.change.job, spec, {}, {}};
        note(entry, made.change);
        model_.emplace(made.change.job.id, std::move(entry));
    }

    void note(ModelJob& entry, const jobs::Change& change) {
        entry.job = change.job;
        entry.events.push_back(change.event);
        if (entry.spec.webhook &&
            entry.spec.webhook->wants(webhook_event_name(change.event.type))) {
            entry.deliveries.push_back({change.event.sequence, change.event.at});
        }
    }

    Result<jobs::Change> random_change(const jobs::Job& job) {
        const auto sequence = job.sequence + 1 + static_cast<std::uint64_t>(random(5));
        const Time now = clock_.now();
        jobs::Failure failure;
        failure.code = Code::worker_lost;
        failure.message = "lost";
        switch (random(9)) {
            case 0:
            case 1:
                return jobs::start(job, "worker-" + std::to_string(random(3)), sequence, now);
            case 2:
                return jobs::complete(job, {full_output(now)}, {{"9", random(9)}}, sequence, now);
            case 3:
                return jobs::fail_job(job, failure, sequence, now);
            case 4:
                return jobs::retry_later(job, failure, now + Millis(1'000), sequence, now);
            case 5:
                return jobs::requeue(job, sequence, now);
            case 6:
                return jobs::request_cancel(job, sequence, now);
            case 7:
                return jobs::expire(job, sequence, now);
            default:
                return jobs::revive(job, sequence, now);
        }
    }

    void change_random() {
        ModelJob* entry = random_job();
        if (entry == nullptr) {
            return;
        }
        auto change = random_change(entry->job);
        if (!change) {
            return;
        }
        if (random(5) == 0) {
            change->job.revision += random(2) == 0 ? 1 : -1;
            ASSERT_EQ(await_code(ledger().commit(*change)), Code::conflict);
            return;
        }
        await_value(ledger().commit(*change));
        note(*entry, *change);
    }

    std::vector<ModelDelivery*> heads() {
        std::vector<ModelDelivery*> found;
        for (auto& [id, entry] : model_) {
            for (auto& delivery : entry.deliveries) {
                if (delivery.state == ModelDelivery::pending) {
                    found.push_back(&delivery);
                    break;
                }
            }
        }
        return found;
    }

    void deliver_random() {
        if (!GetParam().is_whole) {
            return;
        }
        const auto found = due();
        std::size_t expected = 0;
        for (const auto* head : heads()) {
            expected += head->next_attempt_at <= clock_.now() ? 1 : 0;
        }
        ASSERT_EQ(found.size(), expected);
        for (std::size_t i = 0; i < found.size() && i < 3; ++i) {
            auto& deliveries = model_.at(found[i].job).deliveries;
            const auto head =
                std::find_if(deliveries.begin(), deliveries.end(), [](const auto& delivery) {
                    return delivery.state == ModelDelivery::pending;
                });
            ASSERT_EQ(found[i].sequence, head->sequence);
            ASSERT_EQ(found[i].attempts, head->attempts);
            head->attempts += 1;
            const int what = random(3);
            if (what == 0) {
                head->next_attempt_at = clock_.now() + Millis(random(100'000));
                await_value(outbox().retry_at(found[i], head->next_attempt_at, "error"));
            } else if (what == 1) {
                head->state = ModelDelivery::dead;
                await_value(outbox().give_up(found[i], clock_.now(), "error"));
            } else {
                head->state = ModelDelivery::delivered;
                await_value(outbox().delivered(found[i], clock_.now()));
            }
        }
    }

    void check_one() {
        const ModelJob* entry = random_job();
        if (entry == nullptr) {
            return;
        }
        const auto& id = entry->job.id;
        ASSERT_EQ(describe(await_value(ledger().find(id)).value()), describe(entry->job));
        ASSERT_EQ(describe(await_value(ledger().find_spec(id)).value()), describe(entry->spec));
        const auto events = await_value(ledger().events(id, 0));
        ASSERT_EQ(events.size(), entry->events.size());
        for (std::size_t i = 0; i < events.size(); ++i) {
            ASSERT_EQ(describe(events[i]), describe(entry->events[i]));
        }
        const auto status = await_value(ledger().webhook_status(id));
        const auto count = [&](auto state) {
            return std::count_if(
                entry->deliveries.begin(),
                entry->deliveries.end(),
                [&](const auto& one) { return one.state == state; }
            );
        };
        const auto all = std::ssize(entry->deliveries);
        ASSERT_EQ(status.any, all > 0);
        ASSERT_EQ(status.delivered, all > 0 && count(ModelDelivery::delivered) == all);
        ASSERT_EQ(status.dead, count(ModelDelivery::dead) > 0);
    }

    void check_list() {
        jobs::ListQuery query;
        if (random(2) == 0) {
            query.tenant = random_tenant();
        }
        for (int i = random(4); i > 0; --i) {
            query.states.push_back(static_cast<State>(random(7)));
        }
        if (random(3) == 0) {
            query.workflow_id = "w";
        }
        query.limit = 1 + random(20);
        std::vector<JobId> expected;
        for (const auto& [id, entry] : model_) {
            const auto& job = entry.job;
            const bool in_states = query.states.empty() ||
                                   std::find(query.states.begin(), query.states.end(), job.state) !=
                                       query.states.end();
            if (in_states && (!query.tenant || job.tenant == *query.tenant) &&
                (query.workflow_id.empty() || job.workflow_id == query.workflow_id)) {
                expected.push_back(id);
            }
        }
        std::reverse(expected.begin(), expected.end());
        std::vector<JobId> found;
        do {
            const auto page = await_value(ledger().list(query));
            ASSERT_LE(page.jobs.size(), static_cast<std::size_t>(query.limit));
            for (const auto& job : page.jobs) {
                found.push_back(job.id);
            }
            query.cursor = page.next_cursor;
        } while (query.cursor);
        ASSERT_EQ(found, expected);
    }

    void check_totals() {
        jobs::StateCounts expected;
        std::vector<JobId> open;
        for (const auto& [id, entry] : model_) {
            expected.by_state[static_cast<int>(entry.job.state)] += 1;
            if (!is_terminal(entry.job.state)) {
                open.push_back(id);
            }
        }
        const auto counts = await_value(ledger().counts(std::nullopt));
        for (int state = 0; state < 7; ++state) {
            ASSERT_EQ(counts.by_state[state], expected.by_state[state]) << state;
        }
        std::vector<JobId> found;
        for (const auto& unfinished : await_value(ledger().unfinished(std::nullopt, 10'000))) {
            found.push_back(unfinished.job.id);
        }
        ASSERT_EQ(found, open);
        std::optional<Time> soonest;
        for (const auto* head : heads()) {
            soonest = std::min(soonest.value_or(head->next_attempt_at), head->next_attempt_at);
        }
        if (GetParam().is_whole) {
            ASSERT_EQ(await_value(outbox().next_due()), soonest);
        }
    }

    void step() {
        switch (random(20)) {
            case 0:
                clock_.advance(Millis(random(100'000)));
                break;
            case 1:
                clock_.advance(std::chrono::hours(random(13)));
                break;
            case 2:
                if (random(20) == 0) {
                    storage_->reopen();
                }
                break;
            case 3:
            case 4:
            case 5:
                accept_random();
                break;
            case 6:
            case 7:
                deliver_random();
                break;
            case 8:
                check_list();
                break;
            case 9:
                check_totals();
                break;
            case 10:
            case 11:
                check_one();
                break;
            default:
                change_random();
                break;
        }
    }

    std::mt19937 random_;
    std::map<JobId, ModelJob> model_;
    std::map<std::pair<std::string, std::string>, ModelKey> keys_;
};
INSTANTIATE_TEST_SUITE_P(Ledger, ModelTest, testing::ValuesIn(job_backends()), backend_name);

TEST_P(ModelTest, BehavesAsTheModelDoes) {
    for (const unsigned seed : {1U, 2U}) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        random_.seed(seed);
        model_.clear();
        keys_.clear();
        storage_ = GetParam().make(clock_);
        for (int i = 0; i < 800; ++i) {
            SCOPED_TRACE("step " + std::to_string(i));
            step();
            if (HasFatalFailure()) {
                return;
            }
        }
        EXPECT_GT(model_.size(), 50U);
    }
}

}  // namespace
}  // namespace comfyd::ledger::test
