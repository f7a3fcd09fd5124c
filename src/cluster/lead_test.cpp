#include "cluster/lead.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <vector>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>

#include "base/virtual_time.hpp"

namespace comfyd::cluster {
namespace {

constexpr Time kStart = Time(Millis(1'700'000'000'000));

// Answers as it is told, after a time; says what it was asked.
class ScriptedLeases final : public Leases {
public:
    Task<Result<std::optional<Taken>>> take(std::string domain, NodeId node) override {
        asked.push_back("take");
        co_await sleep_for(latency);
        if (trouble) {
            co_return fail(*trouble, "trouble");
        }
        if (is_held) {
            co_return std::nullopt;
        }
        co_return Taken{jobs::Term{std::move(domain), ++epoch, node}, Millis(0)};
    }
    Task<Result<>> renew(jobs::Term term, std::uint64_t queued) override {
        asked.push_back("renew " + std::to_string(term.epoch) + ", " + std::to_string(queued));
        co_await sleep_for(latency);
        co_return trouble ? Result<>(fail(*trouble, "trouble")) : Result<>();
    }
    Task<Result<>> resign(jobs::Term term) override {
        asked.push_back("resign " + std::to_string(term.epoch));
        co_await sleep_for(latency);
        co_return Result<>();
    }
    Task<Result<std::vector<Lease>>> all() override { co_return std::vector<Lease>(); }

    Millis latency{10};
    std::optional<Code> trouble;
    bool is_held = false;
    std::uint64_t epoch = 0;
    std::vector<std::string> asked;
};

class VirtualBootClock final : public BootClock {
public:
    explicit VirtualBootClock(const VirtualTime& time) : time_(time) {}
    Millis now() const override { return time_.now() - kStart; }

private:
    const VirtualTime& time_;
};

class LeadOfADomain : public testing::Test {
protected:
    Task<> on_taken(Taken taken, std::shared_ptr<const Trust> trust) {
        told_.push_back("taken " + std::to_string(taken.term.epoch));
        trusts_.push_back(std::move(trust));
        co_await sleep_for(taking_);
        told_.push_back("ready");
    }
    Task<> on_lost(LeadEnd why) {
        told_.push_back("lost: " + std::string(to_string(why)));
        co_await sleep_for(losing_);
        told_.push_back("let go");
    }
    Task<> resign() {
        co_await lead_.resign();
        has_resigned_ = true;
    }

