// Recorded conversations with a real ComfyUI, held with comfyd instead: in front of its engine
// where that has the nodes, else of a double.
#include "native_support.hpp"

namespace comfyd::support {
namespace {

using Ids = std::map<std::string, std::string>;  // of comfyd -> of the recording

std::string normal_text(std::string text, const Ids& ids) {
    static const std::regex kTemporary("ComfyUI_temp_[a-z]{5}_[0-9]{5}_");
    static const std::regex kCounter("(conv[0-9]?)_[0-9]{5}_");
    for (const auto& [from, to] : ids) {
        for (auto at = text.find(from); at != std::string::npos;
             at = text.find(from, at + to.size())) {
            text.replace(at, from.size(), to);
        }
    }
    text = std::regex_replace(text, kTemporary, "temporary");
    text = std::regex_replace(text, kCounter, "$1");
    return text;
}

// Without what differs from run to run: times, ids, counters. Files of a job lie in a subfolder of
// their own here.
json::value normal(const json::value& value, const Ids& ids) {
    if (value.is_string()) {
        return json::value(normal_text(std::string(value.get_string()), ids));
    }
    if (value.is_array()) {
        json::array out;
        for (const auto& entry : value.get_array()) {
            out.push_back(normal(entry, ids));
        }
        const bool is_queue_item = out.size() == 5 && out[1].is_string() && out[2].is_object();
        if (is_queue_item) {
            out[0] = 0;
        }
        return out;
    }
    if (value.is_object()) {
        json::object out;
        for (const auto& [key, member] : value.get_object()) {
            const bool varies = key == "timestamp" || key == "create_time" || key == "number" ||
                                key == "tooltip" || key == "subfolder" || key == "max_upload_size";
            auto& changed = out[normal_text(std::string(key), ids)] =
                varies ? json::value(0) : normal(member, ids);
            if (key == "queue_pending") {  // the real one's order is that of a heap
                auto& waiting = changed.get_array();
                std::sort(waiting.begin(), waiting.end(), [](const auto& a, const auto& b) {
                    return json::serialize_canonical(a) < json::serialize_canonical(b);
                });
            }
        }
        return out;
    }
    return value;
}

// Messages about execution and `status` messages apart: how they mix depends on the speed of the
// client.
struct Heard {
    std::vector<std::string> execution;
    std::vector<std::string> status;
    std::size_t executing = 0;

    void add(const json::value& message, const Ids& ids) {
        const std::string type = type_of(message);
        if (type == "status") {
            status.push_back(json::serialize_canonical(normal(message, ids)));
            return;
        }
        if (type == "progress") {
            return;  // as many as the machine was quick
        }
        auto text = json::serialize_canonical(normal(message, ids));
        if (type == "progress_state") {
            json::object states;
            for (const auto& [node, state] : message.at("data").at("nodes").get_object()) {
                states[node] = state.at("state");
            }
            text = "progress_state " + json::serialize_canonical(states);
        }
        executing += type == "executing" ? 1 : 0;
        if (execution.empty() || execution.back() != text) {
            execution.push_back(std::move(text));
        }
    }
    void add_binary(std::int64_t event_type) {
        execution.push_back("binary " + std::to_string(event_type));
    }
};

struct Recording {
    const char* name;
    bool needs_double;
};

class Replay {
public:
    explicit Replay(const Recording& recording)
        : recording_(boost::json::parse(
              read_file(std::string(COMFYD_SOURCE) + "/tests/data/conversations/" + recording.name)
          )),
          thread_("double"),
          double_(thread_.context(), {}) {
        thread_.start();
        ComfydOptions options;
        options.arguments = {"--set", "fleet.poll_ms=100"};
        if (recording.needs_double) {
            double_.start();
            options.arguments.insert(
                options.arguments.end(), {"--no-engine", "--worker", double_.url()}
            );
        }
        comfyd_ = std::make_unique<Comfyd>(options);
        EXPECT_TRUE(wait_until([this] {
            return comfyd_->http().get("/api/v1/workers/metrics").json_at("/idle_workers") ==
                   json::value(1);
        }));
    }
    ~Replay() {
        socket_.reset();
        comfyd_.reset();
        double_.stop();
        thread_.stop();
    }

