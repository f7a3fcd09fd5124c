// What the sockets of clients hear.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "standalone/test_support.hpp"

namespace comfyd::standalone {
namespace {

using support::wait_until;
using support::WsStream;
using test::long_work;
using test::parse;
using test::small_picture;
using test::TestServer;

std::string type_of(const json::value& message) {
    return std::string(message.at("type").as_string());
}

bool is_end(const json::value& message, const std::string& id) {
    return type_of(message) == "executing" && message.at("data").at("node").is_null() &&
           message.at("data").at("prompt_id") == json::value(id);
}

class Sockets : public testing::Test {
protected:
    std::unique_ptr<WsStream> open(const std::string& client_id) {
        auto socket = server_.http().ws("/ws?clientId=" + client_id);
        EXPECT_TRUE(socket->connected());
        EXPECT_TRUE(socket->wait_for([&](const json::value& message) {
            return type_of(message) == "status" &&
                   message.at("data").at("sid") == json::value(client_id);
        }));
        return socket;
    }
    static bool wait_end(const WsStream& socket, const std::string& id) {
        return socket.wait_for([&](const json::value& message) { return is_end(message, id); }
        ).has_value();
    }
    static std::vector<std::string> types(const WsStream& socket) {
        std::vector<std::string> found;
        for (const json::value& message : socket.json_messages()) {
            found.push_back(type_of(message));
        }
        return found;
    }

