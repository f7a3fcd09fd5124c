// Schedules that once went wrong, written down one by one.
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>

#include "jobs/cause.hpp"
#include "simulation/process.hpp"
#include "simulation/world.hpp"

namespace comfyd::simulation {
namespace {

class Named : public testing::Test {
protected:
    Named() { world.machines.heal(); }
    ~Named() override {
        process->die();
        world.io.poll();
    }

    void start() {
        process = std::make_unique<Process>(world);
        go_on();
    }
    void go_on() {
        world.io.poll();
        while (!process->storage().is_idle()) {
            process->storage().let_one_through();
            world.io.poll();
        }
    }
    template <class T>
    void store(Task<Result<T>> write) {
        bool is_done = false;
        boost::asio::co_spawn(
            world.io,
            std::move(write),
            [&is_done](std::exception_ptr, const Result<T>& done) { is_done = done.has_value(); }
        );
        world.io.poll();
        ASSERT_TRUE(is_done);
    }
    jobs::Job accept(const jobs::Spec& spec) {
        auto made = jobs::make_job(JobId::make(world.time.now()), spec, world.time.now());
        store(world.stored.accept({made, spec}));
        return made.job;
    }
    const jobs::Job& stored(const JobId& id) { return world.stored.entries().at(id).job; }

    World world{1, false};
    std::unique_ptr<Process> process;
};

TEST_F(Named, AJobWhoseDeadlinePassedWhileComfydWasDownIsNotTriedAgain) {
    const Time now = world.time.now();
    jobs::Spec spec;
    spec.requirement = Requirement::decode("A");
    spec.deadline = now + Millis(5'000);
    const auto started = jobs::start(accept(spec), "w0", 2, now);
    store(world.stored.commit(*started));
    jobs::Failure lost;
    lost.code = Code::worker_lost;
    const auto waits = jobs::retry_later(started->job, lost, now + Millis(1'000), 3, now);
    store(world.stored.commit(*waits));
    world.time.advance_to(now + Millis(60'000));
    start();
    EXPECT_EQ(stored(waits->job.id).state, jobs::State::expired);
    EXPECT_EQ(stored(waits->job.id).attempt, 1);
}

TEST_F(Named, ACancelThatMeetsOtherWritersIsDoneAllTheSame) {
    jobs::Spec spec;
    spec.requirement = Requirement::decode("nobody has it");
    const JobId id = accept(spec).id;
    start();
    world.trouble.conflicts = 5;
    process->cancel(id, false);
    go_on();
    EXPECT_EQ(stored(id).state, jobs::State::cancelled);
    EXPECT_FALSE(world.rules.broken()) << *world.rules.broken();
}

TEST_F(Named, TheEndOfAnAttemptThatMeetsAnotherWriterIsStored) {
    jobs::Spec spec;
    spec.requirement = Requirement::decode("A");
    const JobId id = accept(spec).id;
    start();
    ASSERT_EQ(stored(id).state, jobs::State::running);
    world.trouble.conflicts = 2;
    for (int i = 0; i < 2; ++i) {  // until it has run, and until its results are fetched
        world.time.advance_to(world.time.now() + Millis(10'000));
        go_on();
    }
    EXPECT_EQ(stored(id).state, jobs::State::completed);
}

TEST_F(Named, TheEndOfAnAttemptIsLeftToTheNodeThatLeadsNow) {
    jobs::Spec spec;
    spec.requirement = Requirement::decode("A");
    const JobId id = accept(spec).id;
    start();
    ASSERT_EQ(stored(id).state, jobs::State::running);
    world.trouble.has_new_leader = true;
    for (int i = 0; i < 2; ++i) {  // until it has run, and until its results are fetched
        world.time.advance_to(world.time.now() + Millis(10'000));
        go_on();
    }
    world.trouble.has_new_leader = false;
    world.time.advance_to(world.time.now() + Millis(10'000));
    go_on();
    EXPECT_EQ(stored(id).state, jobs::State::running) << "whoever was refused tries no more";
    process->die();
    world.io.poll();
    start();
    for (int i = 0; i < 2; ++i) {
        world.time.advance_to(world.time.now() + Millis(10'000));
        go_on();
    }
    EXPECT_EQ(stored(id).state, jobs::State::completed);
    EXPECT_EQ(stored(id).attempt, 1) << "found on its worker";
    EXPECT_FALSE(world.rules.broken()) << *world.rules.broken();
}

TEST_F(Named, AJobThatWaitedIsAnsweredByOneThatHasCompletedMeanwhile) {
    const Time now = world.time.now();
    jobs::Spec spec;
    spec.requirement = Requirement::decode("A");
    spec.reuse_key = "same";
    const auto started = jobs::start(accept(spec), "w0", 2, now);
    store(world.stored.commit(*started));
    const auto completed = jobs::complete(started->job, {}, {{"9", 1}}, 3, now);
    store(world.stored.commit(*completed));
    const JobId id = accept(spec).id;
    start();
    EXPECT_EQ(stored(id).state, jobs::State::completed);
    EXPECT_EQ(stored(id).reused_from, completed->job.id);
}

TEST_F(Named, JobsThatRanAsOneAreFoundAgainThoughTheirEventsCannotBeRead) {
    const Time now = world.time.now();
    jobs::Spec spec;
    spec.requirement = Requirement::decode("A");
    std::set<JobId> together;
    const PromptId one = PromptId::make(now);
    for (std::size_t place = 0; place < 2; ++place) {
        const auto started = jobs::start(accept(spec), "w0", 2, now, jobs::BatchPlace{one, place});
        store(world.stored.commit(*started));
        together.insert(started->job.id);
    }
    Machine& machine = world.machines.all.front();
    machine.merges = true;
    world.machines.begin(machine, one.to_string(), together);
    world.trouble.hides_events = true;
    start();
    EXPECT_EQ(machine.prompts.size(), 1U);
    EXPECT_FALSE(world.rules.broken()) << *world.rules.broken();
}

TEST_F(Named, AJobThatBreaksItsWorkersIsGivenToTwoOfThemAndNotToAThirdAfterARestart) {
    jobs::Spec spec;
    spec.requirement = Requirement::decode("A");
    spec.max_attempts = 10;
    while (world.machines.all.size() < 3) {
        Machine another = world.machines.all.front();
        another.id = "w" + std::to_string(world.machines.all.size());
        world.machines.all.push_back(std::move(another));
    }
    const JobId id = accept(spec).id;
    world.machines.poison.insert(id);
    for (int life = 0; life < 20 && !jobs::is_terminal(stored(id).state); ++life) {
        start();
        world.time.advance_to(world.time.now() + Millis(5'000));
        go_on();
        process->die();
        world.io.poll();
    }
    start();
    ASSERT_EQ(stored(id).state, jobs::State::failed);
    EXPECT_EQ(jobs::cause_of(*stored(id).failure), jobs::Cause::poison);
    EXPECT_FALSE(world.rules.broken()) << *world.rules.broken();
}

TEST_F(Named, WhenEverythingFailsTheFleetRepeatsNoMoreThanItsBudget) {
    world.options.failures.budget = {.part = 0.2, .per_minute = 3};
    start();
    constexpr int kJobs = 40;
    for (int i = 0; i < kJobs; ++i) {
        jobs::Spec spec;
        spec.id = JobId::make(world.time.now());
        spec.requirement = Requirement::decode("A");
        spec.max_attempts = 10;
        world.machines.failing.insert(*spec.id);
        process->submit(std::move(spec));
        go_on();
    }
    const Time begin = world.time.now();
    while (world.time.next() && *world.time.next() < begin + std::chrono::minutes(5)) {
        world.time.advance_to(*world.time.next());
        go_on();
    }
    int repeated = 0;
    for (const auto& [id, entry] : world.stored.entries()) {
        repeated += std::max(0, entry.job.attempt - 1);
    }
    // Three in each minute and a fifth of all that began, a minute of both in advance.
    EXPECT_LE(repeated, 6 * 3 + 2 * (kJobs + repeated) / 5);
    EXPECT_GE(repeated, 5 * 3) << "and no less";
    EXPECT_FALSE(world.rules.broken()) << *world.rules.broken();
}

}  // namespace
}  // namespace comfyd::simulation
