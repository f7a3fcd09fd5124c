// The board on a thread of its own, beside those of the jobs and of a client.
#include <gtest/gtest.h>

#include <future>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_future.hpp>

#include "api/dialects/native/board.hpp"
#include "api/dialects/native/names.hpp"
#include "api/test_support.hpp"
#include "base/hop.hpp"
#include "comfy/members.hpp"
#include "events/local_hub.hpp"
#include "net/io_threads.hpp"

namespace comfyd::api::native {
namespace {

constexpr int kPrompts = 300;

using Stories = std::map<std::string, std::vector<std::string>>;

// One connection sends prompts, the other reads what it is told; both on the client's thread.
class Client {
public:
    Client(jobs::Service& jobs, Board& board, std::shared_ptr<Mailbox> mailbox)
        : jobs_(jobs), board_(board), mailbox_(std::move(mailbox)) {}

    Task<bool> connect() {
        auto running = co_await call_on(board_.executor(), [this] {
            return board_.attach("me", "client", mailbox_);
        });
        co_return !running;
    }

    Task<bool> send_prompts() {
        for (int i = 0; i < kPrompts; ++i) {
            jobs::Spec spec;
            spec.id = JobId::make(SystemClock().now());
            spec.tenant = "me";
            spec.dialect = kDialect;
            spec.dialect_data["client_id"] = "client";
            const JobId id = *spec.id;
            board_.expect("me", id);
            auto submitted = co_await jobs_.submit(std::move(spec));
            if (!submitted) {
                co_return false;
            }
            auto unfinished = co_await jobs_.unfinished("me");
            static_cast<void>(unfinished);
            stories_[id.to_string()].emplace_back("answered");
            boost::asio::post(board_.executor(), [this, id] { board_.release(id, true); });
        }
        co_return true;
    }

    Task<bool> read_all() {
        for (int ended = 0; ended < kPrompts;) {
            auto frame = co_await mailbox_->next(Millis(30'000));
            if (!frame) {
                co_return false;
            }
            const json::object& message = (*frame)->message;
            const std::string id = comfy::text_of(*comfy::object_of(message, "data"), "prompt_id");
            if (!id.empty()) {
                stories_[id].push_back(comfy::text_of(message, "type"));
                ended += stories_[id].back() == "executing" ? 1 : 0;
            }
        }
        co_return true;
    }

    const Stories& stories() const { return stories_; }

private:
    jobs::Service& jobs_;
    Board& board_;
    std::shared_ptr<Mailbox> mailbox_;
    Stories stories_;
};

Task<bool> done(Task<> task) {
    co_await std::move(task);
    co_return true;
}

class BoardThreadsTest : public testing::TestWithParam<std::size_t> {
protected:
    template <class T>
    static std::future<T> start(net::IoThread& thread, Task<T> task) {
        return boost::asio::co_spawn(thread.executor(), std::move(task), boost::asio::use_future);
    }

    net::IoThread core_{"core"};
    net::IoThread own_{"board"};
    net::IoThread io_{"io"};
    SystemClock clock_;
    test::MemoryLedger ledger_;
    test::OneWorkerFleet fleet_;
    events::LocalHub hub_{core_.executor()};
    jobs::Service service_{core_.executor(), clock_, ledger_, hub_, {}};
    Board board_{service_, own_.executor(), GetParam()};
    Client client_{service_, board_, std::make_shared<Mailbox>(io_.executor())};
};

INSTANTIATE_TEST_SUITE_P(Room, BoardThreadsTest, testing::Values(1, 4, Board::kWaitingMax));

TEST_P(BoardThreadsTest, EveryPromptIsToldOfWhollyAndAfterItsAnswer) {
    fleet_.worker->open = true;
    boost::asio::post(own_.executor(), [this] { board_.start(); });
    core_.start();
    own_.start();
    io_.start();
    ASSERT_TRUE(start(core_, service_.lead("main", {ledger_, fleet_})).get());
    ASSERT_TRUE(start(io_, client_.connect()).get());
    auto read = start(io_, client_.read_all());
    EXPECT_TRUE(start(io_, client_.send_prompts()).get());
    EXPECT_TRUE(read.get());
    start(core_, done(service_.stop(Millis(0)))).get();
    start(own_, done(board_.stop())).get();
    io_.stop();
    own_.stop();
    core_.stop();
    ASSERT_EQ(client_.stories().size(), static_cast<std::size_t>(kPrompts));
    const std::vector<std::string> whole{
        "answered", "execution_start", "execution_success", "executing"
    };
    for (const auto& [id, story] : client_.stories()) {
        EXPECT_EQ(story, whole) << id;
    }
}

}  // namespace
}  // namespace comfyd::api::native
