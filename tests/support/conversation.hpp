// Plays a recorded conversation with a real ComfyUI against another server and compares what both
// say. Asks what the recorded client asked, when it had heard as much.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "support/http.hpp"
#include "support/temp_dir.hpp"

namespace comfyd::support {

struct ConversationOptions {
    std::set<std::string> varying{};  // further members that this server fills in its own way
    // Prompts may end faster than their ends are told: a length of the queue in a `status` may be
    // smaller than recorded, never larger. As many are told, and the last is the same.
    bool may_hurry = false;
};

class Conversation {
public:
    Conversation(std::string url, const std::string& file, ConversationOptions options = {})
        : recording_(boost::json::parse(read_file(file))),
          http_(std::move(url)),
          may_hurry_(options.may_hurry),
          plain_{{}, options.varying},
          naming_{{}, std::move(options.varying)} {}

    void play() {
        for (const auto& event : recording_.at("events").get_array()) {
            const auto& kind = event.at("kind").get_string();
            if (kind == "ws_open") {
                open(event);
            } else if (kind == "http") {
                request(event);
            } else if (kind == "ws_close") {
                const std::string name(event.at("ws").get_string());
                check(name);
                lines_[name].socket.reset();
            } else if (kind == "ws" && event.get_object().contains("text")) {
                line(event).wanted.add(event.at("text"), plain_);
            } else if (kind == "ws") {
                line(event).wanted.add_binary(event.at("binary").at("event_type").get_int64());
            }
        }
        for (const auto& [name, line] : lines_) {
            if (line.socket) {
                check(name);
            }
        }
    }

private:
    struct Naming {
        std::map<std::string, std::string> ids;  // of the server -> of the recording
        std::set<std::string> varying;
    };

    // Messages about execution and `status` messages apart: how they mix depends on the speed of
    // the client.
    struct Heard {
        std::vector<std::string> execution;
        std::vector<std::string> status;
        std::size_t executing = 0;
        std::string progress;  // the last progress_state

        void add(const json::value& message, const Naming& naming) {
            const auto& type = message.at("type").get_string();
            if (type == "status") {
                status.push_back(json::serialize_canonical(normal(message, naming)));
                return;
            }
            if (type == "progress") {
                return;  // as many as the machine was quick
            }
            auto text = json::serialize_canonical(normal(message, naming));
            if (type == "progress_state") {
                json::object states;
                for (const auto& [node, state] : message.at("data").at("nodes").get_object()) {
                    states[node] = state.at("state");
                }
                text = "progress_state " + json::serialize_canonical(states);
                if (std::exchange(progress, text) == text) {
                    return;  // one more step, of which there are more or less
                }
            }
            executing += type == "executing" ? 1 : 0;
            execution.push_back(std::move(text));
        }
        void add_binary(std::int64_t event_type) {
            execution.push_back("binary " + std::to_string(event_type));
        }
    };
    struct Line {
        std::unique_ptr<WsStream> socket;
        Heard wanted;
    };

    static std::string normal_text(
        std::string text, const std::map<std::string, std::string>& ids
    ) {
        static const std::regex kTemporary("ComfyUI_temp_[a-z]{5}_[0-9]{5}_");
        static const std::regex kCounter("(conv2?)_[0-9]{5}_");
        for (const auto& [from, to] : ids) {
            for (auto at = text.find(from); at != std::string::npos;
                 at = text.find(from, at + to.size())) {
                text.replace(at, from.size(), to);
            }
        }
        text = std::regex_replace(text, kTemporary, "temporary");
        return std::regex_replace(text, kCounter, "$1");
    }

