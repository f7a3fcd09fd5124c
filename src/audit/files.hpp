// The files of one audit log: "audit-00000001.jsonl" and so on in a folder that one process writes.
// They are appended to, a full one is followed by the next, and the oldest goes where there are too
// many. One thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "audit/line.hpp"
#include "base/error.hpp"

namespace comfyd::audit {

struct FileLimits {
    std::uint64_t bytes_max = 64ULL << 20;  // of one; a batch of lines may go beyond
    std::size_t files_max = 16;
};

// Those in a folder, the oldest first.
std::vector<std::filesystem::path> files_in(const std::filesystem::path& folder);

class Files {
public:
    // Code::conflict: another process writes there. Code::storage_unavailable.
    static Result<std::unique_ptr<Files>> open(std::filesystem::path folder, FileLimits limits);
    ~Files();
    Files(const Files&) = delete;
    Files& operator=(const Files&) = delete;

    // How the log was found: where its chain goes on, and what is to be told of it.
    struct Found {
        Link link{};
        std::uint64_t torn_bytes = 0;  // of a last line that was never written whole; they are gone
        std::string damaged{};  // the file whose last line cannot be read: a new chain begins
    };
    const Found& found() const { return found_; }

    // Whole lines. After a failure nothing of them is there.
    Result<> append(std::string_view lines);
    // They are on the disk.
    Result<> sync();

private:
    Files(std::filesystem::path folder, FileLimits limits, int lock)
        : folder_(std::move(folder)), limits_(limits), lock_(lock) {}
    Result<> look();
    Result<> open_file(std::uint64_t number);
    Result<> begin_next();
    Result<> cut_torn_line();

    const std::filesystem::path folder_;
    const FileLimits limits_;
    const int lock_;
    Found found_;
    std::uint64_t number_ = 0;
    int file_ = -1;
    std::uint64_t size_ = 0;
};

}  // namespace comfyd::audit
