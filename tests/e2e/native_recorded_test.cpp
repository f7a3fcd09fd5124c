// The recorded answers of a real server, route by route: comfyd gives the same status, the same
// content type, and a body of the same shape. What differs is named here, with the reason.
#include <filesystem>

#include "native_support.hpp"

namespace comfyd::support {
namespace {

json::value recorded(const std::string& name) {
    const std::string file =
        std::string(COMFYD_SOURCE) + "/tests/data/comfyui/http/" + name + ".json";
    return boost::json::parse(read_file(file));
}

// Where ours is not of the shape of theirs; empty when it is. A list without elements and an object
// without members are of any such shape.
std::string difference(const json::value& ours, const json::value& theirs, const std::string& at) {
    if (ours.is_number() && theirs.is_number()) {
        return {};
    }
    if (theirs.is_null() || (ours.is_null() && !theirs.is_structured())) {
        return {};
    }
    if (ours.kind() != theirs.kind()) {
        return at + ": " + json::serialize(ours) + " instead of " + json::serialize(theirs);
    }
    if (ours.is_array()) {
        for (const json::value& element : ours.get_array()) {
            if (theirs.get_array().empty()) {
                break;
            }
            const bool is_tuple = theirs.get_array().size() == ours.get_array().size();
            const auto index = static_cast<std::size_t>(&element - ours.get_array().data());
            const json::value& model = theirs.get_array()[is_tuple ? index : 0];
            if (auto found = difference(element, model, at + "/" + std::to_string(index));
                !found.empty()) {
                return found;
            }
        }
        return {};
    }
    if (!ours.is_object() || ours.get_object().empty()) {
        return {};
    }
    for (const auto& [key, value] : theirs.get_object()) {
        const json::value* own = ours.get_object().if_contains(key);
        if (own == nullptr) {
            return at + "/" + std::string(key) + " is missing";
        }
        if (auto found = difference(*own, value, at + "/" + std::string(key)); !found.empty()) {
            return found;
        }
    }
    return {};
}

std::string type_only(std::string_view content_type) {
    return std::string(content_type.substr(0, content_type.find(';')));
}

class NativeRecorded : public NativeTest {
protected:
    Reply ask(const json::value& recording) {
        const std::string line(recording.at("request").as_string());
        const auto space = line.find(' ');
        net::ClientRequest request{.method = line.substr(0, space), .url = line.substr(space + 1)};
        if (const json::value* body = recording.as_object().if_contains("request_body")) {
            request.body =
                body->is_string() ? std::string(body->as_string()) : json::serialize(*body);
        }
        return http().send(std::move(request));
    }

