// For tests that call nodes outside of a run.
#pragma once

#include <gtest/gtest.h>

#include "engine/nodes/call.hpp"
#include "engine/test_support.hpp"

namespace comfyd::engine::testing {

// What a call finds around it.
class NodeTest : public ::testing::Test {
protected:
    explicit NodeTest(std::uint64_t memory) : memory_(std::make_shared<Memory>(memory)) {}

    TestFolders files_;
    Folders folders_ = files_.folders();
    Pool pool_{2};
    std::shared_ptr<Memory> memory_;
    Recorder recorder_;
    json::object prompt_;
    json::object extra_;
    Surroundings surroundings_{
        folders_,
        pool_,
        memory_,
        [](std::uint64_t) {},
        [] { return false; },
        recorder_,
        prompt_,
        extra_
    };
    std::string node_id_ = "1";
};

}  // namespace comfyd::engine::testing
