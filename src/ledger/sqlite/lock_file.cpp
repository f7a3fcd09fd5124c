#include "ledger/sqlite/lock_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace comfyd::ledger::sqlite {
namespace {

std::string holder(int descriptor) {
    char text[32] = {};
    const ssize_t count = ::pread(descriptor, text, sizeof text - 1, 0);
    return count > 0 ? "process " + std::string(text, static_cast<std::size_t>(count))
                     : "a process";
}

}  // namespace

Result<std::unique_ptr<LockFile>> LockFile::acquire(const std::filesystem::path& path) {
    const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (descriptor < 0) {
        return fail(
            Code::storage_unavailable,
            "cannot open the lock file " + path.string() + ": " + std::strerror(errno) +
                "; check that the folder exists and that this user may write to it"
        );
    }
    std::unique_ptr<LockFile> lock(new LockFile(descriptor));
    if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
        return fail(
            Code::storage_unavailable,
            "the data folder " + path.parent_path().string() + " is in use by " +
                holder(descriptor) + "; stop that comfyd, or give this one a folder of its own"
        );
    }
    // The number is only for the sentence above: without it the lock holds all the same.
    const std::string process = std::to_string(::getpid());
    if (::ftruncate(descriptor, 0) == 0) {
        [[maybe_unused]] const ssize_t written =
            ::pwrite(descriptor, process.data(), process.size(), 0);
    }
    return lock;
}

LockFile::~LockFile() {
    ::close(descriptor_);
}

}  // namespace comfyd::ledger::sqlite
