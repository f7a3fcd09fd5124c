#include "comfy/client.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <mutex>

#include "base/wait_for.hpp"
#include "net/io_threads.hpp"
#include "net/server.hpp"

namespace comfyd::comfy {
namespace {

using testing::HasSubstr;

// A server that answers each "METHOD /path" as it was told, and keeps the bodies that it got.
class ClientTest : public testing::Test {
protected:
    ClientTest()
        : io_("io"), pool_(1), server_({&io_.context()}, {}, [this](net::Exchange& exchange) {
              return answer(exchange);
          }) {
        const auto endpoint = server_.listen({});
        EXPECT_TRUE(endpoint);
        http_ = std::make_unique<net::Client>(io_.executor(), net::ClientOptions{});
        const std::string url = "http://" + endpoint->to_string() + "/prefix/";
        client_ = std::make_unique<Client>(*http_, pool_, url, ClientTimeouts{});
        io_.start();
    }
    ~ClientTest() override {
        server_.stop(Millis(0));
        io_.stop();
    }

    template <class Value>
    Value wait(Task<Value> task) {
        return wait_for(io_.executor(), std::move(task));
    }
    void reply(
        const std::string& request,
        int status,
        std::string body,
        std::string type = "application/json"
    ) {
        const std::lock_guard lock(mutex_);
        net::Response response;
        response.status = status;
        response.headers.set("Content-Type", std::move(type));
        response.body = std::move(body);
        replies_[request] = std::move(response);
    }
    std::string received(const std::string& request) {
        const std::lock_guard lock(mutex_);
        return received_[request];
    }

    std::unique_ptr<Client> client_;
    std::vector<net::WebSocketMessage> messages_;  // that a socket gets

private:
    Task<> answer(net::Exchange& exchange) {
        const std::string key = exchange.request().method_name + " " + exchange.request().target;
        auto body = co_await exchange.read_body(1'000'000);
        net::Response response;
        {
            const std::lock_guard lock(mutex_);
            received_[key] = body ? *body : "";
            const auto found = replies_.find(key);
            response = found == replies_.end() ? net::Response{404, {}, ""} : found->second;
        }
        if (response.status == 101) {
            auto socket = co_await exchange.upgrade({});
            for (std::size_t i = 0; socket && i < messages_.size(); ++i) {
                co_await (*socket)->write(messages_[i].data, messages_[i].binary);
            }
            if (socket) {
                co_await (*socket)->read();  // the client's greeting
                co_await (*socket)->read();  // its end
            }
            co_return;
        }
        co_await exchange.send(std::move(response));
    }