    TestServer server_;
};

TEST_F(Sockets, HearARunInOrder) {
    const auto socket = open("me");
    const std::string id = server_.submit(small_picture(1), {{"client_id", "me"}});
    ASSERT_TRUE(wait_end(*socket, id));
    ASSERT_THAT(
        types(*socket),
        testing::ElementsAre(
            "status",
            "status",
            "status",
            "execution_start",
            "execution_cached",
            "progress_state",
            "executing",
            "progress_state",
            "progress_state",
            "executing",
            "progress_state",
            "progress_state",
            "executing",
            "executed",
            "progress_state",
            "execution_success",
            "status",
            "executing"
        )
    );
    const auto messages = socket->json_messages();
    const json::value& last_state = messages[14].at("data").at("nodes");
    EXPECT_EQ(last_state.as_object().size(), 3U);
    EXPECT_EQ(last_state.at("3").at("state"), "finished");
    EXPECT_EQ(messages[13].at("data").at("output").at("images").at(0).at("type"), "output");
    EXPECT_EQ(messages[16].at("data").at("status").at("exec_info").at("queue_remaining"), 0);
    const json::value history = server_.http().get("/history/" + id).json();
    EXPECT_TRUE(history.as_object().contains(id)) << "complete at the end marker";
}

TEST_F(Sockets, HearACachedRun) {
    server_.run(small_picture(2));
    const auto socket = open("me");
    const std::string id = server_.submit(small_picture(2), {{"client_id", "me"}});
    ASSERT_TRUE(wait_end(*socket, id));
    EXPECT_THAT(
        types(*socket),
        testing::ElementsAre(
            "status",
            "status",
            "status",
            "execution_start",
            "execution_cached",
            "executed",
            "progress_state",
            "execution_success",
            "status",
            "executing"
        )
    );
}

TEST_F(Sockets, HearOfVeryManyNodesInBoundedMessages) {
    constexpr int kNodes = 3'000;
    json::object graph = small_picture(5);
    for (int i = 0; i < kNodes; ++i) {
        json::object node = parse(R"({"class_type": "ImageInvert", "inputs": {}})");
        const std::string source = i == 0 ? "1" : "n" + std::to_string(i - 1);
        node["inputs"].as_object()["image"] = json::array{source, 0};
        graph["n" + std::to_string(i)] = std::move(node);
    }
    graph["3"].as_object()["inputs"].as_object()["images"] =
        json::array{"n" + std::to_string(kNodes - 1), 0};
    const auto socket = open("me");
    const std::string id = server_.submit(graph, {{"client_id", "me"}});
    ASSERT_TRUE(wait_end(*socket, id));
    std::size_t longest = 0;
    int executing = 0;
    for (const json::value& message : socket->json_messages()) {
        executing += type_of(message) == "executing" ? 1 : 0;
        if (type_of(message) == "progress_state") {
            longest = std::max(longest, message.at("data").at("nodes").as_object().size());
        }
    }
    EXPECT_EQ(executing, kNodes + 3) << "all of them, and the end";
    EXPECT_LE(longest, 512U);
}

TEST_F(Sockets, HearOnlyWhatIsTheirs) {
    const auto mine = open("mine");
    const auto other = open("other");
    const std::string id = server_.submit(small_picture(3), {{"client_id", "mine"}});
    ASSERT_TRUE(wait_end(*mine, id));
    EXPECT_TRUE(wait_until([&] { return types(*other).size() == 4; }));
    EXPECT_THAT(types(*other), testing::Each("status"));
}

TEST_F(Sockets, HearProgressOfPromptsWithoutAClient) {
    const auto socket = open("me");
    server_.run(small_picture(4));
    EXPECT_TRUE(wait_until([&] {
        const auto heard = types(*socket);
        return std::count(heard.begin(), heard.end(), "status") == 4;
    }));
    const auto heard = types(*socket);
    EXPECT_EQ(std::count(heard.begin(), heard.end(), "progress_state"), 6);
    EXPECT_EQ(std::count(heard.begin(), heard.end(), "execution_start"), 0);
    EXPECT_EQ(std::count(heard.begin(), heard.end(), "executed"), 0);
}

TEST_F(Sockets, GetANameWhenTheyHaveNone) {
    const auto socket = server_.http().ws("/ws");
    const auto first =
        socket->wait_for([](const json::value& message) { return type_of(message) == "status"; });
    ASSERT_TRUE(first);
    EXPECT_EQ(first->at("data").at("sid").as_string().size(), 32U);
    EXPECT_EQ(server_.http().get("/ws").status, 400) << "for WebSockets only";
}

TEST_F(Sockets, TheNewestOfAnIdHearsAndTheOldOneMayLeave) {
    auto old_one = open("me");
    const auto new_one = open("me");
    const std::string first = server_.submit(small_picture(5), {{"client_id", "me"}});
    ASSERT_TRUE(wait_end(*new_one, first));
    EXPECT_THAT(types(*old_one), testing::Each("status"));
    old_one.reset();
    const std::string second = server_.submit(small_picture(6), {{"client_id", "me"}});
    EXPECT_TRUE(wait_end(*new_one, second)) << "still heard after the older has gone";
}

TEST_F(Sockets, AnOlderOneOfAnIdTakesOverWhenTheNewestLeaves) {
    const auto old_one = open("me");
    auto new_one = open("me");
    new_one.reset();
    // The server learns of it a moment later.
    ASSERT_TRUE(wait_until([&] {
        const std::string id = server_.submit(small_picture(7), {{"client_id", "me"}});
        server_.wait_ended(id);
        const auto heard = types(*old_one);
        return std::find(heard.begin(), heard.end(), "execution_start") != heard.end();
    }));
}

TEST_F(Sockets, ComeBackInTheMiddleOfARun) {
    auto first = open("me");
    const std::string id = server_.submit(long_work(), {{"client_id", "me"}});
    ASSERT_TRUE(first->wait_for([](const json::value& message) {
        return type_of(message) == "executing" && message.at("data").at("node") == json::value("2");
    }));
    first.reset();
    const auto second = open("me");
    const auto told = second->wait_for([](const json::value& message) {
        return type_of(message) == "executing";
    });
    ASSERT_TRUE(told);
    EXPECT_EQ(told->at("data"), parse(R"({"node": "2"})"));
    server_.http().post("/interrupt", "");
    EXPECT_TRUE(wait_end(*second, id));
    const auto heard = types(*second);
    EXPECT_NE(std::find(heard.begin(), heard.end(), "execution_interrupted"), heard.end());
}

TEST_F(Sockets, GetPicturesInTheFormThatTheyUnderstand) {
    const auto plain = open("plain");
    const auto modern = open("modern");
    modern->send(R"({"type": "feature_flags", "data": {"supports_preview_metadata": true}})");
    const auto flags = modern->wait_for([](const json::value& message) {
        return type_of(message) == "feature_flags";
    });
    ASSERT_TRUE(flags);
    EXPECT_EQ(flags->at("data"), server_.http().get("/features").json());
    for (const char* client : {"plain", "modern"}) {
        const std::string id = server_.submit(
            parse(R"({
                "1": {"class_type": "EmptyImage", "inputs": {"width": 8, "height": 8, "batch_size": 2, "color": 1}},
                "2": {"class_type": "SaveImageWebsocket", "inputs": {"images": ["1", 0]}}})"),
            {{"client_id", client}}
        );
        const auto& socket = client == std::string("plain") ? plain : modern;
        ASSERT_TRUE(wait_end(*socket, id));
        server_.http().post_json("/free", {{"free_memory", true}});
    }
    const auto pictures = [](const WsStream& socket) {
        std::vector<std::string> found;
        for (const auto& message : socket.messages()) {
            if (message.binary) {
                found.push_back(message.data);
            }
        }
        return found;
    };
    ASSERT_EQ(pictures(*plain).size(), 2U);
    EXPECT_EQ(pictures(*plain)[0].substr(0, 12), std::string("\0\0\0\1\0\0\0\2\x89PNG", 12));
    ASSERT_EQ(pictures(*modern).size(), 2U);
    EXPECT_EQ(pictures(*modern)[0].substr(0, 4), std::string("\0\0\0\4", 4));
    EXPECT_NE(pictures(*modern)[0].find("\"node_id\": \"2\""), std::string::npos);
}

TEST_F(Sockets, AllHearTextsOfNodes) {
    const auto socket = open("somebody");
    server_.run(parse(R"({
        "1": {"class_type": "EmptyImage", "inputs": {"width": 8, "height": 4, "batch_size": 1, "color": 1}},
        "2": {"class_type": "GetImageSize", "inputs": {"image": ["1", 0]}},
        "3": {"class_type": "PreviewAny", "inputs": {"source": ["2", 0]}}})"));
    EXPECT_TRUE(wait_until([&] {
        for (const auto& message : socket->messages()) {
            if (message.binary && message.data.starts_with(std::string(
                                      "\0\0\0\3\0\0\0\1"
                                      "2",
                                      9
                                  ))) {
                return true;
            }
        }
        return false;
    }));
}

TEST_F(Sockets, HearTheLogWhenTheyAsk) {
    const auto socket = open("me");
    const auto subscribe = [&](bool enabled) {
        const json::object body{{"clientId", "me"}, {"enabled", enabled}};
        return server_.http().send(
            {.method = "PATCH", .url = "/internal/logs/subscribe", .body = json::serialize(body)}
        );
    };
    EXPECT_EQ(subscribe(true).status, 200);
    server_.run(small_picture(8));
    EXPECT_TRUE(socket->wait_for([](const json::value& message) {
        return type_of(message) == "logs" &&
               message.at("data").at("entries").at(0).at("m") == json::value("got prompt\n");
    }));
    EXPECT_EQ(subscribe(false).status, 200);
    EXPECT_NE(server_.http().get("/internal/logs").body.find("got prompt"), std::string::npos);
    EXPECT_EQ(server_.http().get("/internal/logs/raw").json_at("/entries/0/m"), "got prompt\n");
}

// A client that opens a socket and never reads it.
class DeafClient {
public:
    explicit DeafClient(const std::string& url)
        : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        const int small = 4'096;
        ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port =
            htons(static_cast<std::uint16_t>(std::stoi(url.substr(url.rfind(':') + 1))));
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        EXPECT_EQ(::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
        const std::string request =
            "GET /ws?clientId=deaf HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\n"
            "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
        EXPECT_EQ(
            ::send(socket_, request.data(), request.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(request.size())
        );
        char answer[16];
        EXPECT_EQ(::recv(socket_, answer, sizeof answer, MSG_WAITALL), 16);
    }
    ~DeafClient() { ::close(socket_); }
    DeafClient(const DeafClient&) = delete;
    DeafClient& operator=(const DeafClient&) = delete;

    // Reads on until the server has closed the connection.
    bool is_cut_off() {
        const timeval patience{20, 0};
        ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        char bytes[64 * 1024];
        for (;;) {
            const ssize_t count = ::recv(socket_, bytes, sizeof bytes, 0);
            if (count <= 0) {
                return count == 0 || errno == ECONNRESET;
            }
        }
    }

private:
    int socket_;
};

TEST(SlowReaders, AreCutOffAndNobodyWaitsForThem) {
    Options options;
    options.socket_bytes_max = 256 * 1024;
    TestServer server(options);
    DeafClient deaf(server.url());
    const json::value entry = server.run(
        parse(R"({
            "1": {"class_type": "EmptyImage", "inputs": {"width": 1024, "height": 1024, "batch_size": 1, "color": 1}},
            "2": {"class_type": "ImageAddNoise", "inputs": {"image": ["1", 0], "seed": 1, "strength": 1.0}},
            "3": {"class_type": "RepeatImageBatch", "inputs": {"image": ["2", 0], "amount": 8}},
            "4": {"class_type": "SaveImageWebsocket", "inputs": {"images": ["3", 0]}}})"),
        {{"client_id", "deaf"}}
    );
    EXPECT_EQ(entry.at("status").at("completed"), true) << json::serialize(entry);
    EXPECT_TRUE(deaf.is_cut_off());
    EXPECT_EQ(server.run(small_picture(9)).at("status").at("completed"), true);
}

}  // namespace
}  // namespace comfyd::standalone
