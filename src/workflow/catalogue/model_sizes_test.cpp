#include "workflow/catalogue/model_sizes.hpp"

#include <gtest/gtest.h>

namespace comfyd::workflow {
namespace {

TEST(ModelSizes, NamesCountBeforePatternsAndInAnyFolder) {
    const ModelSizes sizes = known_sizes({
        {"flux*", 5},
        {"*.safetensors", 4},
        {"sd_xl_base_1.0.safetensors", 6'900'000'000},
        {"special/vae.pt", 3},
    });
    const auto of = [&sizes](std::string_view name) { return sizes(ModelKind::other, name); };
    EXPECT_EQ(of("sd_xl_base_1.0.safetensors"), 6'900'000'000);
    EXPECT_EQ(of("xl/sd_xl_base_1.0.safetensors"), 6'900'000'000);
    EXPECT_EQ(of("xl\\sd_xl_base_1.0.safetensors"), 6'900'000'000);
    EXPECT_EQ(of("special/vae.pt"), 3U);
    EXPECT_EQ(of("vae.pt"), std::nullopt) << "another one may be meant";
    EXPECT_EQ(of("unets/flux-dev.safetensors"), 5U) << "the first pattern that fits";
    EXPECT_EQ(of("other.safetensors"), 4U);
    EXPECT_EQ(known_sizes({})(ModelKind::other, "a"), std::nullopt);
}

}  // namespace
}  // namespace comfyd::workflow
