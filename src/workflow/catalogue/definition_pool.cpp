#include "workflow/catalogue/definition_pool.hpp"

#include <functional>
#include <unordered_map>

#include "base/mutex.hpp"

namespace comfyd::workflow {
namespace {

struct Pool {
    Mutex mutex;
    std::unordered_multimap<std::size_t, std::weak_ptr<const NodeDefinition>> known
        COMFYD_GUARDED_BY(mutex);
    std::size_t sweep_at COMFYD_GUARDED_BY(mutex) = 4096;  // size at which the dead are taken out

    void sweep() COMFYD_REQUIRES(mutex) {
        std::erase_if(known, [](const auto& entry) { return entry.second.expired(); });
        sweep_at = std::max<std::size_t>(4096, known.size() * 2);
    }
};

Pool& pool() {
    static Pool made;
    return made;
}

std::shared_ptr<const NodeDefinition> find(
    Pool& in, std::size_t hash, std::string_view name, const json::object& info
) COMFYD_REQUIRES(in.mutex) {
    const auto [begin, end] = in.known.equal_range(hash);
    for (auto at = begin; at != end; ++at) {
        auto alive = at->second.lock();
        if (alive != nullptr && alive->name() == name && alive->info() == info) {
            return alive;
        }
    }
    return nullptr;
}

}  // namespace

Result<std::shared_ptr<const NodeDefinition>> shared_definition(
    std::string_view name, const json::object& info
) {
    const std::size_t hash =
        std::hash<json::object>{}(info) ^ (std::hash<std::string_view>{}(name) << 1U);
    Pool& shared = pool();
    {
        const Lock lock(shared.mutex);
        if (auto found = find(shared, hash, name, info)) {
            return found;
        }
    }
    auto made = NodeDefinition::from_object_info(name, info);
    if (!made) {
        return made;
    }
    const Lock lock(shared.mutex);
    if (auto found = find(shared, hash, name, info)) {
        return found;  // another thread was faster
    }
    if (shared.known.size() >= shared.sweep_at) {
        shared.sweep();
    }
    shared.known.emplace(hash, *made);
    return made;
}

std::size_t shared_definition_count() {
    Pool& shared = pool();
    const Lock lock(shared.mutex);
    shared.sweep();
    return shared.known.size();
}

}  // namespace comfyd::workflow
