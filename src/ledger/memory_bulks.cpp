#include "ledger/memory_bulks.hpp"

#include <algorithm>
#include <utility>

#include "ledger/bulk_codec.hpp"

namespace comfyd::ledger {

Task<Result<jobs::BulkAdded>> MemoryBulks::add_bulk(jobs::Bulk bulk, std::string plan) {
    for (const auto& [id, entry] : entries_) {
        const bool has_key = !bulk.idempotency_key.empty() && entry.bulk.tenant == bulk.tenant &&
                             entry.bulk.idempotency_key == bulk.idempotency_key;
        if (has_key) {
            co_return jobs::BulkAdded{false, entry.bulk};
        }
    }
    const jobs::BulkId id = bulk.id;
    if (entries_.contains(id)) {
        co_return fail(stale_bulk(bulk));
    }
    entries_[id] = Entry{std::move(bulk), std::move(plan), {}};
    co_return jobs::BulkAdded{true};
}

Task<Result<>> MemoryBulks::commit_bulk(jobs::BulkChange change) {
    const auto found = entries_.find(change.bulk.id);
    if (found == entries_.end()) {
        co_return fail(no_bulk(change.bulk.id));
    }
    Entry& entry = found->second;
    if (entry.bulk.revision != change.bulk.revision - 1) {
        co_return fail(stale_bulk(change.bulk));
    }
    entry.bulk = std::move(change.bulk);
    for (jobs::BulkItem& item : change.added) {
        const int index = item.index;
        entry.items[index] = std::move(item);
    }
    for (jobs::BulkItem& item : change.moved) {
        jobs::BulkItem& stored = entry.items.at(item.index);
        stored.state = item.state;
        stored.job = item.job;
        stored.outputs = std::move(item.outputs);
        stored.failure = std::move(item.failure);
    }
    co_return Result<>();
}

Task<Result<>> MemoryBulks::remove_bulk(jobs::BulkId id) {
    entries_.erase(id);
    co_return Result<>();
}

Task<Result<std::optional<jobs::Bulk>>> MemoryBulks::find_bulk(jobs::BulkId id) {
    const auto found = entries_.find(id);
    co_return found == entries_.end() ? std::nullopt : std::optional(found->second.bulk);
}

Task<Result<std::optional<std::string>>> MemoryBulks::find_bulk_plan(jobs::BulkId id) {
    const auto found = entries_.find(id);
    co_return found == entries_.end() ? std::nullopt : std::optional(found->second.plan);
}

Task<Result<jobs::BulkPage>> MemoryBulks::list_bulks(
    std::string tenant, std::optional<jobs::BulkId> before, int limit
) {
    jobs::BulkPage page;
    for (auto entry = entries_.rbegin(); entry != entries_.rend(); ++entry) {
        if (entry->second.bulk.tenant != tenant || (before && entry->first >= *before)) {
            continue;
        }
        if (page.bulks.size() == static_cast<std::size_t>(limit)) {
            page.next_cursor = page.bulks.back().id;
            break;
        }
        page.bulks.push_back(entry->second.bulk);
    }
    co_return page;
}

Task<Result<std::vector<jobs::BulkItem>>> MemoryBulks::bulk_items(jobs::BulkItemQuery query) {
    std::vector<jobs::BulkItem> items;
    const auto found = entries_.find(query.bulk);
    if (found == entries_.end()) {
        co_return items;
    }
    const auto& all = found->second.items;
    for (auto item = all.upper_bound(query.after); item != all.end(); ++item) {
        if (items.size() == static_cast<std::size_t>(query.limit)) {
            break;
        }
        if (!query.state || item->second.state == *query.state) {
            items.push_back(item->second);
        }
    }
    co_return items;
}

Task<Result<std::vector<jobs::Bulk>>> MemoryBulks::open_bulks(int limit) {
    std::vector<jobs::Bulk> open;
    for (const auto& [id, entry] : entries_) {
        if (entry.bulk.is_open() && open.size() < static_cast<std::size_t>(limit)) {
            open.push_back(entry.bulk);
        }
    }
    co_return open;
}

Task<Result<std::vector<jobs::BulkId>>> MemoryBulks::ended_bulks(Time before, int limit) {
    std::vector<std::pair<Time, jobs::BulkId>> ended;
    for (const auto& [id, entry] : entries_) {
        if (!entry.bulk.is_open() && entry.bulk.ended_at && *entry.bulk.ended_at < before) {
            ended.emplace_back(*entry.bulk.ended_at, id);
        }
    }
    std::ranges::sort(ended);
    std::vector<jobs::BulkId> ids;
    for (const auto& [at, id] : ended) {
        if (ids.size() < static_cast<std::size_t>(limit)) {
            ids.push_back(id);
        }
    }
    co_return ids;
}

}  // namespace comfyd::ledger
