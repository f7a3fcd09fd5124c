#include "ledger/sqlite/database.hpp"

#include <sqlite3.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/assert.hpp"
#include "ledger/sqlite/gathered_log.hpp"

namespace comfyd::ledger::sqlite {
namespace {

constexpr char kBegin[] = "BEGIN IMMEDIATE";
constexpr char kBeginRead[] = "BEGIN";
constexpr char kCommit[] = "COMMIT";
constexpr char kRollback[] = "ROLLBACK";

bool is_no_space(int system_error) {
    return system_error == ENOSPC || system_error == EDQUOT || system_error == EFBIG;
}

struct Explanation {
    Code code;
    std::string_view advice;
};

Explanation explain(int result_code, int system_error) {
    const int kind = result_code & 0xFF;
    const bool by_the_system = kind == SQLITE_IOERR || kind == SQLITE_CANTOPEN;
    if (kind == SQLITE_FULL || (by_the_system && is_no_space(system_error))) {
        return {Code::storage_full, "free disk space; nothing was written"};
    }
    switch (kind) {
        case SQLITE_IOERR:
            return {Code::storage_unavailable, "check the disk and the system log"};
        case SQLITE_CONSTRAINT:
            return {Code::conflict, "an entry with this id exists already"};
        case SQLITE_READONLY:
        case SQLITE_PERM:
        case SQLITE_AUTH:
            return {
                Code::storage_unavailable, "make the file and its folder writable for this user"
            };
        case SQLITE_CANTOPEN:
            return {
                Code::storage_unavailable,
                "check that the folder exists and that this user may write to it"
            };
        case SQLITE_BUSY:
        case SQLITE_LOCKED:
            return {Code::storage_unavailable, "end the other program that holds the database"};
        case SQLITE_CORRUPT:
        case SQLITE_NOTADB:
            return {Code::storage_unavailable, "the file is damaged: restore it from a backup"};
        default:
            return {Code::storage_unavailable, "try again; if it stays, restart comfyd"};
    }
}

}  // namespace

Database::Database(sqlite3* handle, std::filesystem::path path)
    : handle_(handle), path_(std::move(path)) {}

Database::~Database() {
    for (const auto& [sql, statement] : statements_) {
        sqlite3_finalize(statement);
    }
    sqlite3_close_v2(handle_);
}

Result<std::unique_ptr<Database>> Database::open(
    const std::filesystem::path& path, Mode mode, Millis busy_timeout
) {
    const int access = mode == Mode::read_write ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY;
    const int flags =
        access | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_EXRESCODE;
    sqlite3* handle = nullptr;
    const int opened = sqlite3_open_v2(path.c_str(), &handle, flags, gathered_log());
    if (handle == nullptr) {
        return fail(Code::storage_unavailable, "no memory to open the database " + path.string());
    }
    std::unique_ptr<Database> db(new Database(handle, path));
    if (opened != SQLITE_OK) {
        return fail(db->error(opened, "open"));
    }
    sqlite3_busy_timeout(handle, static_cast<int>(busy_timeout.count()));
    return db;
}

Error Database::error(int result_code, std::string_view doing) const {
    const auto [code, advice] = explain(result_code, sqlite3_system_errno(handle_));
    // Also what only reads may have to write: SQLite keeps an index of its log in a file.
    std::string message =
        code == Code::storage_full ? "the disk is full, cannot write to" : "cannot ";
    message.append(code == Code::storage_full ? "" : doing);
    message.append(" the database ").append(path_.string());
    message.append(": ").append(sqlite3_errmsg(handle_)).append("; ").append(advice);
    return Error(code, std::move(message), {{"sqlite_code", result_code}});
}

bool Database::in_transaction() const {
    return sqlite3_get_autocommit(handle_) == 0;
}

Result<> Database::execute(const std::string& script) {
    const int done = sqlite3_exec(handle_, script.c_str(), nullptr, nullptr, nullptr);
    if (done != SQLITE_OK) {
        return fail(error(done, "prepare"));
    }
    return {};
}

Result<std::int64_t> Database::integer(const char* sql) {
    Query query(*this, sql);
    const auto row = query.bind().next();
    if (!row) {
        return fail(row.error());
    }
    return *row ? query.integer(0) : 0;
}

Result<sqlite3_stmt*> Database::prepare(const char* sql) {
    const auto known = statements_.find(sql);
    if (known != statements_.end()) {
        return known->second;
    }
    sqlite3_stmt* statement = nullptr;
    const int prepared =
        sqlite3_prepare_v3(handle_, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
    if (prepared != SQLITE_OK) {
        return fail(error(prepared, "use"));
    }
    statements_.emplace(sql, statement);
    return statement;
}

Query::Query(Database& db, const char* sql) : db_(db) {
    auto statement = db.prepare(sql);
    if (statement) {
        statement_ = *statement;
    } else {
        failure_ = std::move(statement.error());
    }
}

Query::~Query() {
    sqlite3_reset(statement_);
}

Result<bool> Query::next() {
    if (failure_) {
        return fail(*failure_);
    }
    const int stepped = sqlite3_step(statement_);
    if (stepped == SQLITE_ROW) {
        return true;
    }
    if (stepped == SQLITE_DONE) {
        return false;
    }
    const bool is_read = sqlite3_stmt_readonly(statement_) != 0;
    return fail(db_.error(stepped, is_read ? "read" : "write to"));
}

Result<> Query::run() {
    while (true) {
        const auto row = next();
        if (!row) {
            return fail(row.error());
        }
        if (!*row) {
            return {};
        }
    }
}

bool Query::is_null(int column) const {
    return sqlite3_column_type(statement_, column) == SQLITE_NULL;
}

std::int64_t Query::integer(int column) const {
    return sqlite3_column_int64(statement_, column);
}

std::string_view Query::text(int column) const {
    const auto* data = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
    if (data == nullptr) {
        return {};
    }
    return {data, static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
}

Uuid Query::uuid(int column) const {
    Uuid id;
    const std::string_view stored = bytes(column);
    if (stored.size() == id.bytes.size()) {
        std::memcpy(id.bytes.data(), stored.data(), stored.size());
    }
    return id;
}

std::string_view Query::bytes(int column) const {
    const auto* data = static_cast<const char*>(sqlite3_column_blob(statement_, column));
    if (data == nullptr) {
        return {};
    }
    return {data, static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
}

void Query::bind_null(int index) {
    if (statement_ != nullptr) {
        sqlite3_bind_null(statement_, index);
    }
}

void Query::bind_integer(int index, std::int64_t value) {
    if (statement_ != nullptr) {
        sqlite3_bind_int64(statement_, index, value);
    }
}

void Query::bind_text(int index, std::string_view value, Of whom) {
    if (statement_ != nullptr) {
        const char* data = value.data() == nullptr ? "" : value.data();
        sqlite3_bind_text64(
            statement_,
            index,
            data,
            value.size(),
            whom == Of::caller ? SQLITE_STATIC : SQLITE_TRANSIENT,
            SQLITE_UTF8
        );
    }
}

void Query::bind_bytes(int index, std::string_view value, Of whom) {
    if (statement_ != nullptr) {
        // A pointer also for none: a null pointer would bind NULL.
        sqlite3_bind_blob(
            statement_,
            index,
            value.empty() ? "" : value.data(),
            static_cast<int>(value.size()),
            whom == Of::caller ? SQLITE_STATIC : SQLITE_TRANSIENT
        );
    }
}

void Query::check_bound(int count) const {
    COMFYD_ASSERT(statement_ == nullptr || sqlite3_bind_parameter_count(statement_) == count);
}

Result<std::unique_ptr<Transaction>> Transaction::begin(Database& db) {
    auto begun = Query(db, kBegin).run();
    if (!begun) {
        return fail(std::move(begun.error()));
    }
    return std::unique_ptr<Transaction>(new Transaction(db));
}

Transaction::~Transaction() {
    // SQLite itself has rolled back after some failures, and a second attempt would be an error.
    if (db_.in_transaction()) {
        (void)Query(db_, kRollback).run();
    }
}

Result<> Transaction::commit() {
    return Query(db_, kCommit).run();
}

Snapshot::Snapshot(Database& db) : db_(db) {
    (void)Query(db_, kBeginRead).run();
}
Snapshot::~Snapshot() {
    (void)Query(db_, kCommit).run();
}

}  // namespace comfyd::ledger::sqlite
