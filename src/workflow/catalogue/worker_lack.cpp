#include "workflow/catalogue/worker_lack.hpp"

#include <utility>

namespace comfyd::workflow {
namespace {

std::string joined(const std::vector<std::string>& words, std::string_view quote) {
    std::string text;
    for (const std::string& word : words) {
        text += text.empty() ? "" : ", ";
        text.append(quote).append(word).append(quote);
    }
    return text;
}

WorkerLack lack_of(const Catalogue& catalogue, const Requirement& requirement) {
    WorkerLack lack;
    lack.pool = requirement.pool();
    lack.nearest = catalogue.nearest(requirement);
    if (!lack.pool.empty()) {
        lack.other_pools = catalogue.pools_for(requirement);
    }
    if (requirement.is_particular()) {
        lack.machines = catalogue.machines(requirement);
    }
    return lack;
}

}  // namespace

std::string WorkerLack::message() const {
    std::string text =
        pool.empty() && machines
            ? "no worker has all that the request asks for, and none can be had"
        : pool.empty() ? "every node class and every file exists on some worker, but no worker has "
                         "all of them"
        : nearest      ? "no worker of the pool '" + pool + "' has all that the workflow needs"
                       : "no worker of the pool '" + pool + "' has come up yet";
    if (nearest) {
        text +=
            "; nearest is '" + nearest->worker + "', which lacks " + joined(nearest->missing, "");
    }
    if (other_pools.size() == 1) {
        text += "; it would start with the pool '" + other_pools.front() + "'";
    } else if (!other_pools.empty()) {
        text += "; it would start with one of the pools " + joined(other_pools, "'");
    } else if (!pool.empty()) {
        text += "; no other pool can run it either";
    }
    return text;
}

json::object WorkerLack::details() const {
    json::object made;
    if (nearest) {
        made["nearest_worker"] = nearest->worker;
        made["missing_there"] = json::array(nearest->missing.begin(), nearest->missing.end());
        made["missing_files"] = nearest->missing_files;
    }
    if (!pool.empty()) {
        made["pool"] = pool;
        made["other_pools"] = json::array(other_pools.begin(), other_pools.end());
    }
    if (machines) {
        made["machines"] = *machines;
    }
    return made;
}

Error WorkerLack::to_error() const {
    json::object about = details();
    const std::vector<std::string> classes =
        nearest ? nearest->missing_classes : std::vector<std::string>();
    about["missing_nodes"] = json::array(classes.begin(), classes.end());
    about["invalid_connections"] = json::array();
    return Error(Code::no_capable_worker, message(), std::move(about));
}

std::optional<WorkerLack> find_lack(const Catalogue& catalogue, const Requirement& requirement) {
    const std::string_view pool = requirement.pool();
    const bool is_known = pool.empty() ? catalogue.knows_workers() : catalogue.has_pool(pool);
    if (!is_known || catalogue.can_run(requirement)) {
        return std::nullopt;
    }
    return lack_of(catalogue, requirement);
}

std::optional<WorkerLack> find_silent_pool(
    const Catalogue& catalogue, const Requirement& requirement
) {
    const std::string_view pool = requirement.pool();
    if (pool.empty() || !catalogue.knows_workers() || catalogue.has_pool(pool)) {
        return std::nullopt;
    }
    return lack_of(catalogue, requirement);
}

}  // namespace comfyd::workflow
