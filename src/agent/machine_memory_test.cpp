#include "agent/machine_memory.hpp"

#include <gtest/gtest.h>

#include "support/temp_dir.hpp"

namespace comfyd::agent {
namespace {

TEST(MachineMemory, IsThatOfTheControlGroupWhereThatIsLess) {
    const support::TempDir none;
    const std::uint64_t whole = memory_total(none.path());
    EXPECT_GT(whole, 64U << 20);
    const support::TempDir second;
    second.write("memory.max", "67108864\n");
    EXPECT_EQ(memory_total(second.path()), 64U << 20);
    second.write("memory.max", "max\n");
    EXPECT_EQ(memory_total(second.path()), whole);
    const support::TempDir first;
    first.write("memory/memory.limit_in_bytes", "33554432\n");
    EXPECT_EQ(memory_total(first.path()), 32U << 20);
    first.write("memory/memory.limit_in_bytes", "9223372036854771712\n");
    EXPECT_EQ(memory_total(first.path()), whole);
}

}  // namespace
}  // namespace comfyd::agent
