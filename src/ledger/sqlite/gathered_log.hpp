// SQLite's log, written in one call for each commit, or for each 128 KB of it.
//
// SQLite writes every page of a commit in two calls, its head and then the page: 28 of them for one
// job alone, which took 75 µs longer than one call with the same bytes. Behind this layer pages
// that follow each other are gathered until something needs them in the file: a sync (which ends
// each commit, before any reader is told of it), a read, a question of the length.
//
// It needs `synchronous = FULL`, SQLite's default: with less a commit ends without a sync.
//
// A write that fails is therefore told to SQLite by the sync of the same commit, which then is
// rolled back like after any write that failed.
#pragma once

namespace comfyd::ledger::sqlite {

// The name of the layer for sqlite3_open_v2(). It lies over the default one of the moment.
const char* gathered_log();

}  // namespace comfyd::ledger::sqlite
