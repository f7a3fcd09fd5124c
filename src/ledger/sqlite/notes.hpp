// The table of jobs::Notebook.
#pragma once

#include <optional>
#include <string>

#include "ledger/sqlite/session.hpp"

namespace comfyd::ledger::sqlite {

struct WriteNote {
    using Value = void;
    std::string name;
    std::string text;

    std::size_t bytes() const { return 128 + name.size() + text.size(); }
    Result<> operator()(Session& session);
};

Result<std::optional<std::string>> find_note(Database& db, const std::string& name);

}  // namespace comfyd::ledger::sqlite