    std::mutex mutex_;
    std::map<std::string, net::Response> replies_;
    std::map<std::string, std::string> received_;
    net::IoThread io_;
    Pool pool_;
    net::Server server_;
    std::unique_ptr<net::Client> http_;
};

TEST_F(ClientTest, KeepsThePrefixOfItsUrl) {
    reply("GET /prefix/system_stats", 200, R"({"system":{"comfyui_version":"1"}})");
    const auto stats = wait(client_->system_stats());
    ASSERT_TRUE(stats) << stats.error().message;
    EXPECT_EQ(stats->version, "1");
}

TEST_F(ClientTest, OtherStatusesAreErrorsWithTheirAnswer) {
    reply("GET /prefix/queue", 500, "500 Internal Server Error", "text/plain");
    const auto queue = wait(client_->queue());
    ASSERT_FALSE(queue);
    EXPECT_EQ(queue.error().code, Code::upstream_error);
    EXPECT_EQ(queue.error().details.at("status"), 500);
    EXPECT_EQ(queue.error().details.at("body"), "500 Internal Server Error");
}

TEST_F(ClientTest, UnreadableAnswersAreProtocolErrors) {
    for (const std::string body : {"", "{", "[]", "<html>"}) {
        reply("GET /prefix/queue", 200, body);
        reply("GET /prefix/system_stats", 200, body);
        reply("GET /prefix/history/p", 200, body);
        reply("POST /prefix/prompt", 200, body);
        EXPECT_EQ(wait(client_->queue()).error().code, Code::protocol_error);
        EXPECT_EQ(wait(client_->system_stats()).error().code, Code::protocol_error);
        EXPECT_EQ(wait(client_->history("p")).error().code, Code::protocol_error);
        EXPECT_EQ(wait(client_->submit({"p", "c", "{}", {}})).error().code, Code::protocol_error);
    }
}

TEST_F(ClientTest, HistoryOfAnUnknownPromptIsEmpty) {
    reply("GET /prefix/history/p", 200, "{}");
    const auto history = wait(client_->history("p"));
    ASSERT_TRUE(history);
    EXPECT_FALSE(history->has_value());
}

TEST_F(ClientTest, SubmitSendsTheTextAsItIs) {
    reply(
        "POST /prefix/prompt",
        200,
        R"({"prompt_id":"p","number":1,"node_errors":{"4":{"errors":[]}}})"
    );
    Submission submission{"p", "c", R"({"1":{"inputs":{"x":1.50}}})", {}};
    submission.extra_data["a"] = "b";
    const auto accepted = wait(client_->submit(submission));
    ASSERT_TRUE(accepted);
    EXPECT_TRUE(accepted->node_errors.contains("4"));
    EXPECT_EQ(
        received("POST /prefix/prompt"),
        R"({"prompt":{"1":{"inputs":{"x":1.50}}},"prompt_id":"p","client_id":"c","extra_data":{"a":"b"}})"
    );
}

TEST_F(ClientTest, ARefusedSubmissionKeepsTheServersAnswer) {
    reply(
        "POST /prefix/prompt",
        400,
        R"({"error":{"type":"prompt_no_outputs","message":"no outputs"},"node_errors":{}})"
    );
    const auto refused = wait(client_->submit({"p", "c", "{}", {}}));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::worker_rejected);
    EXPECT_EQ(refused.error().details.at("error").at("type"), "prompt_no_outputs");
    reply("POST /prefix/prompt", 400, "");
    EXPECT_EQ(wait(client_->submit({"p", "c", "{}", {}})).error().code, Code::upstream_error);
}

TEST_F(ClientTest, CommandsNameTheirPrompt) {
    reply("POST /prefix/interrupt", 200, "");
    reply("POST /prefix/queue", 200, "");
    reply("POST /prefix/free", 200, "");
    EXPECT_TRUE(wait(client_->interrupt("p")));
    EXPECT_TRUE(wait(client_->delete_queued("p")));
    EXPECT_TRUE(wait(client_->free(true, false)));
    EXPECT_EQ(received("POST /prefix/interrupt"), R"({"prompt_id":"p"})");
    EXPECT_EQ(received("POST /prefix/queue"), R"({"delete":["p"]})");
    EXPECT_EQ(received("POST /prefix/free"), R"({"unload_models":true,"free_memory":false})");
}

TEST_F(ClientTest, WhatAnAgentSaysOfItsComfyUiIsInTheMessage) {
    reply(
        "GET /prefix/queue", 503, R"({"code":"worker_unavailable","detail":"ComfyUI has ended"})"
    );
    EXPECT_EQ(
        wait(client_->queue()).error().message,
        "GET /queue was answered with status 503: ComfyUI has ended"
    );
}

TEST_F(ClientTest, APromptIsStoppedInOneStepWhereTheServerCan) {
    reply("POST /prefix/api/jobs/p/cancel", 200, R"({"cancelled":true})");
    reply("POST /prefix/interrupt", 200, "");
    EXPECT_TRUE(wait(client_->interrupt("p")));
    EXPECT_EQ(received("POST /prefix/interrupt"), "");
    reply("POST /prefix/api/jobs/p/cancel", 405, "405: Method Not Allowed", "text/plain");
    EXPECT_TRUE(wait(client_->interrupt("p")));
    EXPECT_EQ(received("POST /prefix/interrupt"), R"({"prompt_id":"p"})");
}

TEST_F(ClientTest, UploadTakesTheNameThatTheServerGave) {
    reply(
        "POST /prefix/upload/image", 200, R"({"name":"x (1).png","subfolder":"s","type":"input"})"
    );
    const auto stored = wait(client_->upload("s", "x.png", "image/png", "bytes"));
    ASSERT_TRUE(stored);
    EXPECT_EQ(stored->path(), "s/x (1).png");
    EXPECT_THAT(received("POST /prefix/upload/image"), HasSubstr("filename=\"x.png\""));
    EXPECT_THAT(received("POST /prefix/upload/image"), HasSubstr("name=\"subfolder\""));
    reply("POST /prefix/upload/image", 200, R"({"subfolder":"s"})");
    EXPECT_EQ(wait(client_->upload("s", "x.png", "", "bytes")).error().code, Code::protocol_error);
    reply("POST /prefix/upload/image", 413, "too large");
    EXPECT_EQ(wait(client_->upload("s", "x.png", "", "bytes")).error().code, Code::upstream_error);
}

TEST_F(ClientTest, ViewStreamsAFileAndSaysItsType) {
    reply(
        "GET /prefix/view?filename=a%20b.png&subfolder=s&type=temp", 200, "pixels", "image/png; x=y"
    );
    std::string bytes;
    const auto type =
        wait(client_->view({"a b.png", "s", "temp"}, [&bytes](std::string_view piece) {
            bytes += piece;
            return Result<>();
        }));
    ASSERT_TRUE(type) << type.error().message;
    EXPECT_EQ(*type, "image/png");
    EXPECT_EQ(bytes, "pixels");
    const auto missing =
        wait(client_->view({"none.png", "", "output"}, [](std::string_view) { return Result<>(); })
        );
    EXPECT_EQ(missing.error().code, Code::not_found);
}

TEST_F(ClientTest, AServerWithoutWebSocketIsAFailure) {
    EXPECT_FALSE(wait(client_->connect_events("c")));
}

// Whatever a worker answers, no more is taken in than its kind may need.
TEST_F(ClientTest, AnswersAreLimitedByKind) {
    const std::string padding(2 * 1024 * 1024, ' ');
    reply("GET /prefix/system_stats", 200, "{}" + padding);
    reply("POST /prefix/interrupt", 200, padding);
    reply("POST /prefix/upload/image", 200, R"({"name":"a.png"})" + padding);
    EXPECT_EQ(wait(client_->system_stats()).error().code, Code::payload_too_large);
    EXPECT_EQ(wait(client_->interrupt("p")).error().code, Code::payload_too_large);
    EXPECT_EQ(wait(client_->upload("s", "a.png", "", "x")).error().code, Code::payload_too_large);

    // Those that hold whole prompts may be larger; they are read on the pool.
    reply(
        "GET /prefix/queue",
        200,
        R"({"queue_running":[[0,"p",{},{},[]]],"queue_pending":[]})" + padding
    );
    reply(
        "GET /prefix/history/p",
        200,
        R"({"p":{"outputs":{"9":{"text":["a"]}},"status":{"status_str":"success","completed":true,"messages":[]}}})" +
            padding
    );
    reply("GET /prefix/object_info", 200, "{}" + padding);
    const auto queue = wait(client_->queue());
    ASSERT_TRUE(queue) << queue.error().message;
    EXPECT_TRUE(queue->is_running("p"));
    const auto history = wait(client_->history("p"));
    ASSERT_TRUE(history && *history);
    EXPECT_TRUE((*history)->outputs.contains("9"));
    EXPECT_TRUE(wait(client_->object_info()));
}

TEST_F(ClientTest, LargeMessagesComeInOrderAndHugeTextsAreSkipped) {
    const auto text_of_size = [](std::size_t bytes) {
        return R"({"type":"executing","data":{"prompt_id":"p","node":")" + std::string(bytes, '7') +
               R"("}})";
    };
    for (const std::size_t bytes : {1UL, 300UL * 1024, 9UL * 1024 * 1024, 2UL}) {
        messages_.push_back({text_of_size(bytes), false});
    }
    reply("GET /prefix/ws?clientId=c", 101, "");
    auto events = wait(client_->connect_events("c"));
    ASSERT_TRUE(events) << events.error().message;
    std::vector<std::size_t> sizes;
    for (std::size_t i = 0; i < messages_.size(); ++i) {
        const auto message = wait((*events)->next());
        ASSERT_TRUE(message) << message.error().message;
        const auto* executing = std::get_if<Executing>(&*message);
        sizes.push_back(executing == nullptr ? 0 : executing->node->size());
    }
    EXPECT_THAT(sizes, testing::ElementsAre(1, 300 * 1024, 0, 2));
    wait([](std::unique_ptr<Events> done) -> Task<bool> {
        done->abort();
        co_return true;
    }(std::move(*events)));
}

}  // namespace
}  // namespace comfyd::comfy
