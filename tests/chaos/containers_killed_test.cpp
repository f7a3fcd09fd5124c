// comfyd is killed at every step of the life of a machine that is a container, and dockerd too: no
// job is lost or run twice, no container is left, and those of others are not touched.
//
// COMFYD_KILLS is how often it is killed (once at each step otherwise), COMFYD_CHAOS_SEED repeats
// its choices.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <set>
#include <string_view>
#include <thread>
#include <vector>

#include "support/container_fleet.hpp"

namespace comfyd::support {
namespace {

using Kind = ContainerEngine::Kind;

unsigned number_from(const char* name, unsigned otherwise) {
    const char* given = std::getenv(name);
    return given == nullptr ? otherwise : static_cast<unsigned>(std::strtoul(given, nullptr, 10));
}

class ContainersKilled : public testing::TestWithParam<Kind> {
protected:
    static constexpr int kSizeMax = 3;
    static constexpr int kLongJob = 1'500;

    ContainersKilled()
        : seed_(number_from("COMFYD_CHAOS_SEED", std::random_device()())),
          random_(seed_),
          fleet_({.engine = GetParam(), .image = image(), .warm_up_ms = 300}) {
        std::printf("seed %u (COMFYD_CHAOS_SEED repeats its choices)\n", seed_);
    }

    static const char* image() {
        return GetParam() == Kind::docker ? ContainerEngine::kRemoteComfyUiImage
                                          : ContainerEngine::kComfyUiImage;
    }
    int below(int limit) { return static_cast<int>(random_() % static_cast<unsigned>(limit)); }

    void resize(int size) {
        fleet_.resize(size);
        size_ = size;
    }
    void make_room() {
        if (size_ >= kSizeMax) {
            resize(0);
            ASSERT_TRUE(fleet_.wait_settled(0));
        }
    }
    // One more is on its way.
    void grow() {
        make_room();
        resize(size_ + 1);
    }
    // All machines have a job that takes a while, or one that is held.
    void keep_busy(bool held = false) {
        if (size_ == 0) {
            resize(1);
            ASSERT_TRUE(fleet_.wait_settled(1));
        }
        const std::size_t before = fleet_.submitted();
        for (int i = 0; i < size_; ++i) {
            held ? fleet_.submit_held() : fleet_.submit(kLongJob);
        }
        ASSERT_TRUE(fleet_.wait_begun(before + static_cast<std::size_t>(size_)));
    }
    // In the middle of what it does, or a little later.
    void kill_in(const std::string& state) {
        ASSERT_TRUE(fleet_.wait_state(state)) << fleet_.comfyd().log();
        kill_soon();
    }
    // While one comes. Where a state was over before anybody looked, another one comes.
    void kill_coming_in(const std::string& state) {
        constexpr int kTries = 10;
        for (int i = 0; i < kTries; ++i) {
            grow();
            if (fleet_.comes_into(state, size_)) {
                kill_soon();
                return;
            }
        }
        FAIL() << "none was seen " << state << "\n" << fleet_.comfyd().log();
    }
    void kill_soon() {
        std::this_thread::sleep_for(std::chrono::milliseconds(below(40)));
        fleet_.comfyd().kill();
    }
    void come_back() {
        fleet_.comfyd().start();
        ASSERT_TRUE(fleet_.wait_settled(size_)) << fleet_.cli({"fleet"}) << fleet_.comfyd().log();
    }

    void in_requested() {
        make_room();
        fleet_.engine().freeze();
        grow();
        kill_in("requested");
        fleet_.engine().thaw();
    }
    void in_creating() { kill_coming_in("creating"); }
    void in_pulling() {
        make_room();
        fleet_.engine().freeze_registry();
        fleet_.engine().forget_image(image());
        grow();
        kill_in("pulling");
        fleet_.engine().thaw_registry();
    }
    void in_starting() { kill_coming_in("starting"); }
    void in_warming() { kill_coming_in("warming"); }
    void in_ready() {
        keep_busy();
        fleet_.comfyd().kill();
    }
    void in_draining() {
        keep_busy(true);
        resize(size_ - 1);
        kill_in("draining");
        fleet_.let_go();
    }
    void in_removing() {
        keep_busy();
        resize(0);
        kill_in("removing");
    }