    void run() {
        for (const auto& event : recording_.at("events").get_array()) {
            const auto& kind = event.at("kind").get_string();
            if (kind == "ws_open") {
                open(event);
            } else if (kind == "http") {
                request(event);
            } else if (kind == "ws" && event.get_object().contains("text")) {
                wanted_.add(event.at("text"), {});
            } else if (kind == "ws") {
                wanted_.add_binary(event.at("binary").at("event_type").get_int64());
            }
        }
        EXPECT_TRUE(wait_until([this] {
            const auto heard = listen();
            return heard.execution.size() >= wanted_.execution.size() &&
                   heard.status.size() >= wanted_.status.size();
        }));
        const auto heard = listen();
        EXPECT_THAT(heard.execution, testing::ElementsAreArray(wanted_.execution));
        EXPECT_THAT(heard.status, testing::ElementsAreArray(wanted_.status));
    }

private:
    void open(const json::value& event) {
        socket_ =
            comfyd_->http().ws("/ws?clientId=" + std::string(event.at("clientId").get_string()));
        ASSERT_TRUE(socket_->connected());
        if (!event.at("sent").is_null()) {
            socket_->send(json::serialize(event.at("sent")));
            ASSERT_TRUE(socket_->wait_for([](const auto& message) {
                return message.at("type") == json::value("feature_flags");
            }));
        }
        ASSERT_TRUE(wait_until([this] { return !socket_->messages().empty(); }));
    }

    void request(const json::value& event) {
        const std::string line(event.at("request").get_string());
        const auto space = line.find(' ');
        std::string body;
        if (!event.at("body").is_null()) {
            body = to_ours(json::serialize(event.at("body")));
        }
        // What the client of the recording had seen, this one waits for.
        EXPECT_TRUE(wait_until([this] { return listen().executing >= wanted_.executing; }));
        const auto reply = comfyd_->http().send(
            {.method = line.substr(0, space), .url = to_ours(line.substr(space + 1)), .body = body}
        );
        EXPECT_EQ(reply.status, event.at("status").get_int64()) << line << reply.body;
        const auto& recorded = event.at("response");
        if (line.starts_with("POST /prompt") && reply.status == 200) {
            ids_[std::string(reply.json().at("prompt_id").get_string())] =
                std::string(recorded.at("prompt_id").get_string());
        }
        if (recorded.is_object() && recorded.get_object().contains("binary_length")) {
            EXPECT_EQ(reply.headers.get("Content-Type"), recorded.at("content_type").get_string());
        } else if (!recorded.is_null()) {
            EXPECT_EQ(
                json::serialize_canonical(normal(reply.json(), ids_)),
                json::serialize_canonical(normal(recorded, {}))
            ) << line;
        }
    }

    std::string to_ours(std::string text) const {
        for (const auto& [own, recorded] : ids_) {
            for (auto at = text.find(recorded); at != std::string::npos;
                 at = text.find(recorded, at + own.size())) {
                text.replace(at, recorded.size(), own);
            }
        }
        return text;
    }

    Heard listen() const {
        Heard heard;
        for (const auto& message : socket_->messages()) {
            if (message.binary) {
                heard.add_binary(message.data.size() > 3 ? message.data[3] : -1);
            } else {
                heard.add(boost::json::parse(message.data), ids_);
            }
        }
        return heard;
    }

    json::value recording_;
    net::IoThread thread_;
    ComfyDouble double_;
    std::unique_ptr<Comfyd> comfyd_;
    std::unique_ptr<WsStream> socket_;
    Ids ids_;
    Heard wanted_;
};

class NativeConversation : public testing::TestWithParam<Recording> {};

TEST_P(NativeConversation, IsHeldAsByTheRealServer) {
    Replay(GetParam()).run();
}

INSTANTIATE_TEST_SUITE_P(
    Recorded,
    NativeConversation,
    testing::Values(
        Recording{"01-simple-success.json", false},
        Recording{"01-simple-success.json", true},
        Recording{"05-interrupt-running.json", true},
        Recording{"06-delete-from-queue.json", true},
        Recording{"10-preview-image-and-websocket-image.json", true},
        Recording{"11-feature-flags-preview-metadata.json", true},
        Recording{"15-own-prompt-id-and-order.json", true},
        Recording{"17-validation-failure-sends-no-message.json", true}
    ),
    [](const auto& entry) {
        return "number_" + std::string(entry.param.name).substr(0, 2) +
               (entry.param.needs_double ? "_worker" : "_engine");
    }
);

}  // namespace
}  // namespace comfyd::support
