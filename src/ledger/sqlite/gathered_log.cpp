#include "ledger/sqlite/gathered_log.hpp"

#include <sqlite3.h>

#include <memory>
#include <new>
#include <string>
#include <utility>

namespace comfyd::ledger::sqlite {
namespace {

constexpr std::size_t kGatheredBytesMax = 0x1FFFF;  // SQLite's own functions write no more at once

// SQLite gives room for it with the file below behind it, and knows it by its first member.
struct Log {
    sqlite3_file base{};
    std::string gathered{};
    sqlite3_int64 begins_at = 0;

    sqlite3_file* below() { return reinterpret_cast<sqlite3_file*>(this + 1); }
    int write_out() {
        if (gathered.empty()) {
            return SQLITE_OK;
        }
        const int written = below()->pMethods->xWrite(
            below(), gathered.data(), static_cast<int>(gathered.size()), begins_at
        );
        gathered.clear();  // also after a failure: SQLite writes all of the commit again
        return written;
    }
};

Log& log_of(sqlite3_file* file) {
    return *reinterpret_cast<Log*>(file);
}

// What asks the file below needs it as SQLite believes it to be.
template <auto method, class... Arguments>
int after_writing(sqlite3_file* file, Arguments... arguments) {
    Log& log = log_of(file);
    const int written = log.write_out();
    return written == SQLITE_OK ? (log.below()->pMethods->*method)(log.below(), arguments...)
                                : written;
}

template <auto method, class... Arguments>
int at_once(sqlite3_file* file, Arguments... arguments) {
    Log& log = log_of(file);
    return (log.below()->pMethods->*method)(log.below(), arguments...);
}

int gather(sqlite3_file* file, const void* data, int count, sqlite3_int64 offset) {
    Log& log = log_of(file);
    const auto bytes = static_cast<std::size_t>(count);
    const bool follows =
        offset == log.begins_at + static_cast<sqlite3_int64>(log.gathered.size()) &&
        log.gathered.size() + bytes <= kGatheredBytesMax;
    if (!follows) {
        if (const int written = log.write_out(); written != SQLITE_OK) {
            return written;
        }
        log.begins_at = offset;
    }
    log.gathered.append(static_cast<const char*>(data), bytes);
    return SQLITE_OK;
}

int close_log(sqlite3_file* file) {
    Log& log = log_of(file);
    const int written = log.write_out();
    const int closed = log.below()->pMethods->xClose(log.below());
    std::destroy_at(&log);
    return written == SQLITE_OK ? closed : written;
}

using Methods = sqlite3_io_methods;

// Of version 1: what belongs to databases alone, memory that is shared and mapped, is not there.
Methods methods() {
    Methods methods{};
    methods.iVersion = 1;
    methods.xClose = close_log;
    methods.xRead = after_writing<&Methods::xRead, void*, int, sqlite3_int64>;
    methods.xWrite = gather;
    methods.xTruncate = after_writing<&Methods::xTruncate, sqlite3_int64>;
    methods.xSync = after_writing<&Methods::xSync, int>;
    methods.xFileSize = after_writing<&Methods::xFileSize, sqlite3_int64*>;
    methods.xLock = at_once<&Methods::xLock, int>;
    methods.xUnlock = at_once<&Methods::xUnlock, int>;
    methods.xCheckReservedLock = at_once<&Methods::xCheckReservedLock, int*>;
    methods.xFileControl = after_writing<&Methods::xFileControl, int, void*>;
    methods.xSectorSize = at_once<&Methods::xSectorSize>;
    methods.xDeviceCharacteristics = at_once<&Methods::xDeviceCharacteristics>;
    return methods;
}

int open_file(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* out_flags) {
    sqlite3_vfs* below = sqlite3_vfs_find(nullptr);
    if ((flags & SQLITE_OPEN_WAL) == 0) {
        return below->xOpen(below, name, file, flags, out_flags);
    }
    Log* log = new (file) Log;
    const int opened = below->xOpen(below, name, log->below(), flags, out_flags);
    if (opened != SQLITE_OK) {
        std::destroy_at(log);
        file->pMethods = nullptr;
        return opened;
    }
    static const Methods of_log = methods();
    log->base.pMethods = &of_log;
    return opened;
}

sqlite3_vfs layer() {
    sqlite3_vfs vfs = *sqlite3_vfs_find(nullptr);
    vfs.zName = "gathered-log";
    vfs.szOsFile += static_cast<int>(sizeof(Log));
    vfs.xOpen = open_file;
    return vfs;
}

}  // namespace

const char* gathered_log() {
    static sqlite3_vfs vfs = layer();
    static const int registered = sqlite3_vfs_register(&vfs, 0);
    return registered == SQLITE_OK ? vfs.zName : nullptr;
}

}  // namespace comfyd::ledger::sqlite
