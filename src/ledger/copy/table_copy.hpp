// Rows from SQLite into PostgreSQL, table by table. Blocks; one thread.
#pragma once

#include <libpq-fe.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ledger/postgres/batch.hpp"
#include "ledger/postgres/secret_texts.hpp"
#include "ledger/sqlite/database.hpp"

namespace comfyd::ledger::copying {

using postgres::kBytes;
using postgres::kInteger;
using postgres::kText;
using postgres::kUuid;
using sqlite::Query;

inline constexpr int kRowsAtOnce = 500;

// A transaction that is rolled back when it goes.
class Target {
public:
    explicit Target(const std::string& conninfo) : connection_(PQconnectdb(conninfo.c_str())) {}

    Result<> run(const std::string& sql) {
        return check(Answer(PQexec(connection_.get(), sql.c_str())));
    }
    // A question that is answered by yes or no.
    Result<bool> ask(const std::string& sql) {
        const Answer answer(PQexec(connection_.get(), sql.c_str()));
        if (PQntuples(answer.get()) != 1) {
            return fail(error());
        }
        return std::string_view(PQgetvalue(answer.get(), 0, 0)) == "t";
    }
    Result<> insert(const postgres::Statement& statement) {
        std::vector<Oid> types;
        std::vector<const char*> values;
        std::vector<int> lengths;
        for (const postgres::Value& value : statement.values) {
            types.push_back(value.type);
            values.push_back(value.bytes ? value.bytes->data() : nullptr);
            lengths.push_back(value.bytes ? static_cast<int>(value.bytes->size()) : 0);
        }
        const std::vector<int> formats(values.size(), 1);
        return check(Answer(PQexecParams(
            connection_.get(),
            statement.sql,
            static_cast<int>(values.size()),
            types.data(),
            values.data(),
            lengths.data(),
            formats.data(),
            0
        )));
    }

private:
    struct CloseConnection {
        void operator()(PGconn* connection) const { PQfinish(connection); }
    };
    struct ClearResult {
        void operator()(PGresult* result) const { PQclear(result); }
    };
    using Handle = std::unique_ptr<PGconn, CloseConnection>;
    using Answer = std::unique_ptr<PGresult, ClearResult>;

    Error error() const {
        return Error(
            Code::storage_unavailable,
            std::string("PostgreSQL refused a part of the copy: ") +
                PQerrorMessage(connection_.get())
        );
    }
    Result<> check(const Answer& answer) const {
        const auto status = PQresultStatus(answer.get());
        return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK ? Result<>() : fail(error());
    }

    Handle connection_;
};

inline std::optional<std::string> text(const Query& row, int column) {
    return row.is_null(column) ? std::nullopt : std::optional(row.string(column));
}
inline std::optional<std::int64_t> number(const Query& row, int column) {
    return row.is_null(column) ? std::nullopt : std::optional(row.integer(column));
}
inline std::optional<Uuid> id(const Query& row, int column) {
    return row.is_null(column) ? std::nullopt : std::optional(row.uuid(column));
}

// The rows of one table, in pieces.
class Copy {
public:
    Copy(
        sqlite::Database& from,
        Target& to,
        const postgres::SecretTexts& texts,
        const std::function<void(std::string_view, std::uint64_t)>& tell
    )
        : from_(from), to_(to), texts_(texts), tell_(tell) {}

    // What secrets are sealed with there.
    const postgres::SecretTexts& texts() const { return texts_; }

    // `add` puts a row of `select` into the table that `insert` takes.
    template <class Add>
    Result<> table(
        std::string_view name,
        const char* select,
        const char* insert,
        const std::vector<Oid>& columns,
        Add add
    ) {
        std::uint64_t done = 0;
        postgres::Table rows(columns);
        const auto flush = [&]() -> Result<> {
            done += static_cast<std::uint64_t>(rows.size());
            auto inserted = rows.empty() ? Result<>() : to_.insert(rows.statement(insert));
            rows = postgres::Table(columns);
            tell_(name, done);
            return inserted;
        };
        Query query(from_, select);
        query.bind();
        auto read = sqlite::each_row(query, [&]() -> Result<> {
            add(query, rows);
            return rows.size() < kRowsAtOnce ? Result<>() : flush();
        });
        return read ? flush() : read;
    }

private:
    sqlite::Database& from_;
    Target& to_;
    const postgres::SecretTexts& texts_;
    const std::function<void(std::string_view, std::uint64_t)>& tell_;
};

Result<> copy_jobs(Copy& copy);  // and all that is stored by job
Result<> copy_others(Copy& copy);

}  // namespace comfyd::ledger::copying
