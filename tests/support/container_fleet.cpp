#include "support/container_fleet.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <utility>

#include "base/crypto.hpp"

namespace comfyd::support {
namespace {

using Kind = ContainerEngine::Kind;

std::string taking(int milliseconds) {
    return "slow=" + std::to_string(milliseconds);
}

std::string text_of(const json::object& from, std::string_view key) {
    const json::value* found = json::find(from, key);
    return found != nullptr && found->is_string() ? std::string(found->get_string()) : "";
}

std::string label_of(const json::object& container, std::string_view name) {
    const json::value* labels = json::find(container, "Labels");
    return labels != nullptr && labels->is_object() ? text_of(labels->get_object(), name) : "";
}

std::string name_of(const json::object& container) {
    const json::value* names = json::find(container, "Names");
    const bool has = names != nullptr && names->is_array() && !names->get_array().empty() &&
                     names->get_array()[0].is_string();
    const std::string name = has ? std::string(names->get_array()[0].get_string()) : "";
    return name.starts_with('/') ? name.substr(1) : name;
}

bool is_ours(const json::object& container) {
    return label_of(container, "comfyd.fleet") == ContainerFleet::kName &&
           name_of(container).starts_with("comfyd-");
}

}  // namespace

ContainerFleet::ContainerFleet(ContainerFleetOptions options)
    : options_(std::move(options)),
      engine_(ContainerEngine::shared(options_.engine)),
      inside_(engine_) {
    folder_.write("journal/lines", "");
    folder_.write(
        "warm-up.json", json::serialize(text_to_image("warm-up", taking(options_.warm_up_ms)))
    );
    make_strangers();
    comfyd_ = std::make_unique<Comfyd>(ComfydOptions{
        .arguments =
            {"--no-engine",
             "--config",
             folder_.write("comfyd.yaml", configuration(0)),
             "--set",
             "fleet.poll_ms=50"},
    });
}

ContainerFleet::~ContainerFleet() {
    comfyd_.reset();
    for (const json::object& container : all_containers()) {
        engine_.api("DELETE", "/containers/" + text_of(container, "Id") + "?force=1&v=1");
    }
}

std::string ContainerFleet::configuration(int size) const {
    const std::string network = options_.engine == Kind::podman ? "host" : "";
    return "fleet: {name: " + std::string(kName) +
           "}\n"
           "providers:\n"
           "  here:\n"
           "    kind: docker\n"
           "    socket: " +
           engine_.socket() + "\n    network: '" + network +
           "'\n"
           "    volumes: /usr:/usr:ro," COMFYD_BINARY ":/programs/comfyd:ro," COMFY_DOUBLE
           ":/programs/comfy-double:ro," +
           (folder_ / "journal") +
           ":/journal\n"
           "    stop_grace_s: 15\n"
           "pools:\n"
           "  - name: default\n"
           "    " +
           (options_.scaling.empty() ? "size: " + std::to_string(size) : options_.scaling) +
           "\n"
           "    parked: " +
           std::to_string(options_.parked) +
           "\n"
           "    template: {image: '" +
           options_.image + "', gpus: " + std::to_string(options_.gpus) +
           ", warm_up: " + (folder_ / "warm-up.json") + "}\n    offers: [{provider: here}]\n";
}

// Much like ours: another fleet's, one of our name without our labels, one with our label and
// another name.
void ContainerFleet::make_strangers() {
    const std::string name = kName;
    const auto make = [&](const std::string& called, const json::object& labels, bool runs) {
        const json::object host{{"NetworkMode", "host"}};
        const json::array variables{"SERVER_HOST=127.0.0.1", "SERVER_PORT=18999"};
        const json::object body{
            {"Image", ContainerEngine::kImage},
            {"Labels", labels},
            {"HostConfig", host},
            {"Env", variables}
        };
        engine_.api("POST", "/containers/create?name=" + called, json::serialize(body));
        if (runs) {
            engine_.api("POST", "/containers/" + called + "/start");
        }
    };
    make("stranger", {}, true);
    make("comfyd-" + name + "-", {}, false);
    make("comfyd-" + name + "-0123456789ab", {}, false);
    make("comfyd-" + name + "-g-0123456789ab", {{"comfyd.fleet", name + "-g"}}, true);
    make("comfyd-other-0123456789ab", {{"comfyd.fleet", "other"}}, false);
    make("database", {{"comfyd.fleet", name}, {"comfyd.instance", "database"}}, false);
    others_ = strangers();
    EXPECT_EQ(others_.size(), 6U);
}

std::vector<json::object> ContainerFleet::all_containers() const {
    std::vector<json::object> all;
    const auto list = json::parse(engine_.api("GET", "/containers/json?all=1"));
    if (!list || !list->is_array()) {
        return all;
    }
    for (const json::value& container : list->get_array()) {
        all.push_back(container.as_object());
    }
    return all;
}

std::map<std::string, ContainerFleet::Stranger> ContainerFleet::strangers() const {
    std::map<std::string, Stranger> found;
    const auto ours = containers();
    for (const json::object& container : all_containers()) {
        if (!ours.contains(name_of(container))) {
            found[name_of(container)] = {text_of(container, "Id"), text_of(container, "State")};
        }
    }
    return found;
}

std::set<std::string> ContainerFleet::containers() const {
    std::set<std::string> names;
    for (const json::object& container : all_containers()) {
        if (is_ours(container)) {
            names.insert(name_of(container));
        }
    }
    return names;
}

std::size_t ContainerFleet::running_containers() const {
    const auto all = all_containers();
    return static_cast<std::size_t>(std::ranges::count_if(all, [](const json::object& container) {
        return is_ours(container) && text_of(container, "State") == "running";
    }));
}

bool ContainerFleet::wait_no_containers() {
    return wait_until([&] { return containers().empty(); }, kLong);
}

void ContainerFleet::expect_others_untouched(bool engine_has_died) {
    const auto now = strangers();
    EXPECT_EQ(now.size(), others_.size());
    for (const auto& [name, before] : others_) {
        const auto found = now.find(name);
        ASSERT_NE(found, now.end()) << name << " was removed";
        EXPECT_EQ(found->second.id, before.id) << name << " is another one";
        EXPECT_TRUE(engine_has_died || found->second.state == before.state)
            << name << " is " << found->second.state;
    }
}

void ContainerFleet::resize(int size) {
    const Reply reply = comfyd_->http().put(
        "/admin/v1/fleet/pools/default", json::serialize(json::object{{"size", size}})
    );
    EXPECT_EQ(reply.status, 200) << reply.body;
}

void ContainerFleet::configure(int size) {
    folder_.write("comfyd.yaml", configuration(size));
}

std::map<std::string, int> ContainerFleet::states() {
    std::map<std::string, int> counts;
    const json::value fleet = comfyd_->http().get("/admin/v1/fleet").json();
    const json::value* pools =
        fleet.is_object() ? json::find(fleet.get_object(), "pools") : nullptr;
    if (pools == nullptr) {
        return {{"no answer", 1}};
    }
    for (const json::value& instance : pools->at(0).at("instances").as_array()) {
        ++counts[std::string(instance.at("state").as_string())];
    }
    return counts;
}

bool ContainerFleet::wait_state(const std::string& state) {
    return wait_until([&] { return states().contains(state); }, kLong);
}

bool ContainerFleet::comes_into(const std::string& state, int size) {
    bool is_seen = false;
    wait_until(
        [&] {
            const auto now = states();
            is_seen = now.contains(state);
            return is_seen || now == std::map<std::string, int>{{"ready", size}};
        },
        kLong
    );
    return is_seen;
}

bool ContainerFleet::wait_settled(int size, int parked) {
    std::map<std::string, int> wanted;
    if (size > 0) {
        wanted["ready"] = size;
    }
    if (parked > 0) {
        wanted["parked"] = parked;
    }
    return wait_until([&] { return states() == wanted; }, kLong);
}

std::string ContainerFleet::cli(std::vector<std::string> words) {
    words.insert(words.begin(), COMFYD_BINARY);
    words.insert(words.end(), {"--url", comfyd_->url()});
    Process process(std::move(words));
    process.wait();
    return process.output() + process.errors();
}

void ContainerFleet::submit(int milliseconds) {
    submit(taking(milliseconds));
}

void ContainerFleet::submit(const std::string& behaviour) {
    const std::string text = "job " + std::to_string(jobs_.size()) + ".";
    jobs_.push_back(comfyd_->submit(
        text_to_image(text, behaviour), {{"execution_config", {{"max_retries", 9}}}}
    ));
}

void ContainerFleet::submit_held() {
    std::filesystem::remove(folder_ / "journal/let-go");
    submit("held");
}

void ContainerFleet::let_go() {
    folder_.write("journal/let-go", "");
}

std::map<std::string, ContainerFleet::Runs> ContainerFleet::runs() const {
    const auto warm_up = json::parse(read_file(folder_ / "warm-up.json"));
    const std::string not_a_job = to_hex(sha256(json::serialize_canonical(*warm_up)));
    std::map<std::string, Runs> by_content;
    std::map<std::string, std::string> content_of;  // by prompt
    std::istringstream lines(read_file(folder_ / "journal/lines"));
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::string what;
        std::string prompt;
        std::string content;
        words >> what >> prompt >> content;
        if (what == "start") {
            content_of[prompt] = content;
            ++by_content[content].begun;
        } else if (content == "success") {
            ++by_content[content_of[prompt]].done;
        }
    }
    by_content.erase(not_a_job);
    return by_content;
}

