// Model files that operators have uploaded, by their SHA-256. A file comes in parts, of any size,
// one after the other, and goes on where it was after a cut line or a restart; nothing has a
// content's name before all of it is there, is right and is on disk.
//
//   FOLDER/<sha256>       a content, read only
//   FOLDER/<sha256>.part  one that comes (models/part_file.hpp)
//
// Any thread; the disk is the pool's.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/error.hpp"
#include "base/mutex.hpp"
#include "base/pool.hpp"
#include "base/task.hpp"
#include "models/file_facts.hpp"
#include "models/part_file.hpp"

namespace comfyd::models {

class Uploads {
public:
    // `pool` outlives it.
    Uploads(Pool& pool, std::filesystem::path folder) : pool_(pool), folder_(std::move(folder)) {}

    struct State {
        bool is_whole = false;
        std::uint64_t bytes = 0;  // that are there
    };
    // nullopt: nothing of it is there.
    Task<Result<std::optional<State>>> find(std::string sha256);
    std::filesystem::path path_of(const std::string& sha256) const { return folder_ / sha256; }

    // The bytes from `first` on of a file of `total`, as they come.
    struct Part {
        std::string sha256;
        std::uint64_t first = 0;
        std::uint64_t total = 0;
        bool is_safetensors = true;  // must be a whole one
    };
    class Writer;
    // Code::conflict: somebody else brings it now, or it is there up to elsewhere, with that place
    // in the details as "bytes". Code::storage_full.
    Task<Result<std::shared_ptr<Writer>>> begin(Part part);
    // Code::payload_too_large: more than the file was to have. Code::hash_mismatch: its head is not
    // that of such a file, and nothing of it stays. Those of the disk.
    Task<Result<>> append(std::shared_ptr<Writer> writer, std::string bytes);
    // What is known of it, when all has come; nullopt: more is to come. Code::hash_mismatch: it is
    // not what it was to be, and nothing of it stays.
    Task<Result<std::optional<FileFacts>>> end(std::shared_ptr<Writer> writer);

    // False: there was none.
    Task<Result<bool>> remove(std::string sha256);

private:
    struct Open;

    Result<std::shared_ptr<Open>> take(const Part& part);
    Result<> prepare(Open& open, const Part& part);
    std::optional<State> look(const std::string& sha256) const;

    Pool& pool_;
    const std::filesystem::path folder_;
    Mutex mutex_;
    // Kept for a while between two parts, so that what has come is not read again.
    std::map<std::string, std::shared_ptr<Open>> open_ COMFYD_GUARDED_BY(mutex_);
};

}  // namespace comfyd::models
