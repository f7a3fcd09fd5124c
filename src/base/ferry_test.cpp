#include "base/ferry.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include <boost/asio/io_context.hpp>

namespace comfyd {
namespace {

// All contexts on one thread: whoever's turn it is can be said.
class FerryTest : public testing::Test {
protected:
    Task<> cross(std::string name) {
        co_await ferry_.cross([this, name] { done_.push_back(name + " there"); });
        done_.push_back(name + " home");
    }

    boost::asio::io_context away_;
    boost::asio::io_context home_;
    boost::asio::io_context other_home_;
    Ferry ferry_{away_.get_executor()};
    TaskGroup group_{home_.get_executor()};
    TaskGroup other_group_{other_home_.get_executor()};
    std::vector<std::string> done_;
};

TEST_F(FerryTest, ManyCrossTogetherAndEachGoesOnWhereItCameFrom) {
    group_.spawn("a", cross("a"));
    group_.spawn("b", cross("b"));
    home_.poll();
    other_group_.spawn("c", cross("c"));
    other_home_.poll();
    EXPECT_EQ(away_.poll(), 1U) << "one crossing for all";
    EXPECT_THAT(done_, testing::ElementsAre("a there", "b there", "c there"));
    done_.clear();
    other_home_.restart();
    other_home_.poll();
    EXPECT_THAT(done_, testing::ElementsAre("c home"));
    home_.restart();
    home_.poll();
    EXPECT_THAT(done_, testing::ElementsAre("c home", "a home", "b home"));
}

TEST_F(FerryTest, WhoComesLaterTakesTheNext) {
    group_.spawn("a", cross("a"));
    home_.poll();
    away_.poll();
    home_.restart();
    home_.poll();
    group_.spawn("b", cross("b"));
    home_.restart();
    home_.poll();
    away_.restart();
    EXPECT_EQ(away_.poll(), 1U);
    home_.restart();
    home_.poll();
    EXPECT_THAT(done_, testing::ElementsAre("a there", "a home", "b there", "b home"));
}

}  // namespace
}  // namespace comfyd
