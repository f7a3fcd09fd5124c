// Texts that outlive a restart, each under a name of its own: what the program has learned and
// would otherwise learn anew. Implemented by the ledger room. May be called on any executor; a Task
// continues on the executor that awaited it. Losing a note must only cost time.
#pragma once

#include <optional>
#include <string>

#include "base/task.hpp"

namespace comfyd::jobs {

class Notebook {
public:
    virtual ~Notebook() = default;
    // In place of what was there. Durable when it returns.
    virtual Task<Result<>> write_note(std::string name, std::string text) = 0;
    virtual Task<Result<std::optional<std::string>>> read_note(std::string name) = 0;
};

}  // namespace comfyd::jobs
