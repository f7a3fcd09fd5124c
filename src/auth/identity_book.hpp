// Tenants and keys that are changed while comfyd runs, as all nodes have them: read again whenever
// one was changed, by whichever node, and put on the board from which requests are authenticated.
//
// Any thread, but for start() and stop().
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "auth/directory.hpp"
#include "auth/identity_store.hpp"
#include "base/mutex.hpp"
#include "base/task.hpp"

namespace comfyd::auth {

inline constexpr std::size_t kStoredKeysMax = 10'000;
inline constexpr std::size_t kStoredTenantsMax = 10'000;

class IdentityBook {
public:
    struct Configured {
        std::vector<ApiKey> keys{};
        std::vector<Tenant> tenants{};
    };
    struct Listener {
        // What holds from now on; also once for the first.
        std::function<void(const Directory&)> changed{};
        // One was changed here: others may want to read it at once.
        std::function<void()> saved{};
    };
    // The last three outlive it.
    IdentityBook(Executor executor, Configured configured, Clock& clock, IdentityStore& store);
    ~IdentityBook();

    void listen(Listener listener);  // before the first refresh
    const DirectoryBoard& directory() const { return board_; }

    // Reads what was changed. Whoever answers a request about identities does so first.
    Task<Result<>> refresh();
    // On the executor: refresh() every second, and what keys were used is written every minute.
    void start();
    // There may be something new: it looks at once.
    void wake();
    Task<> stop();

    // Stores it as a change of what is known here, which knows it afterwards. Code::conflict when
    // another was faster, for what the configuration has, and when there are too many.
    Task<Result<>> save(Tenant tenant);
    Task<Result<>> save(KeyRecord key);
    Task<Result<bool>> remove_tenant(std::string name);
    Task<Result<bool>> remove_key(std::string id);

private:
    Task<> keep_up();
    Task<Result<>> read_all();
    Task<Result<>> store(IdentityRecord record);
    Task<Result<bool>> remove(IdentityKind kind, std::string id);
    Task<> write_uses();

    Executor executor_;
    const Configured configured_;
    Clock& clock_;
    IdentityStore& store_;
    Listener listener_;
    DirectoryBoard board_;
    std::optional<TaskGroup> group_;  // from start() to stop()
    Signal woken_;
    KeyUses written_;  // of keys, as this node has written it
    Mutex mutex_;      // over reading, so that an older state never takes the place of a newer one
    bool has_read_ COMFYD_GUARDED_BY(mutex_) = false;
};

}  // namespace comfyd::auth
