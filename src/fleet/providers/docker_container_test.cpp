#include "fleet/providers/docker_container.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fleet/providers/docker_place.hpp"

namespace comfyd::fleet {
namespace {

using State = Machine::State;
using testing::ElementsAre;
using testing::HasSubstr;

ContainerSummary with_gpus(
    std::string gpus, std::string state = "running", std::string port = "1"
) {
    ContainerSummary made;
    made.name = "x";
    made.state = std::move(state);
    made.labels = {{"comfyd.fleet", "f"}, {"comfyd.gpus", gpus}, {"comfyd.port", port}};
    return made;
}

MachineOrder order(int gpus) {
    MachineOrder made{.name = "comfyd-f-1", .fleet = "f", .instance = "1", .pool = "p"};
    made.made_from.image = "comfyui:1";
    made.made_from.gpus = gpus;
    return made;
}

TEST(DockerPlaces, GpusAreGivenOutEvenlyAndNotTwice) {
    DockerOptions options;
    options.gpus = {"a", "b", "c"};
    const auto chosen = [&](int count, const std::vector<ContainerSummary>& others) {
        const auto place = choose_place(options, order(count), others, 0);
        return place ? place->gpus
                     : std::vector<std::string>{std::string(to_string(place.error().code))};
    };
    EXPECT_THAT(chosen(1, {}), ElementsAre("a"));
    EXPECT_THAT(chosen(1, {with_gpus("a")}), ElementsAre("b"));
    EXPECT_THAT(chosen(1, {with_gpus("a"), with_gpus("b,c", "dead")}), ElementsAre("b"));
    EXPECT_THAT(chosen(2, {with_gpus("b")}), ElementsAre("a", "c"));
    EXPECT_THAT(
        chosen(1, {with_gpus("a,b"), with_gpus("c", "exited")}), ElementsAre("out_of_stock")
    ) << "one that is parked keeps its GPU";
    EXPECT_THAT(chosen(3, {with_gpus("a")}), ElementsAre("out_of_stock"));
    EXPECT_THAT(chosen(0, {with_gpus("a,b"), with_gpus("c")}), ElementsAre());
    options.per_gpu = 2;
    EXPECT_THAT(chosen(1, {with_gpus("a"), with_gpus("b"), with_gpus("c")}), ElementsAre("a"));
    EXPECT_THAT(chosen(2, {with_gpus("a,b"), with_gpus("a,c")}), ElementsAre("b", "c"));
    EXPECT_EQ(count_free(options, 1, 0, {with_gpus("a,b"), with_gpus("a,c")}), 2);
    EXPECT_EQ(count_free(options, 2, 0, {}), 3);
}

// What a template says counts more than what the provider says, and each has its part.
TEST(DockerPlaces, PoolsShareGpusAsTheirTemplatesSay) {
    DockerOptions options;
    options.gpus = {"a", "b"};
    const auto sharing = [](int per_gpu, const char* gpus) {
        auto made = with_gpus(gpus);
        made.labels["comfyd.per_gpu"] = std::to_string(per_gpu);
        return made;
    };
    EXPECT_EQ(count_free(options, 1, 4, {}), 8);
    EXPECT_EQ(count_free(options, 1, 4, {sharing(4, "a"), sharing(2, "a")}), 5);
    EXPECT_EQ(count_free(options, 1, 2, {sharing(4, "a"), sharing(2, "a")}), 2);
    EXPECT_EQ(count_free(options, 1, 0, {sharing(4, "a"), sharing(2, "a")}), 1) << "a whole one";
    EXPECT_EQ(count_free(options, 1, 4, {with_gpus("a")}), 4) << "one that has all of it";
    EXPECT_EQ(count_free(options, 1, 3, {sharing(3, "a"), sharing(3, "a"), sharing(3, "a")}), 3);
    MachineOrder third = order(1);
    third.made_from.per_gpu = 3;
    const auto place = choose_place(options, third, {sharing(3, "a"), with_gpus("b")}, 0);
    ASSERT_TRUE(place);
    EXPECT_THAT(place->gpus, ElementsAre("a"));
    const auto body = json::serialize(make_container(options, {}, third, *place));
    EXPECT_THAT(body, HasSubstr(R"("comfyd.per_gpu":"3")"));
}

TEST(DockerPlaces, PortsGoRound) {
    DockerOptions options;
    options.network = "host";
    options.port_first = 10;
    options.port_last = 12;
    const auto port = [&](int before, const std::vector<ContainerSummary>& others) {
        const auto place = choose_place(options, order(0), others, before);
        return place ? place->port : -1;
    };
    EXPECT_EQ(port(0, {}), 10);
    EXPECT_EQ(port(10, {}), 11);
    EXPECT_EQ(port(12, {}), 10);
    EXPECT_EQ(port(12, {with_gpus("", "running", "10")}), 11);
    EXPECT_EQ(
        port(
            10,
            {with_gpus("", "running", "10"),
             with_gpus("", "exited", "11"),
             with_gpus("", "running", "12")}
        ),
        -1
    );
}

json::object host_of(const DockerOptions& options, const DockerEngine& engine, int gpus) {
    const auto place = choose_place(options, order(gpus), {}, 0);
    return make_container(options, engine, order(gpus), *place).at("HostConfig").as_object();
}

TEST(DockerContainer, GpusByWhatTheEngineKnows) {
    DockerOptions options;
    const DockerEngine docker{"1.41", false};
    const DockerEngine podman{"1.41", true};
    EXPECT_EQ(host_of(options, docker, 0).count("DeviceRequests"), 0u);
    EXPECT_EQ(
        json::serialize(host_of(options, docker, 2).at("DeviceRequests")),
        R"([{"Driver":"","Capabilities":[["gpu"]],"Count":2}])"
    );
    EXPECT_EQ(
        json::serialize(host_of(options, podman, 1).at("Devices")),
        R"([{"PathOnHost":"nvidia.com/gpu=0"}])"
    );
    options.gpus = {"GPU-1", "GPU-2"};
    EXPECT_EQ(
        json::serialize(host_of(options, docker, 1).at("DeviceRequests")),
        R"([{"Driver":"","Capabilities":[["gpu"]],"DeviceIDs":["GPU-1"]}])"
    );
    EXPECT_EQ(
        json::serialize(host_of(options, podman, 2).at("Devices")),
        R"([{"PathOnHost":"nvidia.com/gpu=GPU-1"},{"PathOnHost":"nvidia.com/gpu=GPU-2"}])"
    );
    options.gpu_driver = "cdi";
    EXPECT_EQ(
        json::serialize(host_of(options, docker, 1).at("DeviceRequests")),
        R"([{"Driver":"cdi","Capabilities":[["gpu"]],"DeviceIDs":["nvidia.com/gpu=GPU-1"]}])"
    );
}

TEST(DockerContainer, HowItsAgentIsReached) {
    const DockerEngine docker{"1.41", false};
    DockerOptions options;
    auto body = make_container(options, docker, order(0), {.port = 18'188});
    EXPECT_EQ(
        json::serialize(body.at("HostConfig").at("PortBindings")),
        R"({"18188/tcp":[{"HostIp":"127.0.0.1","HostPort":""}]})"
    ) << "on the loopback only";
    options.network = "comfy-net";
    body = make_container(options, docker, order(0), {.port = 18'188});
    EXPECT_EQ(body.at("Labels").at("comfyd.url"), "http://comfyd-f-1:18188");
    EXPECT_EQ(body.at("HostConfig").at("NetworkMode"), "comfy-net");
    EXPECT_EQ(body.at("HostConfig").as_object().count("PortBindings"), 0u);
    options.network = "host";
    body = make_container(options, docker, order(0), {.port = 18'201});
    EXPECT_EQ(body.at("Labels").at("comfyd.url"), "http://127.0.0.1:18201");
    EXPECT_THAT(json::serialize(body.at("Env")), HasSubstr("SERVER_HOST=127.0.0.1"));
    EXPECT_THAT(json::serialize(body.at("Env")), HasSubstr("SERVER_PORT=18201"));
}

TEST(DockerContainer, ListsOfAnyKindAreSurvived) {
    EXPECT_TRUE(read_containers(json::value(nullptr)).empty());
    const auto read = read_containers(*json::parse(R"([
        7, null, {}, {"Labels":null}, {"Labels":{"comfyd.fleet":"f"}}, {"Names":["/a"],"Labels":{"other":"x"}},
        {"Names":["/b"],"State":"running","Created":"soon","Labels":{"comfyd.fleet":"f","comfyd.port":"9","n":1},
         "Ports":[null,{"PrivatePort":8,"PublicPort":7},{"PrivatePort":9},{"IP":"0.0.0.0","PrivatePort":9,"PublicPort":5}]}
    ])"));
    ASSERT_EQ(read.size(), 1u);
    EXPECT_EQ(read[0].name, "b");
    EXPECT_EQ(read[0].published, "127.0.0.1:5");
    EXPECT_EQ(read[0].made_at, std::nullopt);
    const Machine machine = to_machine({}, read[0], nullptr, false);
    EXPECT_EQ(machine.state, State::running);
    EXPECT_EQ(machine.url, "http://127.0.0.1:5");
}

TEST(DockerLogs, FramesOfBothStreams) {
    const auto frame = [](char stream, const std::string& text) {
        std::string made(8, '\0');
        made[0] = stream;
        made[6] = static_cast<char>(text.size() >> 8);
        made[7] = static_cast<char>(text.size());
        return made + text;
    };
    const std::string frames =
        frame(1, "one\n") + frame(2, "two\n") + frame(1, std::string(300, 'x'));
    EXPECT_EQ(text_of_frames(frames, 1000), "one\ntwo\n" + std::string(300, 'x'));
    EXPECT_EQ(text_of_frames(frames, 306), "two\n" + std::string(300, 'x'));
    EXPECT_EQ(text_of_frames("plain text of a terminal", 100), "plain text of a terminal");
    EXPECT_EQ(text_of_frames("", 100), "");
    // Cut off, and a length that is not there.
    for (std::size_t end = 0; end < frames.size(); ++end) {
        text_of_frames(frames.substr(0, end), 50);
    }
    EXPECT_EQ(text_of_frames(std::string("\x01\0\0\0\xff\xff\xff\xff", 8) + "ab", 100), "ab");
}

TEST(DockerVersion, TheOlderOfTwo) {
    EXPECT_EQ(older_version("1.41", "1.47"), "1.41");
    EXPECT_EQ(older_version("1.9", "1.41"), "1.9");
    EXPECT_EQ(older_version("2.0", "1.47"), "1.47");
    for (const char* text : {"", "1", "1.", "x.1", "1.4x", "1.41 "}) {
        EXPECT_EQ(older_version(text, "1.47"), std::nullopt) << text;
    }
}

TEST(DockerOptions, WrongOnesAreRefusedByName) {
    const auto why = [](const std::function<void(DockerOptions&)>& change) {
        DockerOptions options;
        change(options);
        const auto checked = check_docker(options);
        return checked ? std::string("good") : checked.error().message;
    };
    EXPECT_EQ(why([](DockerOptions&) {}), "good");
    EXPECT_THAT(why([](DockerOptions& o) { o.socket = "tcp://x"; }), HasSubstr("socket"));
    EXPECT_THAT(why([](DockerOptions& o) { o.port_last = 70'000; }), HasSubstr("ports"));
    EXPECT_THAT(why([](DockerOptions& o) { o.port_last = 1; }), HasSubstr("ports"));
    EXPECT_THAT(why([](DockerOptions& o) { o.per_gpu = 0; }), HasSubstr("per_gpu"));
    EXPECT_THAT(why([](DockerOptions& o) { o.gpus = {"0", "0"}; }), HasSubstr("twice"));
    EXPECT_THAT(why([](DockerOptions& o) { o.gpu_driver = "amd"; }), HasSubstr("gpu_driver"));
    EXPECT_THAT(why([](DockerOptions& o) { o.volumes = {"models"}; }), HasSubstr("volume"));
    EXPECT_THAT(why([](DockerOptions& o) { o.usd_per_hour = -1; }), HasSubstr("prices"));
}

}  // namespace
}  // namespace comfyd::fleet
