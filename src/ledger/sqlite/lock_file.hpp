// Makes this process the only one that uses a data folder. The lock ends with the process, however
// it ends.
#pragma once

#include <filesystem>
#include <memory>

#include "base/error.hpp"

namespace comfyd::ledger::sqlite {

class LockFile {
public:
    // Code::storage_unavailable naming the process that holds it.
    static Result<std::unique_ptr<LockFile>> acquire(const std::filesystem::path& path);
    ~LockFile();
    LockFile(const LockFile&) = delete;
    LockFile& operator=(const LockFile&) = delete;

private:
    explicit LockFile(int descriptor) : descriptor_(descriptor) {}
    int descriptor_;
};

}  // namespace comfyd::ledger::sqlite