    static void sort(json::array& list) {
        std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) {
            return json::serialize_canonical(a) < json::serialize_canonical(b);
        });
    }

    // Without what differs from run to run: times, ids, counters.
    static json::value normal(const json::value& value, const Naming& naming) {
        if (value.is_string()) {
            return json::value(normal_text(std::string(value.get_string()), naming.ids));
        }
        if (value.is_array()) {
            json::array out;
            for (const auto& entry : value.get_array()) {
                out.push_back(normal(entry, naming));
            }
            const bool is_queue_item = out.size() == 5 && out[1].is_string() && out[2].is_object();
            if (is_queue_item) {
                out[0] = 0;
                sort(out[4].as_array());  // the real one's order is that of a set
            }
            return out;
        }
        if (!value.is_object()) {
            return value;
        }
        json::object out;
        for (const auto& [key, member] : value.get_object()) {
            const bool varies = key == "timestamp" || key == "create_time" || key == "number" ||
                                key == "tooltip" || key == "traceback" ||
                                naming.varying.contains(std::string(key));
            auto& changed = out[normal_text(std::string(key), naming.ids)] =
                varies ? json::value(0) : normal(member, naming);
            // The real one's order is that of a heap, or of a set.
            if (key == "queue_pending" || key == "executed" || key == "current_outputs") {
                sort(changed.get_array());
            }
        }
        return out;
    }

    Line& line(const json::value& event) {
        return lines_[std::string(event.at("ws").get_string())];
    }

    void open(const json::value& event) {
        Line& opened = line(event);
        opened.socket = http_.ws("/ws?clientId=" + std::string(event.at("clientId").get_string()));
        ASSERT_TRUE(opened.socket->connected());
        ASSERT_TRUE(wait_until([&] { return !opened.socket->messages().empty(); }));
        if (!event.at("sent").is_null()) {
            opened.socket->send(json::serialize(event.at("sent")));
            ASSERT_TRUE(opened.socket->wait_for([](const auto& message) {
                return message.at("type") == json::value("feature_flags");
            }));
        }
    }

    void request(const json::value& event) {
        const std::string request_line(event.at("request").get_string());
        const auto space = request_line.find(' ');
        std::string body;
        if (!event.at("body").is_null()) {
            body = to_server(json::serialize(event.at("body")));
        }
        // What the client of the recording had seen, this one waits for.
        for (const auto& [name, line] : lines_) {
            EXPECT_TRUE(wait_until([&, &seen = line] {
                return !seen.socket || listen(seen).executing >= seen.wanted.executing;
            }));
        }
        const auto reply = http_.send(
            {.method = request_line.substr(0, space),
             .url = to_server(request_line.substr(space + 1)),
             .body = body}
        );
        EXPECT_EQ(reply.status, event.at("status").get_int64()) << request_line << reply.body;
        const auto& recorded = event.at("response");
        if (request_line.starts_with("POST /prompt") && reply.status == 200) {
            naming_.ids[std::string(reply.json().at("prompt_id").get_string())] =
                std::string(recorded.at("prompt_id").get_string());
        }
        if (recorded.is_object() && recorded.get_object().contains("binary_length")) {
            EXPECT_EQ(reply.headers.get("Content-Type"), recorded.at("content_type").get_string());
        } else if (!recorded.is_null()) {
            EXPECT_EQ(
                json::serialize_canonical(normal(reply.json(), naming_)),
                json::serialize_canonical(normal(recorded, plain_))
            ) << request_line;
        }
    }

    std::string to_server(std::string text) const {
        for (const auto& [own, recorded] : naming_.ids) {
            text = normal_text(std::move(text), {{recorded, own}});
        }
        // normal_text() took the counter away; a fresh server starts with the first.
        return std::regex_replace(
            text, std::regex("filename=conv\\.png"), "filename=conv_00001_.png"
        );
    }

    Heard listen(const Line& line) const {
        Heard heard;
        for (const auto& message : line.socket->messages()) {
            if (message.binary) {
                heard.add_binary(message.data.size() > 3 ? message.data[3] : -1);
            } else {
                heard.add(boost::json::parse(message.data), naming_);
            }
        }
        return heard;
    }

    static std::int64_t queue_length(const std::string& status) {
        return boost::json::parse(status)
            .at_pointer("/data/status/exec_info/queue_remaining")
            .to_number<std::int64_t>();
    }

    void check(const std::string& name) const {
        const Line& line = lines_.at(name);
        EXPECT_TRUE(wait_until([&] {
            const auto heard = listen(line);
            return heard.execution.size() >= line.wanted.execution.size() &&
                   heard.status.size() >= line.wanted.status.size();
        })) << name;
        const auto heard = listen(line);
        EXPECT_THAT(heard.execution, testing::ElementsAreArray(line.wanted.execution)) << name;
        // Where two sockets have one id, the older may go on to hear of the queue.
        const auto& status = heard.status;
        const auto count = std::min(status.size(), line.wanted.status.size());
        if (may_hurry_) {
            EXPECT_EQ(status.back(), line.wanted.status.back()) << name;
            for (std::size_t i = 0; i < count; ++i) {
                EXPECT_LE(queue_length(status[i]), queue_length(line.wanted.status[i])) << i;
            }
        } else {
            EXPECT_EQ(
                std::vector(status.begin(), status.begin() + static_cast<std::ptrdiff_t>(count)),
                line.wanted.status
            ) << name;
        }
        if (lines_.size() == 1) {
            EXPECT_EQ(status.size(), line.wanted.status.size());
        }
    }

    json::value recording_;
    Http http_;
    std::map<std::string, Line> lines_;
    const bool may_hurry_;
    const Naming plain_;
    Naming naming_;
};

}  // namespace comfyd::support
