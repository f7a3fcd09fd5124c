// Server, client and WebSocket over a unix socket.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "net/client.hpp"
#include "net/local_listener.hpp"
#include "net/test_server.hpp"

namespace comfyd::net {
namespace {

namespace fs = std::filesystem;
using test::Loop;
using test::TestServer;
using testing::HasSubstr;

constexpr Millis kTimeout{10'000};

class LocalSocketTest : public testing::Test {
protected:
    LocalSocketTest() {
        std::string name = fs::temp_directory_path() / "comfyd-XXXXXX";
        folder_ = ::mkdtemp(name.data());
        path_ = folder_ / "own" / "a.sock";
    }
    ~LocalSocketTest() override { fs::remove_all(folder_); }

    Endpoint endpoint() const { return *Endpoint::parse("unix:" + path_.string()); }
    ClientRequest make_get(std::string_view target) const {
        ClientRequest request;
        request.url = "http://localhost" + std::string(target);
        request.socket = path_;
        return request;
    }
    Result<ClientResponse> get(std::string_view target) {
        return loop_.run(client_.send(make_get(target)));
    }
    static mode_t mode_of(const fs::path& path) {
        struct stat status{};
        EXPECT_EQ(::lstat(path.c_str(), &status), 0);
        return status.st_mode & 0777U;
    }
    static Task<Result<WebSocketMessage>> echo(std::unique_ptr<WebSocket> socket) {
        auto written = co_await socket->write("over a file", true);
        if (!written) {
            co_return fail(std::move(written.error()));
        }
        auto answer = co_await socket->read();
        co_await socket->close(1000, "done");
        co_return answer;
    }

    fs::path folder_;
    fs::path path_;
    Loop loop_;
    Client client_{loop_.executor(), {}};
};

TEST_F(LocalSocketTest, RequestsAndFilesAsOverTcp) {
    const TestServer server({}, 2, endpoint());
    for (int i = 0; i < 20; ++i) {
        const auto answer = get("/a?x=1");
        ASSERT_TRUE(answer) << answer.error().message;
        EXPECT_EQ(answer->body, "GET /a x=1");
    }
    EXPECT_EQ(server.counters().connections_total, 1U);
    const auto file = get("/file");
    ASSERT_TRUE(file) << file.error().message;
    EXPECT_EQ(file->body, server.file_bytes);
}

TEST_F(LocalSocketTest, EveryThreadAccepts) {
    TestServer server({}, 4, endpoint());
    std::vector<std::future<Result<ClientResponse>>> answers;
    constexpr int kClients = 32;
    for (int i = 0; i < kClients; ++i) {
        answers.push_back(loop_.start(client_.send(make_get("/hold"))));
    }
    while (server.counters().connections_open < kClients) {
        std::this_thread::yield();
    }
    server.finish = true;
    for (auto& answer : answers) {
        EXPECT_TRUE(test::get(answer));
    }
}

TEST_F(LocalSocketTest, WebSocketAsOverTcp) {
    const TestServer server({}, 2, endpoint());
    auto socket = loop_.run(client_.connect("ws://localhost/ws", {}, kTimeout, path_));
    ASSERT_TRUE(socket) << socket.error().message;
    const auto answer = loop_.run(echo(std::move(*socket)));
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_THAT(answer->data, HasSubstr("over a file"));
}

TEST_F(LocalSocketTest, IsForItsOwnUserOnlyAndGoesWithTheServer) {
    TestServer server({}, 2, endpoint());
    EXPECT_EQ(mode_of(path_), 0600U);
    EXPECT_EQ(mode_of(path_.parent_path()), 0700U);
    server.stop(Millis(0));
    EXPECT_FALSE(fs::exists(path_));
    const auto answer = get("/");
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, Code::connection_failed);
    EXPECT_EQ(answer.error().message, "unix:" + path_.string() + ": connection refused");
}

TEST_F(LocalSocketTest, TakesTheNameOfAServerThatDiedAndOfNobodyElse) {
    const auto left = listen_locally(path_, 1);
    ASSERT_TRUE(left) << left.error().message;
    const auto taken = listen_locally(path_, 1);
    ASSERT_FALSE(taken);
    EXPECT_EQ(taken.error().code, Code::conflict);
    ::close(*left);
    const auto again = listen_locally(path_, 1);
    ASSERT_TRUE(again) << again.error().message;
    ::close(*again);

    fs::remove(path_);
    std::ofstream(path_) << "a file of somebody";
    const auto refused = listen_locally(path_, 1);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::conflict);
    EXPECT_TRUE(fs::is_regular_file(path_));
}

TEST_F(LocalSocketTest, ALongNameIsRefusedWithItsLimit) {
    const auto listening = listen_locally(folder_ / std::string(120, 'x'), 1);
    ASSERT_FALSE(listening);
    EXPECT_EQ(listening.error().code, Code::invalid_argument);
    EXPECT_THAT(listening.error().message, HasSubstr("107 bytes"));
}

TEST_F(LocalSocketTest, IsOutOfReachForAddressesOfStrangers) {
    const TestServer server({}, 2, endpoint());
    ClientOptions options;
    options.policy = AddressPolicy::public_only;
    Client stranger(loop_.executor(), options);
    const auto answer = loop_.run(stranger.send(make_get("/")));
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, Code::connection_failed);
    EXPECT_EQ(server.counters().connections_total, 0U);
    EXPECT_FALSE(Url::parse("unix:" + path_.string()));
}

}  // namespace
}  // namespace comfyd::net
