#include "base/shared_lines.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>
#include <thread>
#include <vector>

#include "base/disk.hpp"

namespace comfyd {
namespace {

class SharedLinesTest : public testing::Test {
protected:
    SharedLinesTest() {
        auto pattern = (std::filesystem::temp_directory_path() / "lines-XXXXXX").string();
        folder_ = ::mkdtemp(pattern.data());
        file_ = folder_ / "lines";
    }
    ~SharedLinesTest() override { std::filesystem::remove_all(folder_); }

    struct Reader {
        explicit Reader(const std::filesystem::path& file) : lines(file) {}
        std::vector<std::string> read() {
            EXPECT_TRUE(lines.read(
                [this] { known.clear(); },
                [this](std::string_view line) { known.emplace_back(line); }
            ));
            return known;
        }
        SharedLines lines;
        std::vector<std::string> known;
    };
    using Lines = std::vector<std::string>;

    std::filesystem::path folder_;
    std::filesystem::path file_;
};

TEST_F(SharedLinesTest, EachReadsOnWhereItStopped) {
    Reader one(file_);
    Reader other(file_);
    EXPECT_EQ(one.read(), Lines());
    ASSERT_TRUE(append_file(file_, "a\n"));
    EXPECT_EQ(one.read(), Lines({"a"}));
    ASSERT_TRUE(append_file(file_, "b\nc\n"));
    EXPECT_EQ(one.read(), Lines({"a", "b", "c"}));
    EXPECT_EQ(other.read(), Lines({"a", "b", "c"}));
}

TEST_F(SharedLinesTest, AnUnfinishedLineWaitsForItsEnd) {
    Reader reader(file_);
    ASSERT_TRUE(append_file(file_, "whole\nha"));
    EXPECT_EQ(reader.read(), Lines({"whole"}));
    ASSERT_TRUE(append_file(file_, "lf\n"));
    EXPECT_EQ(reader.read(), Lines({"whole", "half"}));
}

TEST_F(SharedLinesTest, WhatACrashCutOffDoesNotSwallowTheNextLine) {
    Reader reader(file_);
    ASSERT_TRUE(append_file(file_, "whole\nha"));
    ASSERT_TRUE(reader.lines.append("next\n"));
    EXPECT_EQ(reader.read(), Lines({"whole", "ha", "next"}));
}

TEST_F(SharedLinesTest, AFileThatWasWrittenAnewIsReadAnew) {
    Reader reader(file_);
    ASSERT_TRUE(append_file(file_, "a\nb\nc\n"));
    EXPECT_EQ(reader.read().size(), 3U);
    ASSERT_TRUE(write_file(file_, "c\n"));
    EXPECT_EQ(reader.read(), Lines({"c"}));
}

TEST_F(SharedLinesTest, LongFilesAreReadWhole) {
    Reader reader(file_);
    std::string text;
    for (int i = 0; i < 50'000; ++i) {
        text += std::to_string(i) + "\n";
    }
    ASSERT_TRUE(append_file(file_, text));
    EXPECT_EQ(reader.read().size(), 50'000U);
    EXPECT_EQ(reader.known.back(), "49999");
}

TEST_F(SharedLinesTest, OneAfterTheOtherHasTheTurn) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([this] {
            for (int round = 0; round < 25; ++round) {
                Reader reader(file_);
                const auto turn = reader.lines.take_turn();
                ASSERT_TRUE(turn);
                ASSERT_TRUE(append_file(file_, std::to_string(reader.read().size()) + "\n"));
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    Reader reader(file_);
    const auto lines = reader.read();
    ASSERT_EQ(lines.size(), 100U);
    for (std::size_t i = 0; i < lines.size(); ++i) {
        EXPECT_EQ(lines[i], std::to_string(i));
    }
}

}  // namespace
}  // namespace comfyd
