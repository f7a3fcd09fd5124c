#include "jobs/doctor.hpp"

#include <gtest/gtest.h>

#include "jobs/fleet.hpp"

namespace comfyd::jobs {
namespace {

constexpr Time kNow = Time(Millis(1'700'000'000'000));

Failure failed_by(Cause cause, Code code = Code::worker_lost) {
    Failure failure;
    failure.code = code;
    failure.message = "so it is";
    failure.details[kCauseKey] = to_string(cause);
    return failure;
}

struct Story {
    std::vector<PastAttempt> before;
    Job job;
    FailurePolicy policy;

    Story() {
        job.worker = "w0";
        job.attempt = 1;
        job.max_attempts = 5;
        job.timeout = Millis(10'000);
    }
    Verdict fails(Cause cause, std::string worker = "w0", Code code = Code::worker_lost) {
        return fails(failed_by(cause, code), std::move(worker));
    }
    // As the ledger would have it afterwards.
    Verdict fails(Failure failure, std::string worker) {
        job.worker = std::move(worker);
        Verdict verdict = judge_failure(job, failure, before, policy, 0.5);
        before.push_back({job.attempt, job.worker, kNow, kNow, verdict.failure, std::nullopt});
        job.attempt += 1;
        job.failure = verdict.failure;
        job.timeout = verdict.timeout;
        return verdict;
    }
};

std::string cause_in(const Verdict& verdict) {
    return std::string(to_string(cause_of(verdict.failure)));
}

TEST(Doctor, WhatTheWorkflowIsAtFaultForIsNotTriedAgain) {
    for (const Cause cause : {Cause::validation, Cause::node_error}) {
        const Verdict verdict = Story().fails(cause);
        EXPECT_FALSE(verdict.retries) << to_string(cause);
        EXPECT_TRUE(verdict.failure.details.contains("advice"));
    }
}

TEST(Doctor, TriesAgainAsOftenAsTheCauseAllows) {
    for (const Cause cause :
         {Cause::out_of_memory,
          Cause::timeout,
          Cause::unknown,
          Cause::model_missing,
          Cause::model_damaged,
          Cause::interrupted}) {
        Story story;
        EXPECT_TRUE(story.fails(cause).retries) << to_string(cause);
        const Verdict second = story.fails(cause, "w1");
        EXPECT_FALSE(second.retries) << to_string(cause);
        EXPECT_EQ(cause_in(second), to_string(cause));
    }
}

TEST(Doctor, EachCauseIsCountedByItself) {
    Story story;
    EXPECT_TRUE(story.fails(Cause::out_of_memory).retries);
    EXPECT_TRUE(story.fails(Cause::timeout).retries);
    EXPECT_TRUE(story.fails(Cause::worker_refused).retries);
    EXPECT_TRUE(story.fails(Cause::worker_refused).retries);
    EXPECT_FALSE(story.fails(Cause::worker_refused).retries) << "the job's own limit";
}

TEST(Doctor, TheOperatorSaysHowOften) {
    Story story;
    story.policy.retries[static_cast<std::size_t>(Cause::node_error)] = 1;
    story.policy.retries[static_cast<std::size_t>(Cause::out_of_memory)] = 0;
    EXPECT_TRUE(story.fails(Cause::node_error).retries);
    EXPECT_FALSE(story.fails(Cause::out_of_memory).retries);
}

TEST(Doctor, AJobThatTookDownTwoWorkersGetsNoThird) {
    for (const Cause cause : {Cause::worker_lost, Cause::hung, Cause::cuda_fault}) {
        Story story;
        EXPECT_TRUE(story.fails(Cause::worker_lost, "w0").retries);
        const Verdict second = story.fails(cause, "w1");
        EXPECT_FALSE(second.retries);
        EXPECT_EQ(cause_in(second), "poison");
        EXPECT_EQ(second.failure.code, Code::node_execution_error) << "not worth another try";
        EXPECT_NE(second.failure.message.find("'w0', 'w1'"), std::string::npos)
            << second.failure.message;
        EXPECT_EQ(json::find(second.failure.details, "last_cause")->get_string(), to_string(cause));
    }
}

TEST(Doctor, AWorkerThatCannotBeReachedCountsOnceAndAGpuEachTime) {
    Story lost;
    EXPECT_TRUE(lost.fails(Cause::worker_lost, "w0").retries);
    EXPECT_TRUE(lost.fails(Cause::worker_lost, "w0").retries);
    EXPECT_EQ(cause_in(lost.fails(Cause::worker_lost, "w1")), "poison");
    Story gpu;
    EXPECT_TRUE(gpu.fails(Cause::cuda_fault, "w0").retries);
    EXPECT_EQ(cause_in(gpu.fails(Cause::cuda_fault, "w0")), "poison");
}

TEST(Doctor, TheEnginesProcessMayEndOnceWithAJob) {
    Story story;
    Failure ended = failed_by(Cause::worker_lost);
    ended.details[kEndedWithProcess] = true;
    EXPECT_TRUE(story.fails(ended, "engine").retries);
    const Verdict second = story.fails(ended, "engine");
    EXPECT_EQ(cause_in(second), "poison");
    EXPECT_TRUE(second.failure.message.starts_with("the engine's process ended twice"));
}

TEST(Doctor, FaultsOfWorkersThatStayAreNoStrikes) {
    Story story;
    EXPECT_TRUE(story.fails(Cause::worker_refused, "w0").retries);
    EXPECT_TRUE(story.fails(Cause::out_of_memory, "w1").retries);
    EXPECT_TRUE(story.fails(Cause::worker_lost, "w2").retries);
    EXPECT_TRUE(is_suspect(story.job));
    EXPECT_TRUE(story.fails(Cause::worker_refused, "w3").retries);
    EXPECT_FALSE(is_suspect(story.job));
}

TEST(Doctor, OneThatWasTooSlowGetsMoreTime) {
    Story story;
    EXPECT_EQ(story.fails(Cause::timeout, "w0", Code::execution_timeout).timeout, Millis(15'000));
    Story longest;
    longest.job.timeout = kTimeoutMax;
    EXPECT_EQ(longest.fails(Cause::timeout).timeout, kTimeoutMax);
    EXPECT_EQ(Story().fails(Cause::worker_lost).timeout, Millis(10'000));
}

TEST(Doctor, WorkersOnWhichItFailedAreAvoided) {
    Story story;
    story.policy.poison_workers = 100;
    story.job.max_attempts = 100;
    EXPECT_TRUE(story.fails(Cause::worker_refused, "w0").retries);
    EXPECT_EQ(workers_to_avoid(story.job), (std::vector<std::string>{"w0"}));
    EXPECT_TRUE(story.fails(Cause::worker_refused, "w1").retries);
    EXPECT_TRUE(story.fails(Cause::worker_refused, "w0").retries);
    EXPECT_EQ(workers_to_avoid(story.job), (std::vector<std::string>{"w0", "w1"}));
    for (int i = 2; i < 30; ++i) {
        EXPECT_TRUE(story.fails(Cause::worker_refused, "w" + std::to_string(i)).retries);
    }
    EXPECT_EQ(workers_to_avoid(story.job).size(), 8U) << "the latest, and no more";
    EXPECT_EQ(workers_to_avoid(story.job).front(), "w29");
}

TEST(Doctor, OnlyWhatHasUsedAWorkerIsTakenFromTheBudget) {
    EXPECT_TRUE(Story().fails(Cause::out_of_memory).is_costly);
    EXPECT_FALSE(Story().fails(Cause::worker_refused).is_costly);
}

Event event(EventType type, State state, json::object data, int at) {
    Event made;
    made.type = type;
    made.state = state;
    made.data = std::move(data);
    made.at = kNow + Millis(at);
    return made;
}

TEST(PastAttempts, AreWhatTheEventsTell) {
    const json::object lost = failed_by(Cause::worker_lost).to_json();
    std::vector<Event> events{
        event(EventType::started, State::running, {{"worker", "w0"}, {"attempt", 1}}, 0),
        event(
            EventType::retrying,
            State::retry_waiting,
            {{"error", lost}, {"attempt", 1}, {"retry_at", to_rfc3339(kNow + Millis(500))}},
            100
        ),
        event(EventType::queued, State::queued, {{"attempt", 1}}, 500),
        event(EventType::started, State::running, {{"worker", "w1"}, {"attempt", 2}}, 600),
    };
    std::vector<PastAttempt> past = past_attempts(events);
    ASSERT_EQ(past.size(), 2U);
    EXPECT_EQ(past[0].worker, "w0");
    EXPECT_EQ(past[0].ended_at, kNow + Millis(100));
    EXPECT_EQ(cause_of(*past[0].failure), Cause::worker_lost);
    EXPECT_EQ(past[0].retry_at, kNow + Millis(500));
    EXPECT_FALSE(past[1].ended_at);
    EXPECT_TRUE(past[0].is_of_this_life && past[1].is_of_this_life);
    EXPECT_EQ(past[0].to_json().at("cause"), json::value("worker_lost"));
    EXPECT_TRUE(past[1].to_json().at("cause").is_null());

    Failure poison = failed_by(Cause::poison);
    poison.details["last_cause"] = "hung";
    poison.details["last_message"] = "it hangs";
    events.push_back(event(EventType::failed, State::failed, {{"error", poison.to_json()}}, 700));
    past = past_attempts(events);
    EXPECT_EQ(cause_of(*past[1].failure), Cause::hung) << "of the attempt, not of the job";
    EXPECT_EQ(past[1].to_json().at("message"), json::value("it hangs"));
    events.push_back(event(EventType::queued, State::queued, {{"attempt", 2}}, 800));
    past = past_attempts(events);
    EXPECT_FALSE(past[0].is_of_this_life || past[1].is_of_this_life) << "somebody brought it back";
    events.push_back(
        event(EventType::started, State::running, {{"worker", "w2"}, {"attempt", 3}}, 900)
    );
    past = past_attempts(events);
    EXPECT_TRUE(past[2].is_of_this_life);
    EXPECT_FALSE(past[1].is_of_this_life);
}

TEST(PastAttempts, OneThatWasCancelledHasNotFailed) {
    const auto past = past_attempts({
        event(EventType::started, State::running, {{"worker", "w0"}, {"attempt", 1}}, 0),
        event(EventType::cancelling, State::running, {}, 10),
        event(EventType::cancelled, State::cancelled, {}, 20),
    });
    ASSERT_EQ(past.size(), 1U);
    EXPECT_EQ(past[0].ended_at, kNow + Millis(20));
    EXPECT_FALSE(past[0].failure);
}

}  // namespace
}  // namespace comfyd::jobs
