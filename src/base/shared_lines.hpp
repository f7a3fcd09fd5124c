// A file of lines that this process and others which share its folder append to, or now and then
// write anew in one piece. Each reads on where it stopped. Blocks on the disk; one thread at a
// time.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.hpp"

namespace comfyd {

class SharedLines {
public:
    explicit SharedLines(std::filesystem::path file) : file_(std::move(file)) {}

    // Takes each whole line that came since the last time; `forget` before that when the file is
    // not the one that was read then. Code::storage_*.
    Result<> read(
        const std::function<void()>& forget, const std::function<void(std::string_view)>& take
    );

    // Keeps other processes from a change of the file, for as long as it lives.
    class Turn {
    public:
        Turn(Turn&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
        Turn& operator=(Turn&&) = delete;
        ~Turn();

    private:
        friend class SharedLines;
        explicit Turn(int descriptor) : descriptor_(descriptor) {}
        int descriptor_;
    };
    Result<Turn> take_turn() const;

    // Each with its end. Durable when it returns. REQUIRES: it has the turn.
    Result<> append(std::string_view lines) const;

private:
    bool ends_within_a_line() const;

    std::filesystem::path file_;
    ino_t inode_ = 0;
    std::uint64_t offset_ = 0;  // of the first line that was not read
};

}  // namespace comfyd
