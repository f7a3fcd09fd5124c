#include "fleet/instances/wants.hpp"

#include <gmock/gmock.h>

namespace comfyd::fleet {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::uint64_t kGiB = 1024ULL * 1024 * 1024;

TEST(Wants, AnOfferIsNarrowedToWhatIsWanted) {
    const OfferWish offer{.provider = "c", .gpus = {"H100", "A100 80GB", "L40S", "Novel 1"}};
    EXPECT_THAT(narrowed(offer, {.gpu = "a100"})->gpus, ElementsAre("A100 80GB"));
    EXPECT_FALSE(narrowed(offer, {.gpu = "RTX 4090"}));
    EXPECT_FALSE(narrowed(offer, {.gpu = "L40S", .memory_gb = 80}));
    EXPECT_THAT(
        narrowed(offer, {.memory_gb = 40})->gpus,
        ElementsAre("L40S", "H100", "A100 80GB", "Novel 1")
    ) << "the tightest first, and nobody knows how much the last one has";
    EXPECT_THAT(narrowed(offer, {.memory_gb = 500})->gpus, ElementsAre("Novel 1"));
    EXPECT_EQ(narrowed(offer, {.region = "eu"})->region, "eu");
    EXPECT_EQ(narrowed(offer, {})->gpus, offer.gpus);
}

TEST(Wants, AnOfferOfAnythingMayBeIt) {
    const OfferWish anything{.provider = "c", .region = "EU"};
    EXPECT_THAT(narrowed(anything, {.gpu = "B200"})->gpus, ElementsAre("B200"));
    EXPECT_THAT(narrowed(anything, {.memory_gb = 500})->gpus, IsEmpty());
    EXPECT_EQ(narrowed(anything, {.region = "eu"})->region, "EU") << "as it was configured";
    EXPECT_FALSE(narrowed(anything, {.region = "us"}));
}

TEST(Wants, PlacesByExactNameThenMemoryThenOrder) {
    const std::vector<OfferWish> offers{
        {.provider = "any"},
        {.provider = "a", .gpus = {"A100 SXM4 40GB"}},
        {.provider = "b", .gpus = {"H200"}},
        {.provider = "c", .gpus = {"A100 SXM4 80GB"}},
        {.provider = "d", .gpus = {"A100 SXM4 80GB"}},
    };
    EXPECT_THAT(places_for(offers, {.gpu = "A100"}), ElementsAre(1, 3, 4, 0));
    EXPECT_THAT(places_for(offers, {.gpu = "A100 80GB"}), ElementsAre(3, 4, 0, 1))
        << "one that names no GPU asks for the very name, before one that has another";
    EXPECT_THAT(places_for(offers, {.memory_gb = 60}), ElementsAre(3, 4, 2, 0));
    EXPECT_THAT(places_for({}, {.memory_gb = 60}), IsEmpty());
}

TEST(Wants, OfWhatAProviderHasTheTightest) {
    const Offer small{.id = "1", .gpu = "NVIDIA L4", .gpu_memory_bytes = 22 * kGiB};
    const Offer large{.id = "2", .gpu = "NVIDIA H200", .gpu_memory_bytes = 140 * kGiB};
    const Offer middle{.id = "3", .gpu = "NVIDIA L40S"};
    const Offer silent{.id = "4"};
    const std::vector<const Offer*> all{&large, &silent, &small, &middle};
    EXPECT_EQ(tightest(all, {.memory_gb = 24}), &small);
    EXPECT_EQ(tightest(all, {.memory_gb = 40}), &middle);
    EXPECT_EQ(tightest(all, {.memory_gb = 60}), &large);
    EXPECT_EQ(tightest(all, {.gpu = "H200"}), &large);
    EXPECT_EQ(tightest({&small}, {.gpu = "H200"}), nullptr);
    EXPECT_EQ(tightest({&silent}, {.gpu = "H200"}), &silent);
    EXPECT_EQ(tightest({}, {}), nullptr);
}

}  // namespace
}  // namespace comfyd::fleet
