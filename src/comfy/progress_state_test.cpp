// What is read without a document is what the document says.
#include "comfy/progress_state.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "base/json.hpp"

namespace comfyd::comfy {
namespace {

std::string describe(const Message& message) {
    const auto* state = std::get_if<ProgressState>(&message);
    if (state == nullptr) {
        return "another message";
    }
    json::array nodes;
    for (const NodeProgress& node : state->nodes) {
        nodes.push_back(json::array{
            node.node_id,
            node.value,
            node.max,
            node.finished,
            node.display_node_id,
            node.parent_node_id,
            node.real_node_id,
        });
    }
    return json::serialize(json::array{state->prompt_id, std::move(nodes)});
}

// Only what begins as workers write it is read without a document.
std::string by_document(std::string frame) {
    const std::string start = R"({"type": )";
    EXPECT_TRUE(frame.starts_with(start));
    return describe(decode_text(" " + frame));
}

std::string frame_of(const std::string& data) {
    return R"({"type": "progress_state", "data": )" + data + "}";
}

TEST(ProgressStates, AreReadAsWorkersWriteThem) {
    const std::string frame = frame_of(
        R"({"prompt_id": "p-1", "nodes": {"3": {"value": 7, "max": 20.5, "state": "running", )"
        R"("node_id": "3", "prompt_id": "p-1", "display_node_id": "3\u00e9", "parent_node_id": null, )"
        R"("real_node_id": "3"}, "4": {"value": 1, "max": 1, "state": "finished"}}})"
    );
    const auto state = read_progress_state(frame);
    ASSERT_TRUE(state);
    EXPECT_EQ(state->prompt_id, "p-1");
    ASSERT_EQ(state->nodes.size(), 2U);
    EXPECT_EQ(state->nodes[0].node_id, "3");
    EXPECT_EQ(state->nodes[0].value, 7);
    EXPECT_EQ(state->nodes[0].max, 20.5);
    EXPECT_FALSE(state->nodes[0].finished);
    EXPECT_EQ(state->nodes[0].display_node_id, "3é");
    EXPECT_TRUE(state->nodes[1].finished);
    EXPECT_EQ(describe(*state), by_document(frame));
}

// Documents whose parts are taken from those that may stand there and those that may not.
class Odd {
public:
    explicit Odd(unsigned seed) : random_(seed) {}

    std::string frame() {
        std::string text = R"({"type": "progress_state", )";
        const int extra = pick(6);
        if (extra == 0) {
            text += R"("more": )" + any(0) + ", ";
        } else if (extra == 1) {
            text += R"("type": )" + any(0) + ", ";
        }
        text += R"("data": )" + (pick(12) == 0 ? any(0) : data()) + (pick(12) == 0 ? "" : "}");
        if (pick(12) == 0) {
            text += pick(2) == 0 ? " \n" : " x";
        }
        return text;
    }

private:
    int pick(int below) { return std::uniform_int_distribution<int>(0, below - 1)(random_); }

    std::string data() {
        std::vector<std::string> members{R"("prompt_id": )" + usually(R"("p-)" + number() + '"')};
        members.push_back(R"("nodes": )" + usually(nodes()));
        if (pick(4) == 0) {
            members.push_back(R"("note": )" + any(0));
        }
        if (pick(12) == 0) {
            members.push_back(members[static_cast<std::size_t>(pick(2))]);
        }
        if (pick(12) == 0) {
            members.erase(members.begin() + pick(2));
        }
        std::shuffle(members.begin(), members.end(), random_);
        return joined(members);
    }
    std::string nodes() {
        std::vector<std::string> members;
        const int count = pick(5);
        for (int i = 0; i < count; ++i) {
            members.push_back(
                '"' + std::to_string(i) + R"(": )" + (pick(12) == 0 ? any(0) : node())
            );
        }
        return joined(members);
    }
    std::string node() {
        std::vector<std::string> members;
        for (const char* key :
             {"value",
              "max",
              "state",
              "node_id",
              "display_node_id",
              "real_node_id",
              "parent_node_id",
              "else",
              "st\\u0061te"}) {
            if (pick(3) != 0) {
                const std::string name = '"' + std::string(key) + R"(": )";
                const bool is_number = key[0] == 'v' || key[0] == 'm';
                members.push_back(name + usually(is_number ? number() : word()));
                if (pick(10) == 0) {
                    members.push_back(name + any(0));
                }
            }
        }
        return joined(members);
    }
    std::string number() {
        static constexpr const char* kNumbers[] = {
            "0", "1", "-7", "2.5", "1e3", "18446744073709551615"
        };
        return kNumbers[pick(6)];
    }
    std::string word() {
        static constexpr const char* kWords[] = {
            R"("finished")", R"("running")", R"("f\u0069nished")", R"("")", R"("9\n\"é")", "null"
        };
        return kWords[pick(6)];
    }
    std::string usually(std::string text) { return pick(10) == 0 ? any(0) : text; }
    std::string any(int depth) {
        switch (pick(depth > 2 ? 5 : 7)) {
            case 0:
                return "null";
            case 1:
                return pick(2) == 0 ? "true" : "false";
            case 2:
                return number();
            case 3:
                return word();
            case 4:
                return pick(3) == 0 ? "NaN" : "[]";
            case 5:
                return "[" + any(depth + 1) + ", " + any(depth + 1) + "]";
            default:
                return R"({"value": )" + any(depth + 1) + R"(, "state": )" + any(depth + 1) + "}";
        }
    }
    static std::string joined(const std::vector<std::string>& members) {
        std::string text = "{";
        for (const std::string& member : members) {
            text += (text.size() == 1 ? "" : ", ") + member;
        }
        return text + "}";
    }

    std::mt19937 random_;
};

TEST(ProgressStates, AreWhatTheirDocumentSaysHoweverOddItIs) {
    int directly = 0;
    for (unsigned seed = 0; seed < 20'000; ++seed) {
        const std::string frame = Odd(seed).frame();
        directly += read_progress_state(frame) ? 1 : 0;
        ASSERT_EQ(describe(decode_text(frame)), by_document(frame)) << seed << ": " << frame;
    }
    EXPECT_GT(directly, 2'000);
}

TEST(ProgressStates, CutOffOrGoneOnAreReadAsTheirDocument) {
    const std::string whole =
        frame_of(R"({"prompt_id": "p", "nodes": {"1": {"value": 1, "max": 2, "state": "running"}}})"
        );
    for (std::size_t bytes = 25; bytes <= whole.size(); ++bytes) {
        const std::string frame = whole.substr(0, bytes);
        EXPECT_EQ(describe(decode_text(frame)), by_document(frame)) << frame;
        EXPECT_EQ(read_progress_state(frame).has_value(), bytes == whole.size());
    }
    EXPECT_FALSE(read_progress_state(whole + "]"));
    EXPECT_FALSE(read_progress_state(std::string(100'000, '[')));
    EXPECT_FALSE(read_progress_state(frame_of(std::string(100'000, '['))));
}

}  // namespace
}  // namespace comfyd::comfy
