#include "auth/identity_book.hpp"

#include <utility>

#include <boost/asio/post.hpp>

#include "base/assert.hpp"
#include "base/log.hpp"
#include "base/on_executor.hpp"

namespace comfyd::auth {
namespace {

constexpr Millis kLookEvery{1'000};
constexpr std::chrono::minutes kWriteUsesEvery{1};

DirectoryPtr first_directory(const IdentityBook::Configured& configured) {
    return std::make_shared<const Directory>(
        configured.keys, configured.tenants, AllIdentities(), Directory()
    );
}

}  // namespace

IdentityBook::IdentityBook(
    Executor executor, Configured configured, Clock& clock, IdentityStore& store
)
    : executor_(executor),
      configured_(std::move(configured)),
      clock_(clock),
      store_(store),
      board_(first_directory(configured_)),
      woken_(executor) {}

IdentityBook::~IdentityBook() = default;

void IdentityBook::listen(Listener listener) {
    listener_ = std::move(listener);
}

void IdentityBook::start() {
    COMFYD_ON(executor_);
    COMFYD_ASSERT(!group_);
    group_.emplace(executor_);
    group_->spawn("identities", keep_up());
}

void IdentityBook::wake() {
    boost::asio::post(executor_, [this] { woken_.notify(); });
}

Task<> IdentityBook::stop() {
    COMFYD_ON(executor_);
    if (group_) {
        group_->cancel();
        co_await group_->join();
        group_.reset();
        co_await write_uses();
    }
}

Task<> IdentityBook::keep_up() {
    bool go_on = true;
    bool has_failed = false;
    Time uses_written_at = clock_.now();
    while (go_on) {
        auto refreshed = co_await refresh();
        if (!refreshed && !has_failed) {
            log::warning("cannot read tenants and keys", {{"error", refreshed.error().message}});
        }
        has_failed = !refreshed;
        if (clock_.now() >= uses_written_at + kWriteUsesEvery) {
            uses_written_at = clock_.now();
            co_await write_uses();
        }
        const bool was_woken = co_await woken_.wait_for(kLookEvery);
        static_cast<void>(was_woken);
        const bool is_over = co_await is_cancelled();
        go_on = !is_over;
    }
}

// Only what is newer than what was written before.
Task<> IdentityBook::write_uses() {
    KeyUses fresh;
    const DirectoryPtr directory = board_.now();
    for (const auto& [id, key] : directory->keys()) {
        const Time used_at(std::chrono::seconds(key.use->load(std::memory_order_relaxed)));
        const auto known = written_.find(id);
        if (used_at > (known == written_.end() ? Time() : known->second)) {
            fresh[id] = used_at;
        }
    }
    if (fresh.empty()) {
        co_return;
    }
    auto written = co_await store_.note_key_uses(fresh);
    if (written) {
        for (const auto& [id, used_at] : fresh) {
            written_[id] = used_at;
        }
        std::erase_if(written_, [&directory](const auto& use) {
            return directory->find_key(use.first) == nullptr;
        });
    }
}

Task<Result<>> IdentityBook::refresh() {
    auto changes = co_await store_.identity_changes();
    if (!changes) {
        co_return fail(std::move(changes.error()));
    }
    bool is_known = false;
    {
        const Lock lock(mutex_);
        is_known = has_read_ && board_.now()->changes() >= *changes;
    }
    if (is_known) {
        co_return Result<>();
    }
    auto read = co_await read_all();
    co_return read;
}

Task<Result<>> IdentityBook::read_all() {
    auto all = co_await store_.all_identities();
    if (!all) {
        co_return fail(std::move(all.error()));
    }
    const Lock lock(mutex_);
    const DirectoryPtr before = board_.now();
    if (has_read_ && before->changes() > all->changes) {
        co_return Result<>();  // another has read later
    }
    auto next =
        std::make_shared<const Directory>(configured_.keys, configured_.tenants, *all, *before);
    has_read_ = true;
    board_.set(next);
    if (listener_.changed) {
        listener_.changed(*next);
    }
    co_return Result<>();
}

Task<Result<>> IdentityBook::store(IdentityRecord record) {
    auto saved = co_await store_.save_identity(std::move(record));
    if (!saved) {
        co_return saved;
    }
    if (listener_.saved) {
        listener_.saved();
    }
    auto refreshed = co_await refresh();
    co_return refreshed;
}

Task<Result<>> IdentityBook::save(Tenant tenant) {
    const DirectoryPtr now = board_.now();
    const Tenant* known = now->find_tenant(tenant.name);
    if (known != nullptr && known->revision == 0) {
        co_return fail(
            Code::conflict,
            "the tenant '" + tenant.name +
                "' is set in the configuration of the server; change it there"
        );
    }
    if (known == nullptr && now->tenants().size() >= kStoredTenantsMax) {
        co_return fail(Code::conflict, "there are too many tenants already; remove one first");
    }
    tenant.revision += 1;
    auto stored = co_await store(tenant.to_record());
    co_return stored;
}

Task<Result<>> IdentityBook::save(KeyRecord key) {
    const DirectoryPtr now = board_.now();
    if (key.revision == 0 && now->keys().size() >= kStoredKeysMax) {
        co_return fail(Code::conflict, "there are too many keys already; remove revoked ones");
    }
    key.revision += 1;
    auto stored = co_await store(key.to_record());
    co_return stored;
}

Task<Result<bool>> IdentityBook::remove(IdentityKind kind, std::string id) {
    auto removed = co_await store_.remove_identity(kind, std::move(id));
    if (!removed) {
        co_return removed;
    }
    if (listener_.saved) {
        listener_.saved();
    }
    auto refreshed = co_await refresh();
    if (!refreshed) {
        co_return fail(std::move(refreshed.error()));
    }
    co_return removed;
}

Task<Result<bool>> IdentityBook::remove_tenant(std::string name) {
    return remove(IdentityKind::tenant, std::move(name));
}

Task<Result<bool>> IdentityBook::remove_key(std::string id) {
    return remove(IdentityKind::key, std::move(id));
}

}  // namespace comfyd::auth
