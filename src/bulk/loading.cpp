#include "bulk/loading.hpp"

#include <algorithm>
#include <utility>

#include "base/log.hpp"

namespace comfyd::bulk {
namespace {

constexpr std::size_t kGroupBytesMax = 4 * 1024 * 1024;

}  // namespace

Task<Result<bool>> Loading::begin(jobs::Bulk bulk, std::string plan) {
    bulk_ = bulk;
    auto added = co_await store_.add_bulk(std::move(bulk), std::move(plan));
    if (!added) {
        co_return fail(std::move(added.error()));
    }
    was_created_ = added->created;
    if (added->existing) {
        if (added->existing->request_hash != bulk_.request_hash) {
            co_return fail(
                Code::idempotency_key_reuse,
                "this idempotency key was used for another batch; use a new key for a new batch",
                {{"batch_id", added->existing->id.to_string()}}
            );
        }
        bulk_ = std::move(*added->existing);
    }
    co_return bulk_.state == jobs::BulkState::loading;
}

Task<Result<>> Loading::add(std::vector<jobs::BulkItem> items) {
    for (jobs::BulkItem& item : items) {
        if (++next_index_ > items_max_) {
            co_return fail(
                Code::payload_too_large,
                "a batch may have at most " + std::to_string(items_max_) + " items",
                {{"items_max", items_max_}}
            );
        }
        group_bytes_ += item.params.size();
        group_.push_back(std::move(item));
        if (group_.size() >= jobs::kBulkItemsInACommit || group_bytes_ >= kGroupBytesMax) {
            auto stored = co_await store_group();
            if (!stored) {
                co_return stored;
            }
        }
    }
    co_return Result<>();
}

// Another who loads the same, or a pause, may come between: then it is tried again upon that.
Task<Result<>> Loading::store_group() {
    while (true) {
        std::erase_if(group_, [this](const jobs::BulkItem& item) {
            return item.index < bulk_.counts.total;
        });
        if (group_.empty()) {
            group_bytes_ = 0;
            co_return Result<>();
        }
        auto change = add_items(bulk_, group_);
        if (!change) {
            co_return fail(std::move(change.error()));
        }
        jobs::Bulk after = change->bulk;
        auto committed = co_await store_.commit_bulk(std::move(*change));
        if (committed) {
            bulk_ = std::move(after);
            continue;
        }
        if (committed.error().code != Code::conflict) {
            co_return committed;
        }
        auto read = co_await read_again();
        if (!read) {
            co_return read;
        }
    }
}

Task<Result<>> Loading::read_again() {
    auto found = co_await store_.find_bulk(bulk_.id);
    if (!found) {
        co_return fail(std::move(found.error()));
    }
    if (!*found) {
        co_return fail(Code::conflict, "the batch was removed while it was loaded");
    }
    bulk_ = std::move(**found);
    co_return Result<>();
}

Task<Result<>> Loading::finish() {
    auto stored = co_await store_group();
    if (!stored) {
        co_return stored;
    }
    while (bulk_.state == jobs::BulkState::loading) {
        if (bulk_.counts.total == 0) {
            co_return fail(Code::invalid_argument, "the batch has no items");
        }
        auto change = finish_loading(bulk_, clock_.now());
        if (!change) {
            co_return fail(std::move(change.error()));
        }
        jobs::Bulk after = change->bulk;
        auto committed = co_await store_.commit_bulk(std::move(*change));
        if (committed) {
            bulk_ = std::move(after);
            co_return committed;
        }
        if (committed.error().code != Code::conflict) {
            co_return committed;
        }
        auto read = co_await read_again();
        if (!read) {
            co_return read;
        }
    }
    co_return Result<>();
}

Task<> Loading::give_up() {
    if (!was_created_) {
        co_return;
    }
    auto removed = co_await store_.remove_bulk(bulk_.id);
    if (!removed) {
        // It is found and removed later: nothing of it runs.
        log::warning(
            "a batch that was refused could not be removed",
            {{"batch", bulk_.id}, {"error", removed.error().message}}
        );
    }
}

}  // namespace comfyd::bulk
