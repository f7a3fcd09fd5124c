#include "ledger/postgres/table.hpp"

#include <utility>

namespace comfyd::ledger::postgres {

Table::Table(const std::vector<Oid>& columns) {
    for (const Oid type : columns) {
        columns_.emplace_back(type);
    }
}

Statement Table::statement(const char* sql, std::vector<Value> behind) const {
    Statement made{sql};
    for (const Array& column : columns_) {
        made.values.push_back(column.value());
    }
    for (Value& value : behind) {
        made.values.push_back(std::move(value));
    }
    return made;
}

}  // namespace comfyd::ledger::postgres
