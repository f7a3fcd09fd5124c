// Rows that a statement takes by unnest().
#pragma once

#include <vector>

#include "ledger/postgres/connection.hpp"

namespace comfyd::ledger::postgres {

// Rows of one statement, a column each.
class Table {
public:
    explicit Table(const std::vector<Oid>& columns);
    template <class... Values>
    void add(const Values&... values) {
        std::size_t column = 0;
        (columns_[column++].add(values), ...);
    }
    bool empty() const { return columns_.front().size() == 0; }
    int size() const { return columns_.front().size(); }
    // Behind them come what is the same for all rows.
    Statement statement(const char* sql, std::vector<Value> behind = {}) const;

private:
    std::vector<Array> columns_;
};

}  // namespace comfyd::ledger::postgres
