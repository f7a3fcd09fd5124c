#include "app/learned.hpp"

#include <gtest/gtest.h>

#include <map>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>

#include "admission/profile.hpp"
#include "workflow/catalogue/catalogue.hpp"

namespace comfyd::app {
namespace {

class Notes final : public jobs::Notebook {
public:
    Task<Result<>> write_note(std::string name, std::string text) override {
        ++writes;
        if (broken) {
            co_return fail(Code::storage_full, "the disk is full");
        }
        notes[name] = std::move(text);
        co_return Result<>();
    }
    Task<Result<std::optional<std::string>>> read_note(std::string name) override {
        if (broken) {
            co_return fail(Code::storage_unavailable, "the disk is gone");
        }
        const auto found = notes.find(name);
        co_return found == notes.end() ? std::nullopt : std::optional(found->second);
    }

    std::map<std::string, std::string> notes;
    int writes = 0;
    bool broken = false;
};

// One life of a server.
struct Life {
    explicit Life(Notes& notes) : learned(io.get_executor(), pool, notes, predictor, costs) {
        run(learned.start());
    }

    void run(Task<> task) {
        auto done = boost::asio::co_spawn(
            Executor(io.get_executor()), std::move(task), boost::asio::use_future
        );
        while (done.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
            io.run_one();
        }
        done.get();
    }

    boost::asio::io_context io{1};
    Pool pool{1};
    scheduler::Predictor predictor;
    fleet::NodeCosts costs;
    Learned learned;
};

class LearnedTest : public testing::Test {
protected:
    const json::object prompt_ = *json::parse_object(
        R"({"1": {"class_type": "CheckpointLoaderSimple", "inputs": {"ckpt_name": "a.safetensors"}},
            "2": {"class_type": "SaveImage", "inputs": {"images": ["1", 0]}}})"
    );
    const workflow::Graph graph_{prompt_};
    const workflow::Catalogue no_classes_{{}};
    const workflow::Plan plan_ = workflow::make_plan(graph_, no_classes_);
    Notes notes_;
};

TEST_F(LearnedTest, SurvivesARestart) {
    const auto profile = admission::profile_of(plan_);
    {
        Life life(notes_);
        life.predictor.learn({profile, "L40S", "w1", 7, {}});
        life.costs.learn("KSampler", 20, "L40S", 4);
        life.run(life.learned.stop());
    }
    EXPECT_EQ(notes_.notes.size(), 2U);
    Life life(notes_);
    EXPECT_NEAR(life.predictor.run_seconds(profile, "L40S"), 7, 0.01);
    EXPECT_NEAR(life.costs.seconds("KSampler", 20, "L40S"), 4, 0.01);
    EXPECT_TRUE(life.learned.past(graph_, plan_)) << "at once";
    life.run(life.learned.stop());
}

TEST_F(LearnedTest, WritesOnlyWhatIsNew) {
    Life life(notes_);
    life.run(life.learned.stop());
    EXPECT_EQ(notes_.writes, 0);
}

TEST_F(LearnedTest, PlansAreToldOfTheTypeThatIsKnownBest) {
    Life life(notes_);
    EXPECT_FALSE(life.learned.past(graph_, plan_)) << "nothing was learned yet";
    life.predictor.learn({admission::profile_of(plan_), "L40S", "w1", 7, {}});
    life.run(life.learned.stop());
    const auto past = life.learned.past(graph_, plan_);
    ASSERT_TRUE(past);
    EXPECT_NEAR(past->seconds, 7, 0.01);
    EXPECT_EQ(past->basis, "history");
    EXPECT_GT(past->confidence, 0.5);
}

TEST_F(LearnedTest, AFailingDiskOrADamagedNoteStopsNothing) {
    notes_.notes["learned-times"] = "{";
    notes_.notes["learned-nodes"] = "{\"version\": 99}";
    {
        Life life(notes_);
        life.run(life.learned.stop());
    }
    notes_.broken = true;
    Life life(notes_);
    life.predictor.learn({admission::profile_of(plan_), "L40S", "w1", 7, {}});
    life.run(life.learned.stop());
    EXPECT_GT(notes_.writes, 0);
    EXPECT_TRUE(life.learned.past(graph_, plan_));
}

}  // namespace
}  // namespace comfyd::app
