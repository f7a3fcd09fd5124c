// Tenants who share workers: nothing of one is read, listed, cancelled or guessed by another, by
// any route and by any input of a node.
#include <array>
#include <filesystem>

#include "tenants_support.hpp"

namespace comfyd::support {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::string kNobodys = "0190f0f0-0000-7000-8000-00000000abcd";  // an id that nothing has

class Tenants : public TwoTenants {
protected:
    // What the first tenant has.
    struct Belongings {
        std::string job;
        std::string prompt;
        std::string asset;
        std::string hash;
        std::string workflow = std::string(kMark) + "-flow";
        std::string session{};
    };

    Belongings fill() {
        Belongings its;
        const std::string file = std::string(kMark) + ".png";
        const json::value job = run_as(*red_, saved(kMark));
        EXPECT_EQ(Comfyd::status_of(job), "succeeded") << json::serialize(job);
        its.job = job.at("id").as_string();
        const std::string picture = content_of(*red_, job);
        const Reply asset = red_->upload("/api/v2/assets", {{"file", file, "image/png", picture}});
        its.asset = asset.json_at("/id").as_string();
        its.hash = asset.json_at("/hash").as_string();
        for (const char* folder : {"input", "output", "temp"}) {
            for (const char* subfolder : {"", "sub"}) {
                const Reply stored = red_->upload(
                    "/upload/image",
                    {{"type", std::nullopt, "", folder},
                     {"subfolder", std::nullopt, "", subfolder},
                     {"image", file, "image/png", picture}}
                );
                EXPECT_EQ(stored.status, 200) << stored.body;
            }
        }
        const Reply prompt = red_->post_json(
            "/prompt",
            {{"prompt", loaded("LoadImage", "image", json::value(file))}, {"client_id", kMark}}
        );
        EXPECT_EQ(prompt.status, 200) << prompt.body;
        its.prompt = prompt.json_at("/prompt_id").as_string();
        EXPECT_TRUE(wait_until([&] {
            return red_->get("/history/" + its.prompt).json().as_object().contains(its.prompt);
        }));
        EXPECT_EQ(red_->post("/userdata/" + file, "text").status, 200);
        const Reply named = red_->put(
            "/v2/workflows/" + its.workflow,
            json::serialize(json::object{{"workflow", saved(kMark)}, {"description", kMark}}),
            header("Content-Type", "application/json")
        );
        EXPECT_TRUE(named.ok()) << named.body;
        const Reply session = red_->post_json(
            "/login", {{"key", kKey + "red"}}, header("Sec-Fetch-Site", "same-origin")
        );
        its.session = session.json_at("/id").as_string();
        return its;
    }

    // All is as it was.
    void expect_untouched(const Belongings& its) {
        EXPECT_EQ(Comfyd::status_of(red_->get("/api/v2/jobs/" + its.job).json()), "succeeded");
        EXPECT_EQ(red_->get("/api/v2/assets/" + its.asset + "/content").status, 200);
        EXPECT_EQ(red_->get("/v2/workflows/" + its.workflow).status, 200);
        EXPECT_THAT(red_->get("/login/sessions").body, HasSubstr(its.session));
        EXPECT_TRUE(red_->get("/history").json().as_object().contains(its.prompt));
        EXPECT_EQ(red_->get("/userdata/" + std::string(kMark) + ".png").status, 200);
        for (const char* folder : {"input", "output", "temp"}) {
            EXPECT_EQ(
                red_->get("/view?filename=red-secret.png&type=" + std::string(folder)).status, 200
            );
        }
    }

    Reply ask(const std::string& method, std::string path, const json::value& body) {
        net::ClientRequest request;
        request.method = method;
        request.url = std::move(path);
        if (method != "GET" && method != "DELETE") {
            request.headers.set("Content-Type", "application/json");
            request.body = json::serialize(body);
        }
        return blue_->send(std::move(request));
    }

