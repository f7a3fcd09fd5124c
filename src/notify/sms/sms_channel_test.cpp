#include "notify/sms/sms_channel.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>

#include "net/http.hpp"
#include "net/test_support.hpp"
#include "notify/test_support.hpp"

namespace comfyd::notify::sms {
namespace {

using Kind = Outcome::Kind;
using test::Receiver;

// Takes each request and hangs up without an answer.
class Deaf {
public:
    Deaf() : acceptor_(context_, {boost::asio::ip::make_address("127.0.0.1"), 0}) {
        thread_ = std::thread([this] { serve(); });
    }
    ~Deaf() {
        stopping_ = true;
        boost::asio::ip::tcp::socket last(context_);
        boost::system::error_code ignored;
        last.connect(acceptor_.local_endpoint(), ignored);
        thread_.join();
    }
    std::string url() const {
        return "http://127.0.0.1:" + std::to_string(acceptor_.local_endpoint().port());
    }
    int heard() const { return heard_; }

private:
    void serve() {
        while (true) {
            boost::asio::ip::tcp::socket socket(context_);
            acceptor_.accept(socket);
            if (stopping_) {
                return;
            }
            std::string request;
            boost::system::error_code ignored;
            boost::asio::read_until(socket, boost::asio::dynamic_buffer(request), "Body=", ignored);
            ++heard_;
        }
    }

    boost::asio::io_context context_;
    boost::asio::ip::tcp::acceptor acceptor_;
    std::atomic<bool> stopping_{false};
    std::atomic<int> heard_{0};
    std::thread thread_;
};

class SmsChannelTest : public testing::Test {
protected:
    void open(const std::string& url, Restraint::Limits limits = {}) {
        SmsOptions options;
        options.gateway =
            twilio({.url = url, .account = "AC1", .user = "AC1", .secret = "s", .from = "+1"});
        options.limits = limits;
        std::map<std::string, SmsOptions> senders;
        senders["pager"] = std::move(options);
        channel_.emplace(loop_.executor(), clock_, clock_, std::move(senders));
    }
    void open(Restraint::Limits limits = {}) { open(receiver_.url(""), limits); }
    ~SmsChannelTest() override {
        if (channel_) {
            loop_.run(close(*channel_));
        }
    }
    static Task<> close(SmsChannel& channel) {
        channel.close();
        co_return;
    }
    Message message(const std::string& reason = "boom", const std::string& to = "+4917112345") {
        jobs::Spec spec;
        spec.dialect = "test";
        spec.workflow_id = "w";
        const auto made = jobs::make_job(JobId::make(clock_.now()), spec, clock_.now());
        const auto started = jobs::start(made.job, "gpu", 2, clock_.now());
        jobs::Failure failure;
        failure.message = reason;
        const auto failed = jobs::fail_job(started->job, failure, 3, clock_.now());
        return {SmsTarget{"pager", to}, failed->job, failed->event};
    }
    Outcome deliver(Message message) { return loop_.run(channel_->deliver(std::move(message))); }
    static net::Response created() {
        net::Response response;
        response.status = 201;
        response.body = R"({"sid":"SM1"})";
        return response;
    }

    ManualClock clock_;
    net::test::Loop loop_;
    Receiver receiver_;
    std::optional<SmsChannel> channel_;
};

TEST_F(SmsChannelTest, TellsInFewWords) {
    open();
    receiver_.answer_next(created());
    const Message told = message("out of memory");
    EXPECT_EQ(deliver(told).kind, Kind::delivered);
    const auto received = receiver_.received();
    ASSERT_EQ(received.size(), 1U);
    std::string text;
    for (const auto& [name, value] : net::parse_query(received[0].body)) {
        text = name == "Body" ? value : text;
    }
    EXPECT_EQ(text, "comfyd: Job failed: w. out of memory (job " + told.job.id.to_string() + ")");
}

TEST_F(SmsChannelTest, LongReasonsAreCut) {
    open();
    receiver_.answer_next(created());
    EXPECT_EQ(deliver(message(std::string(5000, 'x'))).kind, Kind::delivered);
    for (const auto& [name, value] : net::parse_query(receiver_.received()[0].body)) {
        if (name == "Body") {
            EXPECT_EQ(value.size(), 306U);
        }
    }
}

TEST_F(SmsChannelTest, ALostAnswerIsRepeatedOnceAndNotAgain) {
    Deaf deaf;
    open(deaf.url());
    const Message told = message();
    const Outcome first = deliver(told);
    EXPECT_EQ(first.kind, Kind::retry) << first.error;
    const Outcome second = deliver(told);
    EXPECT_EQ(second.kind, Kind::give_up) << second.error;
    EXPECT_EQ(deaf.heard(), 2);
    EXPECT_EQ(deliver(message()).kind, Kind::retry) << "another message has its own repetition";
}

TEST_F(SmsChannelTest, AGatewayThatCannotBeReachedIsTriedAsLongAsItTakes) {
    std::string nowhere;
    {
        const Deaf gone;
        nowhere = gone.url();
    }
    open(nowhere);
    const Message told = message();
    for (int i = 0; i < 5; ++i) {
        EXPECT_EQ(deliver(told).kind, Kind::retry);
    }
}

TEST_F(SmsChannelTest, WrongCredentialsPauseTheChannelAndBurnNothing) {
    open();
    net::Response refused;
    refused.status = 401;
    refused.body = R"({"code":20003,"message":"Authenticate"})";
    receiver_.answer_next(std::move(refused));
    const Outcome first = deliver(message());
    EXPECT_EQ(first.kind, Kind::put_aside);
    ASSERT_TRUE(first.next_at);
    EXPECT_GT(*first.next_at, clock_.now());
    EXPECT_EQ(deliver(message()).kind, Kind::put_aside);
    EXPECT_EQ(receiver_.received().size(), 1U) << "a paused channel asks nobody";
    clock_.advance(*first.next_at - clock_.now());
    receiver_.answer_next(created());
    EXPECT_EQ(deliver(message()).kind, Kind::delivered);
}

TEST_F(SmsChannelTest, SoManyAndNoMore) {
    open({.of_channel = {3, std::chrono::minutes(1)}});
    for (int i = 0; i < 3; ++i) {
        receiver_.answer_next(created());
        EXPECT_EQ(deliver(message()).kind, Kind::delivered);
    }
    EXPECT_EQ(deliver(message()).kind, Kind::put_aside);
    EXPECT_EQ(receiver_.received().size(), 3U);
}

TEST_F(SmsChannelTest, AChannelThatIsGoneSaysSo) {
    open();
    EXPECT_FALSE(channel_->lane_of(SmsTarget{"other", "+4917112345"}));
    EXPECT_FALSE(channel_->lane_of(SmsTarget{"pager", "12"}));
    EXPECT_TRUE(channel_->lane_of(SmsTarget{"pager", "+4917112345"}));
}

}  // namespace
}  // namespace comfyd::notify::sms
