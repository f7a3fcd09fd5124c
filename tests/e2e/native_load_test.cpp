// Many clients at once, each of which follows its own prompt: nobody hears of another's, and
// everybody hears all of its own in order.
#include <sys/resource.h>

#include <future>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>

#include "native_support.hpp"
#include "net/client.hpp"

namespace comfyd::support {
namespace {

constexpr int kClients = 1'000;
constexpr Millis kPatience{120'000};

struct Heard {
    std::string prompt_id;
    std::vector<std::string> story;  // types; of `executing` the node with it
    bool foreign = false;            // a message about somebody else's prompt
    std::string trouble;
};

// All clients live on one thread, each in a coroutine.
class Crowd {
public:
    explicit Crowd(std::string url) : url_(std::move(url)), heard_(kClients) { thread_.start(); }
    ~Crowd() { thread_.stop(); }

    // Runs all of them to their end.
    const std::vector<Heard>& run() {
        net::Client client(thread_.executor(), {});
        TaskGroup group(thread_.executor());
        std::promise<void> spawned;
        boost::asio::post(thread_.executor(), [&] {
            for (int i = 0; i < kClients; ++i) {
                group.spawn("client", live(client, i));
            }
            spawned.set_value();
        });
        spawned.get_future().wait();
        boost::asio::co_spawn(thread_.executor(), group.join(), boost::asio::use_future).wait();
        return heard_;
    }

private:
    Task<> live(net::Client& client, int index) {
        Heard& heard = heard_[static_cast<std::size_t>(index)];
        const std::string name = "client-" + std::to_string(index);
        std::string address = "ws" + url_.substr(4) + "/ws?clientId=" + name;
        auto socket = co_await client.connect(std::move(address), {}, kPatience);
        if (!socket) {
            heard.trouble = socket.error().message;
            co_return;
        }
        auto greeting = co_await (*socket)->read();
        json::object body{{"client_id", name}};
        body["prompt"] = small_picture(index);
        net::ClientRequest request{.method = "POST", .url = url_ + "/prompt"};
        request.body = json::serialize(body);
        request.timeout = kPatience;
        auto reply = co_await client.send(std::move(request));
        const auto answer = reply ? json::parse_object(reply->body) : Result<json::object>();
        if (!greeting || !reply || reply->status != 200 || !answer) {
            heard.trouble = reply ? reply->body : reply.error().message;
            co_return;
        }
        heard.prompt_id = std::string(answer->at("prompt_id").as_string());
        while (heard.story.empty() || heard.story.back() != "end") {
            auto message = co_await (*socket)->read();
            if (!message) {
                heard.trouble = message.error().message;
                co_return;
            }
            note(heard, message->data);
        }
        (*socket)->abort();
    }

    static void note(Heard& heard, const std::string& text) {
        if (text.starts_with(R"({"type": "status")")) {
            return;
        }
        const auto message = json::parse_object(text);
        if (!message) {
            heard.trouble = text;
            return;
        }
        const json::object& data = message->at("data").as_object();
        heard.foreign = heard.foreign || data.at("prompt_id") != json::value(heard.prompt_id);
        std::string type(message->at("type").as_string());
        if (type == "executing") {
            const json::value& node = data.at("node");
            type = node.is_null() ? "end" : "executing " + std::string(node.as_string());
        }
        heard.story.push_back(std::move(type));
    }

    std::string url_;
    net::IoThread thread_{"crowd"};
    std::vector<Heard> heard_;
};

TEST(NativeLoad, EveryClientOfAThousandHearsItsOwnPromptInOrder) {
    rlimit files{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &files), 0);
    files.rlim_cur = std::min<rlim_t>(files.rlim_max, 8 * kClients);
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &files), 0);
    Comfyd comfyd;
    Crowd crowd(comfyd.url());
    std::vector<std::string> story{"execution_start", "execution_cached"};
    for (const char* node : {"1", "2", "3"}) {
        story.emplace_back("progress_state");
        story.emplace_back(std::string("executing ") + node);
        if (node == std::string("3")) {
            story.emplace_back("executed");
        }
        story.emplace_back("progress_state");
    }
    story.insert(story.end(), {"execution_success", "end"});
    for (const Heard& heard : crowd.run()) {
        ASSERT_EQ(heard.trouble, "") << heard.prompt_id;
        ASSERT_FALSE(heard.foreign);
        ASSERT_EQ(heard.story, story);
    }
    EXPECT_EQ(comfyd.http().get("/prompt").json_at("/exec_info/queue_remaining"), json::value(0));
    EXPECT_EQ(
        comfyd.http().get("/api/jobs?limit=1").json_at("/pagination/total"), json::value(kClients)
    );
}

}  // namespace
}  // namespace comfyd::support