bool ContainerFleet::wait_begun(std::size_t count) {
    return wait_until([&] { return runs().size() >= count; }, kLong);
}

std::set<std::string> ContainerFleet::begun() const {
    std::set<std::string> found;
    for (const auto& [content, run] : runs()) {
        found.insert(content);
    }
    return found;
}

std::set<std::string> ContainerFleet::running() const {
    std::set<std::string> found;
    for (const auto& [content, run] : runs()) {
        if (run.done == 0) {
            found.insert(content);
        }
    }
    return found;
}

void ContainerFleet::wait_jobs_done() {
    for (const std::string& id : jobs_) {
        const json::value job = comfyd_->wait_finished(id, kLong);
        ASSERT_EQ(Comfyd::status_of(job), "succeeded") << json::serialize(job) << comfyd_->log();
    }
}

void ContainerFleet::expect_jobs_done(const std::set<std::string>& lost) {
    wait_jobs_done();
    const auto all = runs();
    EXPECT_EQ(all.size(), jobs_.size());
    for (const auto& [content, run] : all) {
        EXPECT_GE(run.done, 1) << content;
        EXPECT_TRUE(run.done == 1 || lost.contains(content)) << content;
        EXPECT_TRUE(run.begun == 1 || lost.contains(content)) << content << "\n" << journal();
    }
}

std::string ContainerFleet::journal() const {
    return read_file(folder_ / "journal/lines") + comfyd_->log();
}

}  // namespace comfyd::support
