#include "fleet/providers/machine_names.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace comfyd::fleet {
namespace {

using testing::HasSubstr;

TEST(MachineNames, OfOneFleetAndOfNoOther) {
    const std::string uuid = "0190f3c2-7a11-7b3c-8d4e-5f6071829304";
    EXPECT_TRUE(is_of_fleet("comfyd-a-1", "a"));
    EXPECT_TRUE(is_of_fleet("comfyd-a-" + uuid, "a"));
    EXPECT_TRUE(is_of_fleet("comfyd-a-b-1", "a-b"));
    EXPECT_TRUE(is_of_fleet("comfyd-a-b-" + uuid, "a-b"));
    // Fleets whose names begin alike.
    EXPECT_FALSE(is_of_fleet("comfyd-a-b-1", "a"));
    EXPECT_FALSE(is_of_fleet("comfyd-a-b-" + uuid, "a"));
    EXPECT_FALSE(is_of_fleet("comfyd-ab-1", "a"));
    EXPECT_FALSE(is_of_fleet("comfyd-a-", "a"));
    EXPECT_FALSE(is_of_fleet("comfyd-a", "a"));
    EXPECT_FALSE(is_of_fleet("comfyd--1", ""));
    EXPECT_FALSE(is_of_fleet("my-comfyd-a-1", "a"));
    EXPECT_FALSE(is_of_fleet("", "a"));
}

TEST(MachineNames, GpusByWhatTellsThemApart) {
    EXPECT_TRUE(is_gpu("RTX 4090", "NVIDIA GeForce RTX 4090"));
    EXPECT_TRUE(is_gpu("rtx_4090", "RTX 4090 24GB"));
    EXPECT_TRUE(is_gpu("A100", "NVIDIA A100-SXM4-80GB"));
    EXPECT_TRUE(is_gpu("NVIDIA H100 80GB HBM3", "H100 SXM 80GB"));
    EXPECT_FALSE(is_gpu("L40", "L40S"));
    EXPECT_FALSE(is_gpu("RTX 6000", "RTX 6000 Ada Generation"));
    EXPECT_FALSE(is_gpu("RTX 4090", "RTX 4080"));
    EXPECT_FALSE(is_gpu("", "RTX 4080"));
    EXPECT_FALSE(is_gpu("NVIDIA", "NVIDIA GeForce RTX 4090"));
}

TEST(MachineNames, ThePlaceAmongTheWished) {
    EXPECT_EQ(place_of_gpu({}, {"anything"}), 0u);
    EXPECT_EQ(place_of_gpu({"H100", "RTX 4090"}, {"NVIDIA GeForce RTX 4090", "RTX 4090"}), 1u);
    EXPECT_EQ(place_of_gpu({"H100"}, {"RTX 4090"}), std::nullopt);
}

TEST(MachineNames, NothingIsShownToTheWorldWithoutAToken) {
    MachineOrder order{.name = "comfyd-f-1", .fleet = "f", .instance = "1", .pool = "p"};
    EXPECT_EQ(check_public_order(order).error().code, Code::invalid_argument);
    order.secrets["COMFYD_WORKER_TOKEN"] = "";
    EXPECT_FALSE(check_public_order(order));
    order.secrets["COMFYD_WORKER_TOKEN"] = "token";
    EXPECT_TRUE(check_public_order(order));
    order.port = 8188;
    EXPECT_THAT(check_public_order(order).error().message, HasSubstr("ComfyUI's own"));
    order.port = 70'000;
    EXPECT_FALSE(check_public_order(order));
}

TEST(MachineNames, WhatTheAgentIsToldCannotBeOverwrittenByATemplate) {
    MachineOrder order{.name = "comfyd-f-1", .fleet = "f", .instance = "1", .pool = "p"};
    order.made_from.environment = {
        {"A", "1"}, {"COMFYD_WORKER_TOKEN", "x"}, {"SERVER_PORT", "8188"}
    };
    order.secrets = {{"COMFYD_WORKER_TOKEN", "real"}};
    const auto made = environment_of(order);
    EXPECT_EQ(made.at("A"), "1");
    EXPECT_EQ(made.at("COMFYD_WORKER_TOKEN"), "real");
    EXPECT_EQ(made.at("SERVER_PORT"), "18188");
    EXPECT_EQ(made.at("COMFYD_INSTANCE"), "1");
}

TEST(MachineNames, ACommandAsOneLine) {
    EXPECT_EQ(shell_line({}), "");
    EXPECT_EQ(
        shell_line({"comfyd", "worker", "--comfyui", "/opt/ComfyUI"}),
        "comfyd worker --comfyui /opt/ComfyUI"
    );
    EXPECT_EQ(shell_line({"sh", "-c", "echo 'a' $B; c", ""}), R"(sh -c 'echo '\''a'\'' $B; c' '')");
}

}  // namespace
}  // namespace comfyd::fleet
