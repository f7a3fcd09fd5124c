#include "scheduler/queue.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace comfyd::scheduler {
namespace {

class FakeWorker final : public Candidate {
public:
    FakeWorker(std::set<std::string> can, double load) : can_(std::move(can)), load_(load) {}
    bool can_run(const std::string& requirement) const override {
        return can_.contains(requirement);
    }
    double load() const override { return load_; }

private:
    std::set<std::string> can_;
    double load_;
};

JobId next_id() {
    return JobId::make(SystemClock().now());
}

TEST(ReadyQueue, PriorityThenAge) {
    ReadyQueue queue;
    const JobId old_low = next_id();
    const JobId first = next_id();
    const JobId second = next_id();
    queue.add(second, 5, "A");
    queue.add(old_low, 1, "A");
    queue.add(first, 5, "A");
    const FakeWorker worker({"A"}, 0);
    std::vector<JobId> order;
    while (const auto placed = queue.place({&worker})) {
        order.push_back(placed->job);
        EXPECT_EQ(queue.position(placed->job), 1);
        queue.remove(placed->job);
    }
    EXPECT_EQ(order, (std::vector<JobId>{first, second, old_low}));
}

TEST(ReadyQueue, AJobThatNobodyCanRunDoesNotBlockOthers) {
    ReadyQueue queue;
    const JobId stuck = next_id();
    const JobId possible = next_id();
    queue.add(stuck, 10, "B");
    queue.add(possible, 1, "A");
    const FakeWorker worker({"A"}, 0);
    const auto placed = queue.place({&worker});
    ASSERT_TRUE(placed);
    EXPECT_EQ(placed->job, possible);
    EXPECT_EQ(queue.position(possible), 2);
}

TEST(ReadyQueue, LeastLoadedCapableWorkerIsTaken) {
    ReadyQueue queue;
    queue.add(next_id(), 5, "A");
    const FakeWorker busy({"A"}, 3);
    const FakeWorker incapable({"B"}, 0);
    const FakeWorker idle({"A"}, 1);
    EXPECT_EQ(queue.place({&busy, &incapable, &idle})->worker, 2U);
}

TEST(ReadyQueue, PositionsAgreeWithASortedList) {
    std::mt19937 random(7);
    ReadyQueue queue;
    std::vector<std::pair<int, JobId>> model;
    for (int i = 0; i < 500; ++i) {
        const JobId id = next_id();
        const int priority = 1 + static_cast<int>(random() % 10);
        queue.add(id, priority, std::string(1, static_cast<char>('A' + random() % 5)));
        model.emplace_back(-priority, id);
        if (random() % 3 == 0) {
            const auto victim =
                model.begin() + static_cast<std::ptrdiff_t>(random() % model.size());
            EXPECT_TRUE(queue.remove(victim->second));
            EXPECT_FALSE(queue.remove(victim->second));
            model.erase(victim);
        }
    }
    std::sort(model.begin(), model.end());
    EXPECT_EQ(queue.size(), model.size());
    for (std::size_t i = 0; i < model.size(); ++i) {
        EXPECT_EQ(queue.position(model[i].second), static_cast<int>(i) + 1);
    }
}

}  // namespace
}  // namespace comfyd::scheduler
