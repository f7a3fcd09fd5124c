// What those hear who subscribe at the service, to one tenant or to all.
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>

#include "events/local_hub.hpp"
#include "simulation/worker.hpp"
#include "simulation/world.hpp"

namespace comfyd::simulation {
namespace {

using events::Arrived;
using events::Changed;
using How = events::Arrived::How;

class Subscriptions : public testing::Test {
protected:
    Subscriptions() { world.machines.heal(); }
    ~Subscriptions() override { stop(); }

    void stop() {
        if (!std::exchange(is_stopped, true)) {
            wait(service.stop(Millis(0)));
        }
    }
    void recover() { wait(service.lead("main", {world.stored, fleet})); }
    std::shared_ptr<events::Feed> subscribe(std::optional<std::string> tenant = std::nullopt) {
        events::FeedOptions options;
        options.tenant = std::move(tenant);
        return service.subscribe(world.io.get_executor(), std::move(options));
    }
    JobId submit(const std::string& tenant = "a", const std::string& requirement = "A") {
        auto submitted = wait(service.submit(spec(tenant, requirement)));
        return submitted->view.job.id;
    }
    jobs::Spec spec(const std::string& tenant, const std::string& requirement = "A") {
        jobs::Spec spec;
        spec.id = JobId::make(world.time.now());
        spec.tenant = tenant;
        spec.requirement = Requirement::decode(requirement);
        return spec;
    }
    void pass_time() {
        for (int i = 0; i < 3; ++i) {
            world.time.advance_to(world.time.now() + Millis(10'000));
            world.io.poll();
        }
    }
    template <class T>
    T wait(Task<T> task) {
        std::optional<T> result;
        boost::asio::co_spawn(world.io, std::move(task), [&](std::exception_ptr, T value) {
            result = std::move(value);
        });
        world.io.poll();
        EXPECT_TRUE(result);
        return std::move(*result);
    }
    void wait(Task<> task) {
        boost::asio::co_spawn(world.io, std::move(task), [](std::exception_ptr) {});
        world.io.poll();
    }

    World world{1, false};
    Fleet fleet{world.machines, world.io.get_executor()};
    events::LocalHub hub{world.io.get_executor()};
    jobs::Service service{world.io.get_executor(), world.time, world.stored, hub, {}};
    bool is_stopped = false;
};

TEST_F(Subscriptions, OneMadeBeforeTheRecoveryHearsOfEveryJobThatIsReadBack) {
    std::vector<JobId> ids;
    for (const char* tenant : {"a", "a", "b"}) {
        const auto made = spec(tenant, "nobody has it");
        const auto change = jobs::make_job(*made.id, made, world.time.now());
        ASSERT_TRUE(wait(world.stored.accept({change, made})));
        ids.push_back(*made.id);
    }
    const auto feed = subscribe();
    recover();
    const auto heard = feed->take().notices;
    ASSERT_EQ(heard.size(), 3U);
    std::map<JobId, std::size_t> unfinished;
    for (const auto& notice : heard) {
        const auto& arrived = std::get<Arrived>(notice);
        EXPECT_EQ(arrived.how, How::restored);
        unfinished[arrived.job->id] = arrived.unfinished;
    }
    EXPECT_EQ(unfinished[ids[0]] + unfinished[ids[1]], 3U);
    EXPECT_EQ(unfinished[ids[2]], 1U);
}

TEST_F(Subscriptions, AJobIsHeardOfFromItsAcceptanceToItsEnd) {
    const auto feed = subscribe();
    recover();
    const JobId id = submit();
    pass_time();
    const auto heard = feed->take().notices;
    ASSERT_EQ(heard.size(), 3U);
    EXPECT_EQ(std::get<Arrived>(heard[0]).how, How::accepted);
    EXPECT_EQ(std::get<Arrived>(heard[0]).unfinished, 1U);
    const auto& started = std::get<Changed>(heard[1]);
    EXPECT_EQ(started.event->type, jobs::EventType::started);
    EXPECT_EQ(started.job->state, jobs::State::running);
    const auto& completed = std::get<Changed>(heard[2]);
    EXPECT_EQ(completed.job->id, id);
    EXPECT_EQ(completed.event->type, jobs::EventType::completed);
    EXPECT_EQ(completed.unfinished, 0U);
    EXPECT_GT(completed.event->sequence, started.event->sequence);
    EXPECT_GT(completed.job->revision, started.job->revision);
}

TEST_F(Subscriptions, OneToATenantHearsOfNoOther) {
    const auto feed = subscribe("a");
    recover();
    submit("b");
    pass_time();
    EXPECT_TRUE(feed->take().notices.empty());
    submit("a");
    pass_time();
    EXPECT_EQ(feed->take().notices.size(), 3U);
}

TEST_F(Subscriptions, AJobThatItsOwnerBringsBackArrivesAgain) {
    recover();
    const JobId id = submit("a", "nobody has it");
    ASSERT_TRUE(wait(service.cancel("a", id)));
    const auto feed = subscribe();
    ASSERT_TRUE(wait(service.retry("a", id)));
    const auto heard = feed->take().notices;
    ASSERT_EQ(heard.size(), 2U);
    EXPECT_EQ(std::get<Changed>(heard[0]).event->type, jobs::EventType::queued);
    EXPECT_EQ(std::get<Arrived>(heard[1]).how, How::retried);
    EXPECT_EQ(std::get<Arrived>(heard[1]).unfinished, 1U);
}

TEST_F(Subscriptions, EndWithTheService) {
    const auto feed = subscribe();
    recover();
    submit("a", "nobody has it");
    stop();
    EXPECT_EQ(wait(feed->next())->notices.size(), 1U);
    EXPECT_EQ(wait(feed->next()).error().code, Code::shutting_down);
    EXPECT_EQ(wait(subscribe()->next()).error().code, Code::shutting_down);
}

TEST_F(Subscriptions, TheCountOfATenantsUnfinishedJobsHasAllThatWasAnswered) {
    recover();
    for (std::size_t i = 1; i <= 3; ++i) {
        submit("a", "nobody has it");
        EXPECT_EQ(wait(service.unfinished("a")), i);
    }
    submit("b", "nobody has it");
    EXPECT_EQ(wait(service.unfinished("a")), 3U);
    EXPECT_EQ(wait(service.unfinished("nobody")), 0U);
}

TEST_F(Subscriptions, AnOutputIsReadByTheJobsTenantAndWhileItRuns) {
    recover();
    const JobId id = submit();
    const auto read = [&](const char* tenant) {
        return wait(service.read_output(tenant, id, {"a.png", "", "output"}, 1'000)).error();
    };
    EXPECT_EQ(read("b").message, "no job has the id " + id.to_string());
    EXPECT_EQ(read("a").message, "this worker does not show its files");
    pass_time();
    EXPECT_EQ(read("a").code, Code::conflict);
}

}  // namespace
}  // namespace comfyd::simulation
