#include "fleet/providers/gpu_places.hpp"

#include <gmock/gmock.h>

namespace comfyd::fleet {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kGb = 1'000'000'000;

GpuUse use_of(std::uint64_t total, std::uint64_t free, std::vector<GpuTenant> tenants = {}) {
    return {{"GPU-1", "NVIDIA H200", total, free, {}}, std::move(tenants), 0};
}

TEST(GpuPlaces, AsManyAsWereAskedFor) {
    const GpuSharing three{3, 0};
    EXPECT_EQ(place_on(use_of(150 * kGb, 149 * kGb), three).free_places, 3);
    EXPECT_EQ(place_on(use_of(150 * kGb, 149 * kGb, {{}, {}}), three).free_places, 1);
    const auto full = place_on(use_of(150 * kGb, 149 * kGb, {{}, {}, {}}), three);
    EXPECT_EQ(full.free_places, 0);
    EXPECT_THAT(full.reason, HasSubstr("has its 3 processes"));
}

TEST(GpuPlaces, EachHasItsPartWhoeverItSharesWith) {
    const GpuTenant quarter{0, {}, 4};
    const GpuTenant half{0, {}, 2};
    const auto left = [](std::vector<GpuTenant> tenants, int per_gpu) {
        return place_on(use_of(150 * kGb, 149 * kGb, std::move(tenants)), {per_gpu, 0}).free_places;
    };
    EXPECT_EQ(left({quarter, half}, 4), 1);
    EXPECT_EQ(left({quarter, half}, 2), 0);
    EXPECT_EQ(left({half}, 1), 0) << "it would not have it alone";
    EXPECT_EQ(left({{0, {}, 1}}, 4), 0);
    EXPECT_EQ(left({{0, {}, 3}, {0, {}, 3}}, 3), 1);
}

TEST(GpuPlaces, AShareIsOfWhatOthersLeave) {
    // A desktop has 2 GB.
    const auto place = place_on(use_of(24 * kGb, 22 * kGb), {2, 0});
    EXPECT_EQ(place.free_places, 2);
    EXPECT_EQ(place.memory_bytes, 11 * kGb - kGpuOverheadBytes);
    // What ours use is not others'.
    const auto second = place_on(use_of(24 * kGb, 12 * kGb, {{0, 10 * kGb}}), {2, 0});
    EXPECT_EQ(second.free_places, 1);
    EXPECT_EQ(second.memory_bytes, 11 * kGb - kGpuOverheadBytes);
}

TEST(GpuPlaces, ASharedGpuThatIsTooSmallSaysSo) {
    const auto place = place_on(use_of(4 * kGb, 4 * kGb), {4, 0});
    EXPECT_EQ(place.free_places, 0);
    EXPECT_THAT(place.reason, HasSubstr("too little memory for 4 processes"));
    EXPECT_THAT(
        place_on(use_of(24 * kGb, 1 * kGb), {1, 0}).reason, HasSubstr("others use 23.0 GB")
    );
}

TEST(GpuPlaces, WhatEachNeedsIsKeptFree) {
    const GpuSharing sharing{8, 7 * kGb};  // 7.5 with the overhead
    EXPECT_EQ(place_on(use_of(24 * kGb, 24 * kGb), sharing).free_places, 3);
    // Promised, though nothing of it is used yet.
    EXPECT_EQ(place_on(use_of(24 * kGb, 24 * kGb, {{7 * kGb, {}}}), sharing).free_places, 2);
    EXPECT_EQ(place_on(use_of(24 * kGb, 17 * kGb, {{7 * kGb, 7 * kGb}}), sharing).free_places, 2);
    // More than it was promised.
    EXPECT_EQ(place_on(use_of(24 * kGb, 14 * kGb, {{7 * kGb, 10 * kGb}}), sharing).free_places, 1);
    // Others have some.
    const auto full = place_on(use_of(24 * kGb, 10 * kGb, {{7 * kGb, 0}}), sharing);
    EXPECT_EQ(full.free_places, 0);
    EXPECT_THAT(full.reason, HasSubstr("has 2.5 GB left for a process that needs 7.5 GB"));
    EXPECT_THAT(full.reason, HasSubstr("others use 14.0 GB"));
}

TEST(GpuPlaces, OfProcessesInOtherNamespacesOursAreTakenForOurs) {
    GpuUse use = use_of(24 * kGb, 16 * kGb, {{7 * kGb, {}}});
    use.hidden_bytes = 8 * kGb;
    const GpuSharing sharing{8, 7 * kGb};
    EXPECT_EQ(place_on(use, sharing).free_places, 2);
    use.hidden_bytes = 0;
    EXPECT_EQ(place_on(use, sharing).free_places, 1);
}

TEST(GpuPlaces, MemoryThatIsNotToldIsNotReckonedWith) {
    EXPECT_EQ(place_on(use_of(0, 0, {{}}), {2, 500 * kGb}).free_places, 1);
}

TEST(GpuPlaces, TheEmptiestIsChosen) {
    std::vector<GpuUse> uses{
        use_of(24 * kGb, 24 * kGb, {{}}), use_of(24 * kGb, 10 * kGb), use_of(24 * kGb, 20 * kGb)
    };
    uses[0].gpu.uuid = "GPU-a";
    uses[1].gpu.uuid = "GPU-b";
    uses[2].gpu.uuid = "GPU-c";
    EXPECT_EQ(choose_gpu(uses, {2, 0}, "").value(), "GPU-c");
    EXPECT_EQ(choose_gpu(uses, {2, 0}, "GPU-a").value(), "GPU-a");
    const auto full = choose_gpu(uses, {1, 0}, "GPU-a");
    ASSERT_FALSE(full);
    EXPECT_EQ(full.error().code, Code::out_of_stock);
    EXPECT_EQ(choose_gpu(uses, {1, 0}, "GPU-x").error().code, Code::not_found);
    EXPECT_EQ(choose_gpu({}, {1, 0}, "").error().code, Code::not_found);
}

}  // namespace
}  // namespace comfyd::fleet
