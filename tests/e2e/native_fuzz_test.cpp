// Deterministic nonsense for a live comfyd: recorded prompts and WebSocket frames, mutated. It
// answers, stays up, and goes on to run prompts.
#include <filesystem>
#include <random>

#include "native_support.hpp"
#include "support/raw_socket.hpp"

namespace comfyd::support {
namespace {

constexpr unsigned kSeed = 20'260'822;
constexpr int kBodies = 600;
constexpr int kSockets = 120;

class NativeFuzz : public testing::Test {
protected:
    std::size_t pick(std::size_t below) { return random_() % std::max<std::size_t>(below, 1); }

    void expect_alive() {
        const auto listener = comfyd_.http().ws("/ws?clientId=after");
        ASSERT_TRUE(listener->connected());
        const std::string id = post_prompt(comfyd_.http(), small_picture(77), "after");
        EXPECT_TRUE(wait_end_of(*listener, id));
        EXPECT_EQ(story_of(*listener, id).front(), "execution_start");
    }

    std::mt19937 random_{kSeed};  // the same numbers everywhere
    Comfyd comfyd_;
};

class NativeBodies : public NativeFuzz {
protected:
    NativeBodies() {
        const std::filesystem::path folder =
            std::string(COMFYD_SOURCE) + "/tests/data/comfyui/validation";
        std::vector<std::filesystem::path> files;
        for (const auto& entry : std::filesystem::directory_iterator(folder)) {
            files.push_back(entry.path());
        }
        std::sort(files.begin(), files.end());
        for (const auto& file : files) {
            const auto recorded = json::parse_object(read_file(file));
            if (recorded && recorded->at("request").as_object().contains("body")) {
                bodies_.push_back(recorded->at("request").at("body"));
            }
        }
    }

    // Some value deep inside becomes another.
    void mutate(json::value& value, int depth) {
        if (json::object* object = value.if_object(); object && !object->empty() && depth > 0) {
            auto at = object->begin() + static_cast<std::ptrdiff_t>(pick(object->size()));
            if (pick(8) == 0) {
                (*object)[strange_text()] = strange();
            } else if (pick(10) == 0) {
                object->erase(at);
            } else {
                mutate(at->value(), depth - 1);
            }
        } else if (json::array* list = value.if_array(); list && !list->empty() && depth > 0) {
            mutate((*list)[pick(list->size())], depth - 1);
        } else {
            value = strange();
        }
    }

