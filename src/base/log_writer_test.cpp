#include "base/log_writer.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <vector>

namespace comfyd::log {
namespace {

std::string tell(std::uint64_t count) {
    return std::to_string(count) + " dropped";
}

class Pipe {
public:
    Pipe() { EXPECT_EQ(::pipe2(ends_, O_CLOEXEC), 0); }
    ~Pipe() {
        ::close(ends_[1]);
        ::close(ends_[0]);
    }
    int writer() const { return ends_[1]; }
    // Until nobody can write any more; the number of bytes.
    std::size_t fill() {
        ::fcntl(ends_[1], F_SETFL, O_NONBLOCK);
        std::size_t bytes = 0;
        while (::write(ends_[1], "f", 1) == 1) {
            ++bytes;
        }
        ::fcntl(ends_[1], F_SETFL, 0);
        return bytes;
    }
    void skip(std::size_t bytes) {
        for (char byte = 0; bytes > 0 && ::read(ends_[0], &byte, 1) == 1; --bytes) {
        }
    }
    std::string read_line() {
        std::string line;
        char byte = 0;
        while (::read(ends_[0], &byte, 1) == 1 && byte != '\n') {
            line += byte;
        }
        return line;
    }

private:
    int ends_[2] = {-1, -1};
};

TEST(LogWriter, WritesLinesInTheirOrder) {
    Pipe pipe;
    LogWriter writer(pipe.writer(), 1 << 20, tell);
    for (const std::size_t size : {0U, 1U, 100U, 4096U, 10'000U}) {
        writer.write(std::string(size, 'x'));
        EXPECT_EQ(pipe.read_line().size(), size);
    }
    EXPECT_TRUE(writer.flush(Millis(10'000)));
    EXPECT_EQ(writer.dropped(), 0U);
}

TEST(LogWriter, NobodyWaitsForAReaderAndWhatIsDroppedIsTold) {
    Pipe pipe;
    const std::size_t before = pipe.fill();
    LogWriter writer(pipe.writer(), 10'000, tell);
    const std::string line(99, 'x');
    constexpr std::uint64_t kLines = 5'000;
    constexpr std::uint64_t kKept = 100;
    for (std::uint64_t i = 0; i < kLines; ++i) {
        writer.write(line);
    }
    const std::uint64_t dropped = writer.dropped();
    EXPECT_EQ(dropped, kLines - kKept);
    pipe.skip(before);
    for (std::uint64_t i = 0; i < kKept; ++i) {
        ASSERT_EQ(pipe.read_line(), line);
    }
    ASSERT_TRUE(writer.flush(Millis(10'000)));
    writer.write("after");
    EXPECT_EQ(pipe.read_line(), tell(dropped));
    EXPECT_EQ(pipe.read_line(), "after");
}

TEST(LogWriter, EndsAlsoWhenNobodyReads) {
    Pipe pipe;
    LogWriter writer(pipe.writer(), 1 << 20, tell);
    for (int i = 0; i < 1'000; ++i) {
        writer.write(std::string(1'000, 'x'));
    }
    EXPECT_FALSE(writer.flush(Millis(0)));
}

TEST(LogWriter, WhatWaitsAtTheEndIsWritten) {
    Pipe pipe;
    {
        LogWriter writer(pipe.writer(), 1 << 20, tell);
        for (int i = 0; i < 100; ++i) {
            writer.write(std::to_string(i));
        }
    }
    for (int i = 0; i < 100; ++i) {
        EXPECT_EQ(pipe.read_line(), std::to_string(i));
    }
}

}  // namespace
}  // namespace comfyd::log