    struct Moment {
        const char* state;
        void (ContainersKilled::*kill)();
    };
    static std::vector<Moment> moments() {
        std::vector<Moment> all{
            {"requested", &ContainersKilled::in_requested},
            {"creating", &ContainersKilled::in_creating},
            {"pulling", &ContainersKilled::in_pulling},
            {"starting", &ContainersKilled::in_starting},
            {"warming", &ContainersKilled::in_warming},
            {"ready", &ContainersKilled::in_ready},
            {"draining", &ContainersKilled::in_draining},
            {"removing", &ContainersKilled::in_removing},
        };
        if (GetParam() == Kind::podman) {
            std::erase_if(all, [](const Moment& moment) {
                return moment.state == std::string_view("pulling");  // it has its image
            });
        }
        return all;
    }

    void expect_all_is_well(const std::set<std::string>& lost = {}) {
        resize(1);
        fleet_.expect_jobs_done(lost);
        resize(0);
        EXPECT_TRUE(fleet_.wait_settled(0));
        EXPECT_TRUE(fleet_.wait_no_containers());
    }

    const unsigned seed_;
    std::mt19937 random_;
    ContainerFleet fleet_;
    int size_ = 0;
};

INSTANTIATE_TEST_SUITE_P(
    Real,
    ContainersKilled,
    testing::Values(Kind::docker, Kind::podman),
    [](const auto& kind) { return kind.param == Kind::docker ? "docker" : "podman"; }
);

TEST_P(ContainersKilled, ComfydAtEveryStep) {
    const unsigned kills = number_from("COMFYD_KILLS", static_cast<unsigned>(moments().size()));
    for (unsigned i = 0; i < kills && !HasFatalFailure(); ++i) {
        const Moment moment = moments()[i % moments().size()];
        SCOPED_TRACE("kill " + std::to_string(i + 1) + ", " + moment.state);
        fleet_.submit(20 + below(200));
        (this->*moment.kill)();
        come_back();
    }
    expect_all_is_well();
    fleet_.expect_others_untouched();
}

class DockerdKilled : public ContainersKilled {};
INSTANTIATE_TEST_SUITE_P(Real, DockerdKilled, testing::Values(Kind::docker), [](const auto&) {
    return "docker";
});

// Its containers cannot be reached without it, and the next one ends them: what runs there, or
// begins before they are ended, begins anew elsewhere.
TEST_P(DockerdKilled, WhileMachinesServeAndWhileTheyCome) {
    std::set<std::string> lost;
    std::set<std::string> safe;  // that ended before
    const auto crash = [&] {
        safe = fleet_.begun();
        for (const std::string& one : fleet_.running()) {
            safe.erase(one);
        }
        fleet_.engine().crash();
        fleet_.submit(50);
    };
    const auto note_lost = [&] {
        for (const std::string& one : fleet_.begun()) {
            if (!safe.contains(one)) {
                lost.insert(one);
            }
        }
    };
    resize(2);
    ASSERT_TRUE(fleet_.wait_settled(2));
    keep_busy();
    crash();
    fleet_.wait_jobs_done();
    note_lost();
    ASSERT_TRUE(fleet_.wait_settled(2)) << fleet_.cli({"fleet"}) << fleet_.comfyd().log();
    resize(3);
    ASSERT_TRUE(fleet_.wait_state("creating"));
    std::this_thread::sleep_for(std::chrono::milliseconds(below(300)));
    crash();
    ASSERT_TRUE(fleet_.wait_settled(3)) << fleet_.cli({"fleet"}) << fleet_.comfyd().log();
    fleet_.wait_jobs_done();
    note_lost();
    expect_all_is_well(lost);
    fleet_.expect_others_untouched(true);
}

}  // namespace
}  // namespace comfyd::support
