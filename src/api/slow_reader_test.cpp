// A client that does not read its stream costs a bounded amount of memory, and nobody else
// anything.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

#include "api/dialects/comfy_v2/comfy_v2_fixture.hpp"

namespace comfyd::api {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using test::self_of;
using test::submit_job;
using test::TestApi;
using test::text;

constexpr std::size_t kEventBytes = 8 * 1024;
constexpr std::size_t kAtOnce = 20;
// More than all that the kernel takes for a client that does not read.
constexpr std::size_t kEvents = 1'500;

// A stream that is opened and read only where somebody wants it.
class Stream {
public:
    Stream(std::uint16_t port, const std::string& path) : socket_(context_) {
        socket_.open(tcp::v4());
        socket_.set_option(asio::socket_base::receive_buffer_size(16 * 1024));
        socket_.connect({asio::ip::address_v4::loopback(), port});
        asio::write(socket_, asio::buffer("GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n"));
        // It has begun, so whatever is published from now on is for it, too.
        read_until("event: status");
    }

    // Marks come one after the other.
    void read_until(std::string_view mark) {
        while (received_.find(mark, read_to_) == std::string::npos) {
            std::vector<char> piece(64 * 1024);
            boost::system::error_code error;
            const std::size_t count = socket_.read_some(asio::buffer(piece), error);
            ASSERT_FALSE(error) << error.message();
            received_.append(piece.data(), count);
        }
        read_to_ = received_.find(mark, read_to_);
    }
    const std::string& received() const { return received_; }

private:
    asio::io_context context_;
    tcp::socket socket_;
    std::string received_;
    std::size_t read_to_ = 0;
};

class SlowReader : public testing::TestWithParam<std::size_t> {
protected:
    SlowReader() : job_(submit_job(api_)) {
        id_ = *JobId::parse(text(job_, "id"));
        events_path_ = self_of(job_) + "/events";
    }

    void wait_for_watchers(std::size_t count) {
        const auto watchers = [this] {
            std::size_t there = 0;
            api_.on_core([this, &there] { there = api_.hub().subscription_count(); });
            return there;
        };
        while (watchers() != count) {
            std::this_thread::yield();
        }
    }
    void publish(std::uint64_t sequence) {
        auto event = std::make_shared<jobs::Event>();
        event->job = id_;
        event->sequence = sequence;
        event->type = jobs::EventType::output;
        event->state = jobs::State::running;
        jobs::Output output;
        output.name = std::string(kEventBytes, 'x');
        event->data["output"] = output.to_json();
        published_.emplace_back(event);
        jobs::Job job;
        job.id = id_;
        job.tenant = "local";
        api_.on_core([this, job, event] { api_.hub().publish(job, events::Shown{event}); });
    }
    std::size_t held() const {
        return static_cast<std::size_t>(std::ranges::count_if(published_, [](const auto& event) {
            return !event.expired();
        }));
    }

    TestApi api_;
    json::object job_;
    JobId id_;
    std::string events_path_;
    std::vector<std::weak_ptr<const jobs::Event>> published_;
};
INSTANTIATE_TEST_SUITE_P(Others, SlowReader, testing::Values(1U, 4U));

TEST_P(SlowReader, CostsABoundedAmountAndHoldsUpNobody) {
    const Stream slow(api_.port, events_path_);
    std::vector<std::unique_ptr<Stream>> others;
    for (std::size_t i = 0; i < GetParam(); ++i) {
        others.push_back(std::make_unique<Stream>(api_.port, events_path_));
    }
    wait_for_watchers(1 + others.size());
    constexpr std::uint64_t kFirst = 1'000;
    for (std::uint64_t next = 0; next < kEvents;) {
        for (std::size_t i = 0; i < kAtOnce; ++i) {
            publish(kFirst + next++);
        }
        const std::string latest = "id: " + std::to_string(kFirst + next - 1) + "\n";
        for (const auto& other : others) {
            other->read_until(latest);
        }
    }
    for (const auto& other : others) {
        std::size_t at = 0;
        for (std::uint64_t i = 0; i < kEvents; ++i) {
            at = other->received().find("id: " + std::to_string(kFirst + i) + "\n", at);
            ASSERT_NE(at, std::string::npos) << "each, in its order: " << i;
        }
    }
    // What waits for it, and what is kept for all.
    constexpr std::size_t kKept = FrameShelf::kParts * FrameShelf::kFramesOfPart;
    constexpr std::size_t kOnTheirWay = kAtOnce;
    EXPECT_LE(held(), events::Subscription::kBufferMax + kKept + kOnTheirWay);
}

}  // namespace
}  // namespace comfyd::api