    void compare(const std::string& name) {
        const json::value recording = recorded(name);
        const Reply reply = ask(recording);
        EXPECT_EQ(reply.status, recording.at("status").as_int64()) << name << reply.body;
        const json::value& theirs = recording.at("response");
        const json::object& headers = recording.at("headers").as_object();
        if (const json::value* type = headers.if_contains("Content-Type")) {
            EXPECT_EQ(type_only(reply.headers.get("Content-Type")), type_only(type->as_string()))
                << name;
        }
        if (const json::value* place = headers.if_contains("Content-Disposition")) {
            EXPECT_EQ(reply.headers.get("Content-Disposition"), place->as_string()) << name;
        }
        if (theirs.is_string()) {
            EXPECT_EQ(reply.body, theirs.as_string()) << name;
        } else if (!theirs.is_object() || !theirs.as_object().contains("binary")) {
            EXPECT_EQ(difference(reply.json(), theirs, ""), "") << name;
        } else {
            EXPECT_FALSE(reply.body.empty()) << name;
        }
    }
    void upload(const std::string& name, const std::string& bytes) {
        EXPECT_EQ(
            http().upload("/upload/image", {{"image", name, "image/png", bytes}}).status, 200
        );
    }
};

TEST_F(NativeRecorded, AnswersAreOfTheSameShape) {
    start();
    const json::value entry = recorded("history").at("response");
    const std::string id(entry.as_object().begin()->key());
    const json::object graph = entry.at(id).at("prompt").at(2).as_object();
    ASSERT_EQ(post_prompt(http(), graph, "corpus", {{"prompt_id", id}}), id);
    ASSERT_TRUE(wait_until([&] {
        return http().get("/history/" + id).json().as_object().contains(id);
    }));
    const json::value file =
        http().get("/history/" + id).json().at(id).at("outputs").at("2").at("images").at(0);
    const std::string picture =
        http()
            .get(
                "/view?filename=" + std::string(file.at("filename").as_string()) +
                "&subfolder=" + std::string(file.at("subfolder").as_string()) + "&type=temp"
            )
            .body;
    upload("noise.png", picture);
    upload("rgba.png", picture);

    // name -> why the answer differs, and the status that is given instead.
    const std::map<std::string, std::pair<int, const char*>> differences{
        {"unknown_route", {404, "the server is more than ComfyUI: what is unknown is told in JSON"}
        },
        {"view_metadata_missing", {404, "the files are the workers': none is read here"}},
    };
    const std::filesystem::path folder = std::string(COMFYD_SOURCE) + "/tests/data/comfyui/http";
    int compared = 0;
    for (const auto& found : std::filesystem::directory_iterator(folder)) {
        const std::string name = found.path().stem().string();
        if (name.ends_with("_busy") || name == "object_info_one") {
            continue;  // the next tests
        }
        if (const auto other = differences.find(name); other != differences.end()) {
            EXPECT_EQ(ask(recorded(name)).status, other->second.first) << other->second.second;
            continue;
        }
        compare(name);
        ++compared;
    }
    EXPECT_GT(compared, 35);
}

// A double announces less of its classes than a real worker.
TEST_F(NativeRecorded, AClassOfTheEngineIsDescribedAlike) {
    comfyd_ = std::make_unique<Comfyd>();
    wait_workers(1);
    json::value theirs = recorded("object_info_one").at("response");
    // What the editor's search knows beside the name; the engine has none of it.
    for (const char* key : {"search_aliases", "essentials_category"}) {
        theirs.at("ImageInvert").as_object().erase(key);
    }
    const Reply reply = http().get("/object_info/ImageInvert");
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(difference(reply.json(), theirs, ""), "");
}

TEST_F(NativeRecorded, ABusyServerTellsTheSame) {
    DoubleOptions options;
    options.faults.run.hang_interruptible = true;
    start(options);
    const json::value queue = recorded("queue_busy").at("response");
    for (const char* part : {"queue_running", "queue_pending"}) {
        const json::value& item = queue.at(part).at(0);
        json::object graph = text_to_image(part);
        const std::string id(item.at(1).as_string());
        ASSERT_EQ(
            post_prompt(http(), graph, "corpus", {{"prompt_id", id}, {"extra_data", item.at(3)}}),
            id
        );
        ASSERT_TRUE(wait_until([&] {
            return !http().get("/queue").json_at("/queue_running").as_array().empty();
        }));
    }
    EXPECT_EQ(http().get("/prompt").json(), recorded("prompt_busy").at("response"));
    const json::value ours = http().get("/queue").json();
    for (const char* part : {"queue_running", "queue_pending"}) {
        ASSERT_EQ(ours.at(part).as_array().size(), 1U) << part;
        const json::value& mine = ours.at(part).at(0);
        EXPECT_EQ(mine.as_array().size(), 5U);
        EXPECT_EQ(mine.at(1), queue.at(part).at(0).at(1));
        EXPECT_EQ(difference(mine.at(3), queue.at(part).at(0).at(3), "extra_data"), "");
    }
    const json::value jobs = http().get("/api/jobs").json();
    EXPECT_EQ(
        difference(
            jobs.at("pagination"), recorded("jobs_busy").at("response").at("pagination"), ""
        ),
        ""
    );
    std::vector<std::string> states;
    for (const json::value& job : jobs.at("jobs").as_array()) {
        states.emplace_back(job.at("status").as_string());
    }
    EXPECT_THAT(states, testing::UnorderedElementsAre("pending", "in_progress"));
    EXPECT_EQ(http().post_json("/queue", json::object{{"clear", true}}).status, 200);
    EXPECT_EQ(http().post("/interrupt", "").status, 200);
}

}  // namespace
}  // namespace comfyd::support