    void pass(Millis time) {
        const Time then = time_.now() + time;
        io_.poll();
        while (time_.next() && *time_.next() <= then) {
            time_.advance_to(*time_.next());
            io_.poll();
        }
        time_.advance_to(then);
        io_.poll();
    }
    void TearDown() override {
        leases_.trouble.reset();
        leases_.latency = Millis(10);
        if (!has_resigned_) {
            boost::asio::co_spawn(io_, resign(), boost::asio::detached);
        }
        pass(Millis(200'000));
        EXPECT_TRUE(has_resigned_);
    }

    boost::asio::io_context io_{1};
    boost::asio::executor_work_guard<Executor> keep_{io_.get_executor()};
    VirtualTime time_{io_, kStart};
    VirtualBootClock clock_{time_};
    ScriptedLeases leases_;
    Millis taking_{0};
    Millis losing_{0};
    std::vector<std::string> told_;
    std::vector<std::shared_ptr<const Trust>> trusts_;
    bool has_resigned_ = false;
    Lead lead_{
        io_.get_executor(),
        leases_,
        clock_,
        "main",
        NodeId{},
        LeadHooks{
            [this](Taken taken, auto trust) { return on_taken(std::move(taken), trust); },
            [this](LeadEnd why) { return on_lost(why); },
            [] { return std::uint64_t{5}; },
        }
    };
};

using Told = std::vector<std::string>;

TEST_F(LeadOfADomain, IsTakenAndKept) {
    lead_.start();
    pass(Millis(3'200));
    EXPECT_EQ(leases_.asked, (Told{"take", "renew 1, 5", "renew 1, 5"}));
    EXPECT_EQ(told_, (Told{"taken 1", "ready"}));
    EXPECT_TRUE(lead_.trusts());
    EXPECT_EQ(lead_.counts().epoch, 1U);
}

TEST_F(LeadOfADomain, IsTriedForWhileAnotherHasIt) {
    leases_.is_held = true;
    lead_.start();
    pass(Millis(1'700));
    EXPECT_EQ(leases_.asked.size(), 4U);
    EXPECT_FALSE(lead_.trusts());
    leases_.is_held = false;
    pass(kTryEvery);
    EXPECT_TRUE(lead_.leads());
}

TEST_F(LeadOfADomain, IsTakenAtOnceFromOneWhoSaysThatItResigned) {
    leases_.is_held = true;
    lead_.start();
    pass(Millis(1'600));
    leases_.is_held = false;
    lead_.may_be_free();
    pass(Millis(15));
    EXPECT_TRUE(lead_.leads());
}

TEST_F(LeadOfADomain, IsKeptWhileItsBeginningTakesLong) {
    taking_ = Millis(20'000);
    lead_.start();
    pass(Millis(15'000));
    EXPECT_EQ(told_, (Told{"taken 1"}));
    EXPECT_TRUE(lead_.trusts());
    EXPECT_EQ(leases_.asked.size(), 11U);
}

TEST_F(LeadOfADomain, ItsEndIsToldAfterItsBeginningAndBeforeTheNextOne) {
    taking_ = Millis(3'000);
    losing_ = Millis(3'000);
    lead_.start();
    pass(Millis(1'000));
    leases_.trouble = Code::lead_lost;
    pass(Millis(1'000));
    EXPECT_FALSE(lead_.trusts());
    EXPECT_EQ(told_, (Told{"taken 1"}));
    leases_.trouble.reset();
    pass(Millis(20'000));
    EXPECT_EQ(told_, (Told{"taken 1", "ready", "lost: taken_over", "let go", "taken 2", "ready"}));
    EXPECT_EQ(lead_.counts().taken_over, 1U);
    EXPECT_EQ(lead_.counts().epoch, 2U);
    ASSERT_EQ(trusts_.size(), 2U);
    EXPECT_FALSE(trusts_[0]->holds()) << "the trust of a term does not come back with another";
    EXPECT_TRUE(trusts_[1]->holds());
}

TEST_F(LeadOfADomain, EndsByItselfWhenNobodyAnswers) {
    lead_.start();
    pass(Millis(100));
    leases_.latency = Millis(60'000);
    pass(kTrust - Millis(100) - Millis(1));
    EXPECT_TRUE(lead_.trusts());
    pass(Millis(1));
    EXPECT_FALSE(lead_.trusts());
    EXPECT_EQ(told_.back(), "let go");
    EXPECT_EQ(lead_.counts().unconfirmed, 1U);
    pass(Millis(60'000));  // the answer, which is of no use
    EXPECT_FALSE(lead_.trusts());
}

TEST_F(LeadOfADomain, IsOverWithItsSession) {
    lead_.start();
    pass(Millis(100));
    lead_.session_lost();
    EXPECT_FALSE(trusts_[0]->holds());
    pass(Millis(20));
    EXPECT_EQ(told_, (Told{"taken 1", "ready", "lost: session_lost", "let go"}));
    pass(Millis(1'000));
    EXPECT_EQ(told_.back(), "ready") << "it may have the lead again";
    EXPECT_FALSE(trusts_[0]->holds());
    EXPECT_TRUE(trusts_[1]->holds());
}

TEST_F(LeadOfADomain, IsOverWhenSomebodyRefusesItsEpoch) {
    lead_.start();
    pass(Millis(100));
    lead_.refused(1);
    EXPECT_FALSE(trusts_[0]->holds());
    pass(Millis(1));
    EXPECT_EQ(told_.back(), "let go");
}

TEST_F(LeadOfADomain, IsLeftToOthers) {
    lead_.start();
    pass(Millis(100));
    lead_.let_go();
    EXPECT_FALSE(trusts_[0]->holds());
    pass(Millis(100));
    EXPECT_EQ(leases_.asked.back(), "resign 1");
    EXPECT_EQ(told_.back(), "let go");
    leases_.is_held = true;
    pass(Millis(5'000));
    EXPECT_EQ(leases_.asked.back(), "take") << "it stands by";
    EXPECT_FALSE(lead_.leads());
}

TEST_F(LeadOfADomain, IsResignedWhenAllHasStopped) {
    losing_ = Millis(500);
    lead_.start();
    pass(Millis(100));
    boost::asio::co_spawn(io_, resign(), boost::asio::detached);
    pass(Millis(400));
    EXPECT_FALSE(lead_.trusts());
    EXPECT_EQ(leases_.asked.back(), "take");
    pass(Millis(200));
    EXPECT_EQ(leases_.asked.back(), "resign 1");
    EXPECT_TRUE(has_resigned_);
    EXPECT_EQ(told_.back(), "let go");
    EXPECT_EQ(lead_.counts().resigned, 1U);
    pass(Millis(5'000));
    EXPECT_EQ(leases_.asked.back(), "resign 1");
}

TEST(SystemBootClock, GoesOn) {
    const SystemBootClock clock;
    const Millis before = clock.now();
    EXPECT_GT(before, Millis(0));
    EXPECT_GE(clock.now(), before);
}

}  // namespace
}  // namespace comfyd::cluster
