// For tests: a disk under SQLite whose writes and syncs fail on demand and are counted. In place
// while the object lives; databases are opened after it is made and closed before it goes.
#pragma once

#include <sqlite3.h>

#include <atomic>

namespace comfyd::ledger::sqlite {

class FaultVfs {
public:
    FaultVfs() {
        real_ = sqlite3_vfs_find(nullptr);
        vfs_ = *real_;
        vfs_.zName = "faulty";
        vfs_.xOpen = open;
        sqlite3_vfs_register(&vfs_, 1);
    }
    ~FaultVfs() {
        sqlite3_vfs_register(real_, 1);
        sqlite3_vfs_unregister(&vfs_);
        write_result = SQLITE_OK;
        sync_result = SQLITE_OK;
    }
    FaultVfs(const FaultVfs&) = delete;
    FaultVfs& operator=(const FaultVfs&) = delete;

    // What the next writes and syncs answer; SQLITE_OK: they are done.
    static inline std::atomic<int> write_result = SQLITE_OK;
    static inline std::atomic<int> sync_result = SQLITE_OK;
    static inline std::atomic<int> log_writes = 0;

private:
    static int open(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* out_flags) {
        const int opened = real_->xOpen(real_, name, file, flags, out_flags);
        // The real VFS has one table for databases, which are locked, and one for logs, which are
        // not; their functions for writing and syncing are the same.
        if (opened == SQLITE_OK && (flags & SQLITE_OPEN_MAIN_DB) != 0) {
            static const sqlite3_io_methods changed = with_faults(file->pMethods);
            file->pMethods = &changed;
        } else if (opened == SQLITE_OK && (flags & SQLITE_OPEN_WAL) != 0) {
            static const sqlite3_io_methods changed = counted(with_faults(file->pMethods));
            file->pMethods = &changed;
        }
        return opened;
    }
    static sqlite3_io_methods with_faults(const sqlite3_io_methods* real) {
        methods_ = real;
        sqlite3_io_methods changed = *real;
        changed.xWrite = write;
        changed.xSync = sync;
        return changed;
    }
    static sqlite3_io_methods counted(sqlite3_io_methods methods) {
        methods.xWrite = write_log;
        return methods;
    }
    static int write_log(sqlite3_file* file, const void* data, int count, sqlite3_int64 offset) {
        ++log_writes;
        return write(file, data, count, offset);
    }
    static int write(sqlite3_file* file, const void* data, int count, sqlite3_int64 offset) {
        const int fault = write_result;
        return fault == SQLITE_OK ? methods_->xWrite(file, data, count, offset) : fault;
    }
    static int sync(sqlite3_file* file, int flags) {
        const int fault = sync_result;
        return fault == SQLITE_OK ? methods_->xSync(file, flags) : fault;
    }

    static inline sqlite3_vfs* real_ = nullptr;
    static inline const sqlite3_io_methods* methods_ = nullptr;
    sqlite3_vfs vfs_{};
};

}  // namespace comfyd::ledger::sqlite
