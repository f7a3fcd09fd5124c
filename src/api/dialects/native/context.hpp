// What the native routes share. Made by add_native(), lives as long as the router.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "admission/tenant_folder.hpp"
#include "api/dialects/native/board.hpp"
#include "api/dialects/native/hidden.hpp"
#include "api/dialects/native/native.hpp"
#include "base/mutex.hpp"
#include "base/turnstile.hpp"
#include "comfy/user_store.hpp"

namespace comfyd::api::native {

struct Context {
    Context(const Services& all, NativeParts with)
        : services(all),
          parts(std::move(with)),
          board(std::make_shared<Board>(all.jobs, parts.board)),
          hidden(parts.folder) {}

    const Services& services;
    NativeParts parts;
    std::shared_ptr<Board> board;  // shared with what is posted to its executor
    Hidden hidden;
    // Of one tenant at a time: pictures in other forms, and histories, which may be large.
    Turnstile picture_turns{{.inside_max = 2, .waiting_max = 256}};
    Turnstile history_turns{{.inside_max = 2, .waiting_max = 64}};

    // The number of the tenant's next prompt.
    std::int64_t next_number(const std::string& tenant);
    comfy::UserStore& user_of(const std::string& tenant);

private:
    Mutex mutex_;
    std::map<std::string, comfy::UserStore> users_ COMFYD_GUARDED_BY(mutex_);
    std::unordered_map<std::string, std::int64_t> numbers_ COMFYD_GUARDED_BY(mutex_);
};

// The tenant's jobs that clients know by this id, oldest first; those that are not in the ledger
// any more are left out.
Task<Result<std::vector<jobs::Job>>> find_jobs(
    Context& context, std::string tenant, std::string prompt_id
);

}  // namespace comfyd::api::native