    // With the first tenant's id everything is as with one of the same form that nothing has.
    void expect_same(
        const std::string& method,
        const std::string& path,
        const std::string& mark,  // in the path, for the id
        const std::string& its
    ) {
        const std::string nobodys = its.starts_with("blake3:") ? "blake3:" + std::string(64, '0')
                                    : its.starts_with(kMark)   ? "nobodys-flow"
                                    : its.find('-') == std::string::npos
                                        ? std::string(its.size(), 'N')  // of a session
                                        : kNobodys;
        const auto with = [&](const std::string& id) {
            std::string made = path;
            made.replace(made.find(mark), mark.size(), id);
            return made;
        };
        const Reply real = ask(method, with(its), json::object());
        const Reply made_up = ask(method, with(nobodys), json::object());
        EXPECT_EQ(real.status, made_up.status) << method << " " << with(its) << "\n"
                                               << real.body << "\n"
                                               << made_up.body;
        EXPECT_NE(real.status, 0) << method << " " << with(its);
        if (its.find(kMark) == std::string::npos) {
            EXPECT_THAT(real.body, Not(HasSubstr(kMark))) << method << " " << with(its);
        }
    }
};

TEST_P(Tenants, NoRouteOfTheDocumentTellsOfAnother) {
    const Belongings its = fill();
    const json::value document = blue_->get("/openapi.json").json();
    int asked = 0;
    for (const auto& path : document.at("paths").as_object()) {
        std::string pattern(path.key());
        if (pattern.find("worker") != std::string::npos) {
            continue;  // machines belong to no tenant
        }
        for (const auto& [name, value] : std::map<std::string, std::string>{
                 {"{endpoint}", "any"},
                 {"{version}", "1"},
                 {"{label}", "staging"},
                 {"{dest}", "elsewhere"},
                 {"{folder}", "checkpoints"}
             }) {
            if (const auto at = pattern.find(name); at != std::string::npos) {
                pattern.replace(at, name.size(), value);
            }
        }
        const auto begin = pattern.find('{');
        for (const auto& operation : path.value().as_object()) {
            std::string method(operation.key());
            std::ranges::transform(method, method.begin(), [](char c) {
                return static_cast<char>(c - 'a' + 'A');
            });
            if (begin == std::string::npos) {
                if (method == "GET" && pattern != "/api/v1/stats/stream") {
                    const Reply listed = blue_->get(pattern);
                    EXPECT_THAT(listed.body, Not(HasSubstr(kMark))) << pattern;
                    EXPECT_THAT(listed.body, Not(HasSubstr(its.job))) << pattern;
                    EXPECT_THAT(listed.body, Not(HasSubstr(its.session))) << pattern;
                }
                continue;
            }
            const std::string mark = pattern.substr(begin, pattern.find('}') - begin + 1);
            if (pattern.find('{', begin + 1) != std::string::npos) {
                ADD_FAILURE() << "say what stands for the parameters of " << pattern;
                continue;
            }
            for (const std::string& id :
                 {its.job, its.prompt, its.asset, its.hash, its.workflow, its.session}) {
                expect_same(method, pattern, mark, id);
                ++asked;
            }
        }
    }
    EXPECT_GT(asked, 50);
    expect_untouched(its);
}

TEST_P(Tenants, NoRouteOfComfyUITellsOfAnother) {
    const Belongings its = fill();
    for (const std::string prefix : {"", "/api"}) {
        for (const std::string& id : {its.job, its.prompt, its.asset}) {
            expect_same("GET", prefix + "/history/{id}", "{id}", id);
            EXPECT_EQ(ask("POST", prefix + "/queue", {{"delete", json::array{id}}}).status, 200);
            EXPECT_EQ(ask("POST", prefix + "/interrupt", {{"prompt_id", id}}).status, 200);
            EXPECT_EQ(ask("POST", prefix + "/history", {{"delete", json::array{id}}}).status, 200);
            for (const char* folder : {"input", "output", "temp"}) {
                for (const char* file : {"red-secret_00001_.png", "red-secret.png"}) {
                    expect_same(
                        "GET",
                        prefix + "/view?filename=" + file + "&type=" + folder + "&subfolder={id}",
                        "{id}",
                        id
                    );
                }
            }
        }
        EXPECT_EQ(ask("POST", prefix + "/history", {{"clear", true}}).status, 200);
        EXPECT_EQ(ask("POST", prefix + "/queue", {{"clear", true}}).status, 200);
        for (const char* file :
             {"red-secret_00001_.png", "red-secret.png", "red-secret.png%20[output]"}) {
            for (const char* more : {"", "&subfolder=sub", "&type=temp", "&type=input"}) {
                const std::string path = prefix + "/view?filename=" + file + more;
                EXPECT_EQ(blue_->get(path).status, 404) << path;
            }
        }
        EXPECT_EQ(blue_->get(prefix + "/userdata/red-secret.png").status, 404);
        for (const char* path :
             {"/history",
              "/queue",
              "/prompt",
              "/object_info",
              "/object_info/LoadImage",
              "/settings",
              "/users",
              "/userdata?dir=",
              "/v2/userdata"}) {
            EXPECT_THAT(blue_->get(prefix + path).body, Not(HasSubstr(kMark))) << prefix << path;
        }
    }
    for (const std::string& id : {its.job, its.prompt, its.asset}) {
        expect_same("GET", "/api/jobs/{id}", "{id}", id);
        expect_same("POST", "/api/jobs/{id}/cancel", "{id}", id);
    }
    EXPECT_THAT(blue_->get("/api/jobs").body, Not(HasSubstr(its.prompt)));
    for (const char* folder : {"input", "output", "temp"}) {
        EXPECT_EQ(blue_->get("/internal/files/" + std::string(folder)).body, "[]");
    }
    // The names on the workers themselves.
    for (const std::string& name : names_on_worker()) {
        const auto slash = name.rfind('/');
        const std::string file = net::percent_encode(name.substr(slash + 1));
        const std::string folder = net::percent_encode(name.substr(0, slash));
        for (const char* type : {"input", "output", "temp"}) {
            const std::string query =
                "/view?filename=" + file + "&subfolder=" + folder + "&type=" + type;
            EXPECT_EQ(blue_->get(query).status, 404) << query;
        }
    }
    expect_untouched(its);
}

// The names by which the first tenant's files could be meant, and for each one that nobody has.
std::vector<std::pair<std::string, std::string>> names(
    const std::string& job, const std::vector<std::string>& on_worker
) {
    const std::string nobodys = "comfyd_00000000000000000000000000000000";
    std::vector<std::pair<std::string, std::string>> made;
    for (const char* end : {"", " [input]", " [output]", " [temp]", "#[output]"}) {
        for (const char* folder : {"", "sub/", "./", "../output/", "../temp/"}) {
            for (const char* name : {"red-secret.png", "red-secret_00001_.png"}) {
                made.emplace_back(
                    std::string(folder) + name + end, std::string(folder) + "nothing.png" + end
                );
            }
        }
        made.emplace_back(
            job + "/red-secret_00001_.png" + end, kNobodys + "/red-secret_00001_.png" + end
        );
        for (const std::string& name : on_worker) {
            const std::string file = name.substr(name.rfind('/') + 1);
            const std::string folder = name.substr(0, name.find('/'));
            for (const std::string& tail : {file, std::string("red-secret_00001_.png")}) {
                made.emplace_back(folder + "/" + tail + end, nobodys + "/" + tail + end);
                made.emplace_back(
                    "../output/" + folder + "/" + tail + end, "../output/" + nobodys + "/x" + end
                );
            }
        }
    }
    return made;
}

TEST_P(Tenants, NoInputOfANodeReadsAnothersFile) {
    const Belongings its = fill();
    std::vector<std::string> on_worker = names_on_worker();
    ASSERT_FALSE(on_worker.empty());
    on_worker.resize(std::min<std::size_t>(on_worker.size(), 3));
    const auto submit = [this](const std::string& path, const json::object& graph) {
        const json::object body = path.ends_with("tasks")    ? json::object{{"payload", graph}}
                                  : path.ends_with("prompt") ? json::object{{"prompt", graph}}
                                                             : json::object{{"workflow", graph}};
        return blue_->post_json(path, body);
    };
    const std::size_t ran = worker_ ? worker_->accepted_prompts().size() : 0;
    std::size_t number = 0;
    const std::array<const char*, 6> routes{
        "/prompt",
        "/api/prompt",
        "/api/v2/jobs",
        "/v2/workflows/execute",
        "/comfyui/execute",
        "/api/v1/tasks"
    };
    for (const auto& [name, nobodys] : names(its.job, on_worker)) {
        for (const char* class_type : {"LoadImage", "LoadImageMask", "LoadImageOutput"}) {
            const std::string route = routes[number++ % routes.size()];
            const json::object graph = loaded(class_type, "image", json::value(name));
            const Reply real = submit(route, graph);
            EXPECT_EQ(real.status, route.ends_with("prompt") ? 400 : real.status) << name;
            EXPECT_GE(real.status, 400) << route << " " << class_type << " " << name;
            const Reply made_up = submit(route, loaded(class_type, "image", json::value(nobodys)));
            EXPECT_EQ(real.status, made_up.status) << route << " " << name << " " << nobodys;
            const Reply looked = blue_->post_json("/v2/workflows/validate", {{"workflow", graph}});
            EXPECT_EQ(looked.json_at("/valid"), false) << class_type << " " << name;
        }
        // Lists, nested values and classes of which nothing is known.
        const bool is_text =
            name.find('[') == std::string::npos && name.find("comfyd_") == std::string::npos;
        for (const json::value& value :
             {json::value(json::object{{"__value__", json::array{name, name, "x"}}}),
              json::value(json::object{{"deep", json::object{{"er", json::array{1, name}}}}})}) {
            const Reply real = submit("/prompt", loaded("LoadImage", "image", value));
            EXPECT_EQ(real.status, 400) << json::serialize(value);
        }
        if (worker_ && !is_text && !name.ends_with("[input]")) {
            const Reply real = submit("/prompt", loaded("ReadAnything", "what", json::value(name)));
            EXPECT_EQ(real.status, 400) << name;
        }
    }
    // A name that another node makes could be anybody's.
    json::object linked = loaded("LoadImage", "image", json::array{"9", 0});
    linked["9"] = {{"class_type", "PrimitiveString"}, {"inputs", {{"value", "red-secret.png"}}}};
    EXPECT_EQ(submit("/prompt", linked).status, 400);
    EXPECT_EQ(worker_ ? worker_->accepted_prompts().size() : 0, ran);
    expect_untouched(its);
}

TEST_P(Tenants, EachHasItsOwnNamesAndNumbers) {
    const json::value first = run_as(*red_, saved("same"));
    const json::value second = run_as(*blue_, saved("same"));
    for (const json::value& job : {first, second}) {
        ASSERT_EQ(Comfyd::status_of(job), "succeeded") << json::serialize(job);
        EXPECT_THAT(json::serialize(job), HasSubstr("same_00001_.png"));
        EXPECT_THAT(json::serialize(job), Not(HasSubstr("comfyd_")));
    }
    // Each reads back its own, by the name that it was shown, uploads included.
    json::object other = saved("same");
    other.at("1").as_object().at("inputs").as_object()["color"] = 255;
    const json::value third = run_as(*blue_, other);
    EXPECT_THAT(json::serialize(third), HasSubstr("same_00002_.png"));
    for (Http* who : {red_.get(), blue_.get()}) {
        const json::value again =
            run_as(*who, loaded("LoadImage", "image", "same_00001_.png [output]"));
        EXPECT_EQ(Comfyd::status_of(again), "succeeded") << json::serialize(again);
        EXPECT_THAT(who->get("/history").body, Not(HasSubstr("comfyd_")));
    }
    EXPECT_EQ(
        red_->post_json(
                "/prompt", {{"prompt", loaded("LoadImage", "image", "same_00002_.png [output]")}}
        ).status,
        400
    );
    const std::string lists = blue_->get("/object_info").body;
    for (const std::string& name : names_on_worker()) {
        EXPECT_THAT(lists, Not(HasSubstr(name.substr(0, name.find('/'))))) << name;
    }
}

INSTANTIATE_TEST_SUITE_P(
    , Tenants, testing::Values(WorkerKind::engine, WorkerKind::comfyui), name_of
);

}  // namespace
}  // namespace comfyd::support
