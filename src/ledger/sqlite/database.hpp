// Thin owners over SQLite: a connection with its cached statements, one use of a statement, a
// transaction.
//
// A Database is used by one thread at a time; who that is, its owner decides (Writer, Readers).
// Every failure becomes an Error here, in one place: Code::storage_full, Code::storage_unavailable,
// or Code::conflict for a broken uniqueness rule. No other code of SQLite leaves this folder.
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/id.hpp"
#include "base/time.hpp"

struct sqlite3;
struct sqlite3_stmt;

namespace comfyd::ledger::sqlite {

enum class Mode { read_write, read_only };

class Database {
public:
    static Result<std::unique_ptr<Database>> open(
        const std::filesystem::path& path, Mode mode, Millis busy_timeout
    );
    ~Database();
    Database(const Database&) = delete;
    Database& operator=(const Database&) = delete;

    // Runs a script of statements without results.
    Result<> execute(const std::string& script);
    // The first column of the first row; 0 when there is none.
    Result<std::int64_t> integer(const char* sql);
    // Prepared once per connection. `sql` must be a constant: its address is the key.
    Result<sqlite3_stmt*> prepare(const char* sql);

    Error error(int result_code, std::string_view doing) const;
    bool in_transaction() const;
    sqlite3* handle() const { return handle_; }

private:
    Database(sqlite3* handle, std::filesystem::path path);

    sqlite3* handle_;
    std::filesystem::path path_;
    std::unordered_map<const char*, sqlite3_stmt*> statements_;
};

// To be bound as a blob.
struct Bytes {
    std::string_view value;
};

// One use of a cached statement; it is reset at the end of the scope, so that no read transaction
// stays open. Texts and blobs that are bound must outlive the Query, but for temporaries, which are
// copied; those read from a row live until the next next().
class Query {
public:
    Query(Database& db, const char* sql);
    ~Query();
    Query(const Query&) = delete;
    Query& operator=(const Query&) = delete;

    // All parameters at once, in order.
    template <class... Values>
    Query& bind(Values&&... values) {
        int index = 0;
        (bind_one(++index, values, std::is_lvalue_reference_v<Values> ? Of::caller : Of::nobody),
         ...);
        check_bound(index);
        return *this;
    }

    Result<bool> next();  // true: there is a row
    Result<> run();       // to the end, rows ignored

    bool is_null(int column) const;
    std::int64_t integer(int column) const;
    std::string_view text(int column) const;  // empty for NULL
    std::string string(int column) const { return std::string(text(column)); }
    std::string_view bytes(int column) const;
    Uuid uuid(int column) const;
    Time time(int column) const { return from_unix_ms(integer(column)); }
    std::optional<Time> optional_time(int column) const {
        return is_null(column) ? std::nullopt : std::optional(time(column));
    }

private:
    enum class Of { caller, nobody };  // who keeps the bytes: nobody those of a temporary

    void bind_null(int index);
    void bind_integer(int index, std::int64_t value);
    void bind_text(int index, std::string_view value, Of whom);
    void bind_bytes(int index, std::string_view value, Of whom);
    void check_bound(int count) const;

    template <std::integral T>
    void bind_one(int index, T value, Of) {
        bind_integer(index, static_cast<std::int64_t>(value));
    }
    void bind_one(int index, std::string_view value, Of) { bind_text(index, value, Of::caller); }
    void bind_one(int index, const std::string& value, Of whom) { bind_text(index, value, whom); }
    void bind_one(int index, Bytes value, Of) { bind_bytes(index, value.value, Of::caller); }
    void bind_one(int index, Time value, Of) { bind_integer(index, to_unix_ms(value)); }
    void bind_one(int index, Millis value, Of) { bind_integer(index, value.count()); }
    template <class Tag>
    void bind_one(int index, const Id<Tag>& value, Of whom) {
        const auto& bytes = value.uuid.bytes;
        bind_bytes(index, {reinterpret_cast<const char*>(bytes.data()), bytes.size()}, whom);
    }
    template <class T>
    void bind_one(int index, const std::optional<T>& value, Of whom) {
        if (value) {
            bind_one(index, *value, whom);
        } else {
            bind_null(index);
        }
    }

    Database& db_;
    sqlite3_stmt* statement_ = nullptr;
    std::optional<Error> failure_;  // of preparing; next() reports it
};

// The first row as `read` reads it.
template <class Read>
auto first_row(Query& query, Read read)
    -> Result<std::optional<typename std::invoke_result_t<Read, Query&>::value_type>> {
    const auto row = query.next();
    if (!row) {
        return fail(row.error());
    }
    if (!*row) {
        return std::nullopt;
    }
    auto value = read(query);
    if (!value) {
        return fail(std::move(value.error()));
    }
    return std::move(*value);
}

// To the last row, or until `visit` fails.
template <class Visit>
Result<> each_row(Query& query, Visit visit) {
    for (;;) {
        const auto row = query.next();
        if (!row) {
            return fail(row.error());
        }
        if (!*row) {
            return {};
        }
        if constexpr (std::is_void_v<std::invoke_result_t<Visit>>) {
            visit();
        } else if (auto visited = visit(); !visited) {
            return visited;
        }
    }
}

// All rows as `read` reads them, behind what is in `into`.
template <class Read, class Value>
Result<std::vector<Value>> all_rows(Query& query, Read read, std::vector<Value> into) {
    auto visited = each_row(query, [&]() -> Result<> {
        auto value = read(query);
        if (!value) {
            return fail(std::move(value.error()));
        }
        into.push_back(std::move(*value));
        return {};
    });
    if (!visited) {
        return fail(std::move(visited.error()));
    }
    return into;
}
template <class Read>
auto all_rows(Query& query, Read read) {
    return all_rows(
        query, read, std::vector<typename std::invoke_result_t<Read, Query&>::value_type>()
    );
}

// Takes the write lock at once. Rolled back unless commit() succeeded.
class Transaction {
public:
    static Result<std::unique_ptr<Transaction>> begin(Database& db);
    ~Transaction();
    Transaction(const Transaction&) = delete;
    Transaction& operator=(const Transaction&) = delete;

    Result<> commit();

private:
    explicit Transaction(Database& db) : db_(db) {}
    Database& db_;
};

// Several reads over one state of the database.
class Snapshot {
public:
    explicit Snapshot(Database& db);
    ~Snapshot();
    Snapshot(const Snapshot&) = delete;
    Snapshot& operator=(const Snapshot&) = delete;

private:
    Database& db_;
};

}  // namespace comfyd::ledger::sqlite
