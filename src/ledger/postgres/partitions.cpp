#include "ledger/postgres/partitions.hpp"

#include <array>
#include <set>
#include <string_view>
#include <utility>

#include "ledger/list_bounds.hpp"
#include "ledger/postgres/schema.hpp"

namespace comfyd::ledger::postgres {
namespace {

struct SplitTable {
    std::string_view name;
    std::string_view key;
    std::string_view with;
};
constexpr std::array<SplitTable, 5> kTables{{
    {"jobs", "id", " WITH (fillfactor = 50)"},
    {"job_specs", "job", ""},
    {"job_results", "job", ""},
    {"job_events", "job", ""},
    {"job_assets", "job", ""},
}};
constexpr Millis kWeek = std::chrono::hours(24 * 7);
// So long a week stays after its end: somebody may still be about to write into it.
constexpr Millis kKept = 2 * kWeek;

constexpr char kTryAlone[] = "SELECT pg_try_advisory_xact_lock($1::int4, 0)";
// Readers are to wait for this no longer than that.
constexpr char kWaitShortly[] = "SET LOCAL lock_timeout = '1s'";
constexpr char kWeeks[] =
    "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid "
    "WHERE i.inhparent = 'jobs'::regclass AND c.relname ~ '^jobs_[0-9]{8}$' ORDER BY 1";
constexpr char kLockNotAvailable[] = "55P03";
constexpr char kCheckViolation[] = "23514";

// "20261116"
std::string digits_of(Time week) {
    const std::string date = to_rfc3339(week);
    return date.substr(0, 4) + date.substr(5, 2) + date.substr(8, 2);
}

std::string part(const SplitTable& table, const std::string& week) {
    return std::string(table.name) + "_" + week;
}

// Somebody is at work in the tables, or has put something there since they were looked at: it has
// time until the next round.
Done put_off(const Failure& failure, std::optional<Result<bool>>& outcome) {
    if (failure.state == kLockNotAvailable || failure.state == kCheckViolation) {
        outcome.emplace(false);
        return {};
    }
    return tl::unexpected(failure);
}

}  // namespace

Time week_of(Time time) {
    constexpr Millis kFirstMonday = std::chrono::hours(24 * 4);  // 5 January 1970
    const auto since = time.time_since_epoch() - kFirstMonday;
    return Time(std::chrono::floor<std::chrono::weeks>(since) + kFirstMonday);
}

Task<Done> TendPartitions::run(Transaction& transaction) {
    auto answers = co_await transaction.ask(
        {{kTryAlone, {static_cast<int>(LockClass::housekeeping)}}, {kWaitShortly}, {kWeeks}}
    );
    if (!answers) {
        co_return tl::unexpected(std::move(answers.error()));
    }
    if (answers->at(0)[0].integer(0) == 0) {
        outcome.emplace(false);
        co_return Done();
    }
    std::set<std::string> there;
    const Rows& names = answers->at(2);
    for (int i = 0; i < names.size(); ++i) {
        there.insert(names[i].string(0).substr(std::string_view("jobs_").size()));
    }
    const Time this_week = week_of(transaction.at.now);
    for (Time week = this_week; week <= this_week + kWeeksAhead * kWeek; week += kWeek) {
        if (!there.contains(digits_of(week))) {
            auto made = co_await make(transaction, week);
            co_return made;
        }
    }
    std::erase_if(there, [&](const std::string& week) {
        return week >= digits_of(this_week - kKept);
    });
    if (there.empty()) {
        outcome.emplace(false);
        co_return Done();
    }
    auto dropped = co_await drop_empty(transaction, {there.begin(), there.end()});
    co_return dropped;
}

std::string jobs_part(Time week) {
    return part(kTables.front(), digits_of(week));
}

// `moves`: what has come before the parts were there goes over into them. Readers must not have
// begun meanwhile: they would look for it in the old place alone.
std::vector<std::string> make_week(Time week, bool moves) {
    const std::string from = "'" + lowest_id(week).to_string() + "'";
    const std::string to = "'" + lowest_id(week + kWeek).to_string() + "'";
    std::vector<std::string> made;
    for (const SplitTable& table : kTables) {
        if (moves) {
            made.push_back("LOCK TABLE " + std::string(table.name) + " IN ACCESS EXCLUSIVE MODE");
        }
    }
    for (const SplitTable& table : kTables) {
        const std::string name(table.name);
        const std::string key(table.key);
        const std::string its = part(table, digits_of(week));
        made.push_back(
            "CREATE TABLE " + its + " (LIKE " + name +
            " INCLUDING DEFAULTS INCLUDING STORAGE INCLUDING COMPRESSION)" + std::string(table.with)
        );
        if (moves) {
            made.push_back(
                "WITH moved AS (DELETE FROM " + name + "_rest WHERE " + key + " >= " + from +
                " AND " + key + " < " + to + " RETURNING *) INSERT INTO " + its +
                " SELECT * FROM moved"
            );
        }
        made.push_back(
            "ALTER TABLE " + name + " ATTACH PARTITION " + its + " FOR VALUES FROM (" + from +
            ") TO (" + to + ")"
        );
    }
    return made;
}

Task<Done> TendPartitions::make(Transaction& transaction, Time week) {
    std::string question;
    for (const SplitTable& table : kTables) {
        question +=
            (question.empty() ? "SELECT EXISTS (SELECT 1 FROM " : " OR EXISTS (SELECT 1 FROM ");
        question += std::string(table.name) + "_rest WHERE " + std::string(table.key) +
                    " >= $1 AND " + std::string(table.key) + " < $2)";
    }
    auto answers =
        co_await transaction.ask({{nullptr, {lowest_id(week), lowest_id(week + kWeek)}, question}});
    if (!answers) {
        co_return tl::unexpected(std::move(answers.error()));
    }
    Statements made;
    for (std::string& sql : make_week(week, answers->at(0)[0].integer(0) != 0)) {
        made.push_back({nullptr, {}, std::move(sql)});
    }
    auto done = co_await transaction.commit(std::move(made));
    if (!done) {
        co_return put_off(done.error(), outcome);
    }
    outcome.emplace(true);
    co_return done;
}

// The first of them that is empty.
Task<Done> TendPartitions::drop_empty(Transaction& transaction, std::vector<std::string> weeks) {
    std::string question;
    for (const std::string& week : weeks) {
        question += (question.empty() ? "SELECT '" : " UNION ALL SELECT '") + week + "' WHERE true";
        for (const SplitTable& table : kTables) {
            question += " AND NOT EXISTS (SELECT 1 FROM " + part(table, week) + ")";
        }
    }
    auto answers = co_await transaction.ask({{nullptr, {}, question + " LIMIT 1"}});
    if (!answers) {
        co_return tl::unexpected(std::move(answers.error()));
    }
    if (answers->at(0).empty()) {
        outcome.emplace(false);
        co_return Done();
    }
    Statements drops;
    for (const SplitTable& table : kTables) {
        drops.push_back({nullptr, {}, "DROP TABLE " + part(table, answers->at(0)[0].string(0))});
    }
    auto done = co_await transaction.commit(std::move(drops));
    if (!done) {
        co_return put_off(done.error(), outcome);
    }
    outcome.emplace(true);
    co_return done;
}

}  // namespace comfyd::ledger::postgres
