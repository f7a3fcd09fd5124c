#include "api/dialects/native/board.hpp"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>

#include "api/dialects/native/frames.hpp"
#include "api/dialects/native/names.hpp"
#include "api/test_support.hpp"
#include "comfy/members.hpp"
#include "events/local_hub.hpp"

namespace comfyd::api::native {
namespace {

using Script = test::ScriptedWorker::Script;

// Everything on one thread, which goes on only where a test says so.
class BoardTest : public testing::Test {
protected:
    ~BoardTest() override {
        wait_for(service_.stop(Millis(0)));
        if (board_) {
            wait_for(board_->stop());
        }
    }

    void start_jobs(Script script) {
        fleet_.worker->open = true;
        fleet_.worker->script = script;
        wait_for(service_.lead("main", {ledger_, fleet_}));
    }
    void make_board(std::size_t waiting_max) {
        board_ = std::make_unique<Board>(service_, io_.get_executor(), waiting_max);
        io_.poll();
        board_->attach("me", "client", mailbox_);
    }
    void start_board() {
        board_->start();
        io_.poll();
    }
    JobId submit(const std::string& tenant = "me") {
        jobs::Spec spec;
        spec.id = JobId::make(clock_.now());
        spec.tenant = tenant;
        spec.dialect = kDialect;
        spec.dialect_data["client_id"] = "client";
        spec.max_attempts = 1;
        const JobId id = *spec.id;
        board_->expect(tenant, id);
        wait_for(service_.submit(std::move(spec)));
        return id;
    }
    void answer(const JobId& id) {
        board_->release(id, true);
        io_.poll();
    }
    void cancel(const JobId& id) { wait_for(service_.cancel("me", id)); }

    const std::vector<FramePtr>& frames() {
        wait_for(read_frames(*mailbox_, told_));
        return told_;
    }
    // The types of what the client was told of the job since it was asked last, in order.
    std::vector<std::string> story_of(const JobId& id) {
        frames();
        std::vector<std::string> types;
        std::erase_if(told_, [&](const FramePtr& frame) {
            const json::object* data = comfy::object_of(frame->message, "data");
            const bool is_its = comfy::text_of(*data, "prompt_id") == id.to_string();
            if (is_its) {
                types.push_back(comfy::text_of(frame->message, "type"));
            }
            return is_its;
        });
        return types;
    }
    using Story = std::vector<std::string>;

    template <class T>
    void wait_for(Task<T> task) {
        boost::asio::co_spawn(io_, std::move(task), [](std::exception_ptr error, const auto&...) {
            EXPECT_FALSE(error);
        });
        io_.poll();
    }

    boost::asio::io_context io_{1};
    boost::asio::executor_work_guard<Executor> keep_{io_.get_executor()};
    ManualClock clock_;
    test::MemoryLedger ledger_;
    test::OneWorkerFleet fleet_;
    events::LocalHub hub_{io_.get_executor()};
    jobs::Service service_{io_.get_executor(), clock_, ledger_, hub_, {}};
    std::shared_ptr<Mailbox> mailbox_ = std::make_shared<Mailbox>(io_.get_executor());
    std::unique_ptr<Board> board_;

private:
    static Task<> read_frames(Mailbox& mailbox, std::vector<FramePtr>& frames) {
        for (;;) {
            auto frame = co_await mailbox.next(Millis(0));
            if (!frame) {
                co_return;
            }
            frames.push_back(std::move(*frame));
        }
    }

    std::vector<FramePtr> told_;
};

const std::vector<std::string> kWhole{"execution_start", "execution_success", "executing"};

TEST_F(BoardTest, APromptIsToldOfAfterItIsAnswered) {
    make_board(Board::kWaitingMax);
    start_board();
    start_jobs(Script::succeed);
    const JobId id = submit();
    EXPECT_EQ(story_of(id), Story{});
    answer(id);
    EXPECT_EQ(story_of(id), kWhole);
}

TEST_F(BoardTest, APromptThatIsHeardOfAfterItsAnswerIsToldOfAtOnce) {
    make_board(Board::kWaitingMax);
    start_jobs(Script::succeed);
    board_->expect("me", JobId::make(clock_.now()));  // refused, and nothing is kept of it
    const JobId id = submit();
    answer(id);
    start_board();
    EXPECT_EQ(story_of(id), kWhole);
}

TEST_F(BoardTest, WhoeverAsksFindsWhatWasToldBefore) {
    make_board(Board::kWaitingMax);
    start_jobs(Script::wait_for_stop);
    const JobId id = submit();
    // Nobody has woken it yet.
    const auto again = std::make_shared<Mailbox>(io_.get_executor());
    EXPECT_EQ(board_->attach("me", "client", again), id);
    EXPECT_TRUE(board_->notes(id));
    EXPECT_EQ(board_->attach("other", "client", again), std::nullopt);
}

TEST_F(BoardTest, APromptThatCameAndWentInAGapIsToldOf) {
    make_board(2);
    start_jobs(Script::succeed);
    const JobId first = submit();
    answer(first);
    const JobId second = submit();
    start_board();
    EXPECT_EQ(story_of(first), kWhole);
    EXPECT_EQ(story_of(second), Story{});
    answer(second);
    EXPECT_EQ(story_of(second), kWhole);
}

// However few changes may wait for it.
class BoardRoomTest : public BoardTest, public testing::WithParamInterface<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(Room, BoardRoomTest, testing::Values(1, 2, 3, 4, 5, 6, 100));

TEST_P(BoardRoomTest, WhatRanBeforeAGapEndsAfterIt) {
    make_board(GetParam());
    start_board();
    start_jobs(Script::wait_for_stop);
    const JobId running = submit();
    answer(running);
    EXPECT_EQ(story_of(running), Story{"execution_start"});
    const JobId waiting = submit();
    answer(waiting);
    EXPECT_EQ(story_of(waiting), Story{});
    fleet_.worker->script = Script::succeed;
    cancel(running);  // and the next one begins and ends: more than there is room for
    EXPECT_EQ(story_of(running), (Story{"execution_interrupted", "executing"}));
    EXPECT_EQ(ledger_.stored(waiting).back().type, jobs::EventType::completed);
    EXPECT_EQ(story_of(waiting), kWhole);
}

TEST_P(BoardRoomTest, EveryStoryIsToldOnce) {
    make_board(GetParam());
    start_board();
    start_jobs(Script::succeed);
    for (int i = 0; i < 20; ++i) {
        fleet_.worker->script = i % 3 == 0 ? Script::fail : Script::succeed;
        const JobId id = submit();
        EXPECT_EQ(story_of(id), Story{});
        answer(id);
        Story whole = kWhole;
        whole[1] = i % 3 == 0 ? "execution_error" : "execution_success";
        EXPECT_EQ(story_of(id), whole);
    }
}

TEST_F(BoardTest, AfterAGapTheLengthOfTheQueueIsRight) {
    make_board(1);
    fleet_.worker->open = false;
    wait_for(service_.lead("main", {ledger_, fleet_}));
    for (int i = 0; i < 3; ++i) {
        answer(submit());
    }
    submit("other");
    start_board();
    const auto& told = frames();
    ASSERT_FALSE(told.empty());
    EXPECT_EQ(told.back()->message, make_status(3, false)->message);
}

}  // namespace
}  // namespace comfyd::api::native
