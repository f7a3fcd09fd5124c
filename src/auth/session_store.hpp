// Sessions of browsers and logins that have begun, as nodes share them: documents, of which the
// store knows whose they are and when they end. Implemented by the ledger room.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/task.hpp"
#include "base/time.hpp"

namespace comfyd::auth {

enum class SessionKind { session = 0, begun_login = 1 };

struct SessionRecord {
    SessionKind kind = SessionKind::session;
    std::string id;
    std::string tenant{};
    std::string owner{};  // of the tenant: the name of a key, or a person
    Time used_at{};
    Time ends_at{};  // unless it is used before
    json::object about{};
};

struct SessionQuery {
    std::optional<std::string> tenant{};  // nullopt: of all
    std::optional<std::string> owner{};
    Time now{};           // those that have ended are left out
    std::string after{};  // by their ids
    int limit = 100;
};

class SessionStore {
public:
    virtual ~SessionStore() = default;
    // Some of those that have ended go with it, and so do the owner's oldest of the kind where
    // there would be more than `kept_max`.
    virtual Task<Result<>> save_session(SessionRecord record, int kept_max) = 0;
    // Also one that has ended.
    virtual Task<Result<std::optional<SessionRecord>>> find_session(
        SessionKind kind, std::string id
    ) = 0;
    // Removes it; of all who ask, one gets it.
    virtual Task<Result<std::optional<SessionRecord>>> take_session(
        SessionKind kind, std::string id
    ) = 0;
    // An earlier use than the stored one is passed over, as is one of a session that is gone.
    virtual Task<Result<>> note_session_use(std::string id, Time used_at, Time ends_at) = 0;
    // Sessions, not logins that have begun; in the order of their ids.
    virtual Task<Result<std::vector<SessionRecord>>> list_sessions(SessionQuery query) = 0;
};

}  // namespace comfyd::auth
