#include "cluster/mail.hpp"

#include <gmock/gmock.h>

#include <boost/asio/post.hpp>

#include "cluster/no_bus.hpp"
#include "cluster/test_support.hpp"

namespace comfyd::cluster {
namespace {

using test::node_id;
using testing::ElementsAre;

struct Node {
    Node(test::World& of, int number)
        : world(of), bus(of.exchange, node_id(number)), mail(of.executor(), bus) {}
    ~Node() { world.finish(mail.stop()); }

    test::World& world;
    LocalBus bus;
    Mail mail;
};

Task<Result<json::value>> echo(NodeId, json::value details) {
    co_return details;
}

Task<Result<json::value>> refuse(NodeId, json::value) {
    co_return fail(Code::conflict, "not now", {{"until", 5}});
}

Task<Result<json::value>> take_long(NodeId, json::value details) {
    co_await sleep_for(Millis(1'000));
    co_return details;
}

class MailTest : public testing::Test {
protected:
    MailTest() {
        two.mail.on_question("echo", echo);
        two.mail.on_question("refuse", refuse);
        two.mail.on_question("take long", take_long);
        one.mail.start();
        two.mail.start();
        one.bus.start();
        two.bus.start();
        world.settle();
    }

    // The answer, when it came while `span` passed.
    std::optional<Result<json::value>> ask(
        const std::string& question, json::value details, Millis patience, Millis span
    ) {
        auto answer = std::make_shared<std::optional<Result<json::value>>>();
        boost::asio::co_spawn(
            world.io,
            one.mail.ask(node_id(2), question, std::move(details), Deadline::in(patience)),
            [answer](const std::exception_ptr&, Result<json::value> value) {
                answer->emplace(std::move(value));
            }
        );
        world.pass(span);
        return *answer;
    }

    test::World world;
    Node one{world, 1};
    Node two{world, 2};
};

TEST_F(MailTest, AQuestionIsAnswered) {
    const auto answer = ask("echo", {{"a", 1}}, Millis(60'000), Millis(0));
    ASSERT_TRUE(answer && *answer);
    EXPECT_EQ(**answer, (json::value{{"a", 1}}));
}

TEST_F(MailTest, AFailureIsAnAnswerToo) {
    const auto answer = ask("refuse", nullptr, Millis(60'000), Millis(0));
    ASSERT_TRUE(answer && !*answer);
    EXPECT_EQ(answer->error().code, Code::conflict);
    EXPECT_EQ(answer->error().message, "not now");
    EXPECT_EQ(answer->error().details, (json::object{{"until", 5}}));
}

TEST_F(MailTest, AQuestionThatNobodyKnowsIsAnsweredSo) {
    const auto answer = ask("what", nullptr, Millis(60'000), Millis(0));
    ASSERT_TRUE(answer && !*answer);
    EXPECT_EQ(answer->error().code, Code::not_found);
}

TEST_F(MailTest, OnesOwnQuestionIsAnsweredHere) {
    one.mail.on_question("echo", echo);
    const auto own = world.run(one.mail.ask(node_id(1), "echo", 7, Deadline::never()));
    EXPECT_EQ(*own, json::value(7));
    EXPECT_EQ(one.bus.counts().sent, 0U);
}

TEST_F(MailTest, NobodyWaitsLongerThanTheDeadline) {
    world.exchange.decide([](const NodeId&, const NodeId&) { return LocalExchange::Fate::is_lost; }
    );
    EXPECT_FALSE(ask("echo", 1, Millis(60'000), Millis(50'000)));
    const auto answer = ask("echo", 1, Millis(60'000), Millis(61'000));
    ASSERT_TRUE(answer && !*answer);
    EXPECT_EQ(answer->error().code, Code::request_timeout);
}

TEST_F(MailTest, AnAnswerAfterTheDeadlineIsPassedOver) {
    const auto late = ask("take long", 1, Millis(0), Millis(500));
    ASSERT_TRUE(late && !*late);
    EXPECT_EQ(late->error().code, Code::request_timeout);
    world.pass(Millis(1'000));
    EXPECT_EQ(two.bus.counts().sent, 1U);
    EXPECT_EQ(**ask("echo", 2, Millis(60'000), Millis(0)), json::value(2));
}

TEST_F(MailTest, AnswersFindTheirQuestionsInAnyOrder) {
    const auto slow = std::make_shared<std::optional<Result<json::value>>>();
    boost::asio::co_spawn(
        world.io,
        one.mail.ask(node_id(2), "take long", "slow", Deadline::in(Millis(60'000))),
        [slow](const std::exception_ptr&, Result<json::value> value) {
            slow->emplace(std::move(value));
        }
    );
    EXPECT_EQ(**ask("echo", "fast", Millis(60'000), Millis(0)), json::value("fast"));
    EXPECT_FALSE(*slow);
    world.pass(Millis(1'000));
    EXPECT_EQ(***slow, json::value("slow"));
}

TEST_F(MailTest, WithoutABusNobodyIsAsked) {
    world.exchange.cut_off(node_id(1), true);
    const auto answer = ask("echo", 1, Millis(60'000), Millis(0));
    ASSERT_TRUE(answer && !*answer);
    EXPECT_EQ(answer->error().code, Code::connection_failed);

    NoBus none(world.executor(), node_id(3));
    Mail mail(world.executor(), none);
    mail.start();
    const auto alone = world.run(mail.ask(node_id(2), "echo", 1, Deadline::never()));
    ASSERT_FALSE(alone);
    EXPECT_NE(alone.error().message.find("no Redis"), std::string::npos);
    world.finish(mail.stop());
}

TEST_F(MailTest, ANodeThatAsksTooMuchIsRefused) {
    for (std::size_t count = 0; count < Mail::kQuestionsMax; ++count) {
        one.mail.send(node_id(2), Ask{1'000 + count, "take long", nullptr, Millis(1'000)});
    }
    const auto refused = ask("echo", 1, Millis(60'000), Millis(0));
    ASSERT_TRUE(refused && !*refused);
    EXPECT_EQ(refused->error().code, Code::queue_full);
    world.pass(Millis(1'000));
    EXPECT_TRUE(*ask("echo", 1, Millis(60'000), Millis(0)));
}

TEST_F(MailTest, PokesThatComeCloseTogetherAreSentAsOne) {
    std::vector<std::string> poked;
    two.mail.on<Poke>([&](NodeId from, const Poke& poke) {
        EXPECT_EQ(from, node_id(1));
        poked.push_back(poke.domain);
    });
    for (int count = 0; count < 100; ++count) {
        one.mail.poke("main");
    }
    one.mail.poke("other");
    world.settle();
    EXPECT_THAT(poked, ElementsAre("main", "other"));
    world.pass(Mail::kPokeEvery);
    EXPECT_THAT(poked, ElementsAre("main", "other", "main"));
    world.pass(10 * Mail::kPokeEvery);
    one.mail.poke("main");
    world.settle();
    EXPECT_THAT(poked, ElementsAre("main", "other", "main", "main"));
}

TEST_F(MailTest, OneIsToldWhenTheBusTurns) {
    std::vector<bool> turns;
    one.mail.on_turned([&](bool is_up) { turns.push_back(is_up); });
    world.exchange.cut_off(node_id(1), true);
    world.settle();
    EXPECT_FALSE(one.mail.is_up());
    world.exchange.cut_off(node_id(1), false);
    world.settle();
    EXPECT_THAT(turns, ElementsAre(false, true));
}

TEST_F(MailTest, WhatIsNoLetterIsCountedAndPassedOver) {
    one.bus.send(node_id(2), "\x01 is no letter");
    std::string later = encode(Poke{"main"});
    later[0] = 9;
    one.bus.send(node_id(2), later);
    world.settle();
    EXPECT_EQ(two.mail.counts().garbled, 1U);
    EXPECT_EQ(two.mail.counts().unknown, 1U);
}

TEST_F(MailTest, AFloodDoesNotFillTheMemory) {
    std::size_t heard = 0;
    two.mail.on<Greeting>([&](NodeId, Greeting) { ++heard; });
    // All of them are read before the core comes to the first.
    boost::asio::post(world.io, [this] {
        for (std::size_t count = 0; count < Mail::kWaitingMax + 500; ++count) {
            one.mail.send(node_id(2), Greeting{});
        }
    });
    world.settle();
    EXPECT_EQ(heard + two.mail.counts().overflowed, Mail::kWaitingMax + 500);
    EXPECT_EQ(two.mail.counts().overflowed, 500U);
}

}  // namespace
}  // namespace comfyd::cluster