    json::value strange() {
        switch (pick(12)) {
            case 0:
                return nullptr;
            case 1:
                return true;
            case 2:
                return -1;
            case 3:
                return std::numeric_limits<std::int64_t>::min();
            case 4:
                return 1e308;
            case 5:
                return std::numeric_limits<std::uint64_t>::max();
            case 6:
                return json::array{"1", 0};
            case 7:
                return json::array{"1", -7, nullptr};
            case 8:
                return json::object{{"__value__", json::array{1, "x"}}};
            case 9:
                return json::object{{"__type", "core/ASSET"}, {"info", 7}};
            case 10:
                return json::array();
            default:
                return json::value(strange_text());
        }
    }
    std::string strange_text() {
        static const std::vector<std::string> kTexts{
            "",
            "1",
            "../../etc/passwd",
            std::string(5'000, 'x'),
            "\xC3\xA9\xF0\x9F\x98\x80",
            std::string("a\0b", 3),
            "SaveImage",
            "nan",
            "class_type",
            "%n%s",
            "prompt_id",
        };
        return kTexts[pick(kTexts.size())];
    }
    // Text that is no JSON any more, or not in UTF-8.
    void break_text(std::string& text) {
        switch (pick(4)) {
            case 0:
                text.resize(pick(text.size()));
                break;
            case 1:
                text[pick(text.size())] = static_cast<char>(pick(256));
                break;
            case 2:
                text.insert(pick(text.size()), "\xFF\xFE");
                break;
            default:
                text = std::string(pick(5'000), '[') + text;
        }
    }

    std::vector<json::value> bodies_;
};

TEST_F(NativeBodies, AreAnsweredWhateverTheySay) {
    ASSERT_GT(bodies_.size(), 200U);
    for (int i = 0; i < kBodies; ++i) {
        json::value body = bodies_[pick(bodies_.size())];
        if (body.is_object()) {
            const std::size_t changes = 1 + pick(3);
            for (std::size_t change = 0; change < changes; ++change) {
                mutate(body, 6);
            }
        }
        std::string text = json::serialize(body);
        if (pick(5) == 0 && !text.empty()) {
            break_text(text);
        }
        const Reply reply = comfyd_.http().post("/prompt", text);
        ASSERT_GE(reply.status, 200) << text;
        ASSERT_LT(reply.status, 500) << text << reply.body;
        ASSERT_TRUE(reply.json().is_object()) << text << reply.body;
        ASSERT_TRUE(reply.status != 200 || reply.json_at("/prompt_id").is_string()) << text;
    }
    EXPECT_EQ(comfyd_.http().post_json("/queue", json::object{{"clear", true}}).status, 200);
    EXPECT_EQ(comfyd_.http().post("/interrupt", "").status, 200);
    for (const char* path : {"/queue", "/history", "/api/jobs", "/prompt"}) {
        const Reply shown = comfyd_.http().get(path);
        EXPECT_EQ(shown.status, 200) << path;
        EXPECT_TRUE(shown.json().is_object()) << path;
    }
    expect_alive();
}

class NativeFrames : public NativeFuzz {
protected:
    // A frame of a client, masked with zeros unless it is to be wrong.
    static std::string frame(unsigned first, std::string_view payload, bool masked = true) {
        std::string text(1, static_cast<char>(first));
        const unsigned mask = masked ? 0x80U : 0;
        if (payload.size() < 126) {
            text += static_cast<char>(mask | static_cast<unsigned>(payload.size()));
        } else if (payload.size() < 65'536) {
            text += static_cast<char>(mask | 126U);
            text += static_cast<char>(payload.size() >> 8U);
            text += static_cast<char>(payload.size());
        } else {
            text += static_cast<char>(mask | 127U);
            for (int shift = 56; shift >= 0; shift -= 8) {
                text += static_cast<char>(payload.size() >> static_cast<unsigned>(shift));
            }
        }
        return text + (masked ? std::string(4, '\0') : "") + std::string(payload);
    }

    std::string nonsense() {
        constexpr unsigned kText = 0x81;
        constexpr unsigned kBinary = 0x82;
        constexpr unsigned kTextBegin = 0x01;
        constexpr unsigned kMiddle = 0x00;
        constexpr unsigned kEnd = 0x80;
        constexpr unsigned kPing = 0x89;
        static const std::vector<std::string> kFlags{
            R"({"type":"feature_flags","data":{"supports_preview_metadata":true}})",
            R"({"type":"feature_flags","data":{"supports_preview_metadata":"yes"}})",
            R"({"type":"feature_flags","data":[1]})",
            R"({"type":"feature_flags"})",
            R"({"type":7,"data":{}})",
            "[]",
            "",
            "{",
        };
        switch (pick(12)) {
            case 0:
            case 1:
            case 2:
                return frame(kText, kFlags[pick(kFlags.size())]);
            case 3:
                return frame(kBinary, std::string(pick(3'000), '\xFF'));
            case 4:
                return frame(kText, "bad \xC0\x80 text");
            case 5:
                return frame(kTextBegin, R"({"type":"feature)") + frame(kMiddle, "_flags") +
                       frame(kPing, "between") + frame(kEnd, R"(","data":{}})");
            case 6:
                return frame(kEnd, "an end without a beginning");
            case 7:
                return frame(kText, "not masked", false);
            case 8:
                return frame(kPing, std::string(200, 'x'));  // too long for its kind
            case 9:                                          // more than is taken: announced only
                return frame(kText, std::string(70'000, 'x')).replace(2, 8, 8, '\x7F');
            case 10:
                return frame(0xF3, "reserved");
            default: {
                std::string noise(1 + pick(300), '\0');
                for (char& byte : noise) {
                    byte = static_cast<char>(pick(256));
                }
                return noise;
            }
        }
    }
};

TEST_F(NativeFrames, DoNoHarm) {
    const auto bystander = comfyd_.http().ws("/ws?clientId=bystander");
    ASSERT_TRUE(bystander->connected());
    std::vector<std::unique_ptr<RawSocket>> open;
    for (int i = 0; i < kSockets; ++i) {
        auto socket = std::make_unique<RawSocket>(comfyd_.url());
        ASSERT_TRUE(socket->upgrade("/ws?clientId=fuzz-" + std::to_string(i % 7))) << i;
        const std::size_t frames = 1 + pick(5);
        for (std::size_t sent = 0; sent < frames && socket->send(nonsense()); ++sent) {
        }
        if (pick(2) == 0) {
            open.push_back(std::move(socket));  // stays open while others come
        }
    }
    ASSERT_NO_FATAL_FAILURE(expect_alive());
    EXPECT_FALSE(bystander->ended());
}

TEST_F(NativeFrames, AMessageThatIsTooLargeEndsOnlyItsOwnSocket) {
    RawSocket socket(comfyd_.url());
    ASSERT_TRUE(socket.upgrade("/ws?clientId=large"));
    socket.send(frame(0x81, std::string(5 * 1024 * 1024, 'x')));
    EXPECT_TRUE(socket.drain());
    expect_alive();
}

}  // namespace
}  // namespace comfyd::support
