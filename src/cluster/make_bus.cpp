#include "cluster/make_bus.hpp"

#include <utility>

#include "cluster/no_bus.hpp"
#include "cluster/redis_bus.hpp"

namespace comfyd::cluster {

Result<std::unique_ptr<Bus>> make_bus(
    Executor executor, const std::string& url, std::string cluster, NodeId self
) {
    if (url.empty()) {
        return std::make_unique<NoBus>(executor, self);
    }
    auto parsed = redis::Url::parse(url);
    if (!parsed) {
        return fail(std::move(parsed.error()));
    }
    return std::make_unique<RedisBus>(executor, std::move(*parsed), std::move(cluster), self);
}

}  // namespace comfyd::cluster
