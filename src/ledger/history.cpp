#include "ledger/history.hpp"

#include <system_error>

#include "ledger/sqlite/database.hpp"
#include "ledger/sqlite/job_queries.hpp"

namespace comfyd::ledger {
namespace {

constexpr Millis kBusyTimeout{5'000};

}  // namespace

Result<> read_history(
    const std::filesystem::path& database,
    Time since,
    Time until,
    const std::function<bool(const jobs::Job& job, const jobs::Spec& spec)>& visit
) {
    std::error_code error;
    if (!std::filesystem::is_regular_file(database, error)) {
        return fail(
            Code::storage_unavailable,
            "there is no database " + database.string() + "; name the data folder of a server"
        );
    }
    auto db = sqlite::Database::open(database, sqlite::Mode::read_only, kBusyTimeout);
    if (!db) {
        return fail(std::move(db.error()));
    }
    jobs::ListQuery query;
    query.created_after = since;
    query.created_before = until;
    query.limit = sqlite::kListLimitMax;
    while (true) {
        auto page = sqlite::list_jobs(**db, query);
        if (!page) {
            return fail(std::move(page.error()));
        }
        for (const jobs::Job& job : page->jobs) {
            auto spec = sqlite::find_spec(**db, job.id);
            if (!spec) {
                return fail(std::move(spec.error()));
            }
            if (*spec && !visit(job, **spec)) {
                return {};
            }
        }
        if (!page->next_cursor) {
            return {};
        }
        query.cursor = page->next_cursor;
    }
}

}  // namespace comfyd::ledger
