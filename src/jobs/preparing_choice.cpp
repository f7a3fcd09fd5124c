// Which worker fetches what, and from whom.
#include <algorithm>
#include <tuple>
#include <utility>

#include "jobs/preparing.hpp"

namespace comfyd::jobs {
namespace {

constexpr std::size_t kPeersMax = 3;

std::string text_of(const json::object& from, std::string_view key) {
    return json::find_string(from, key).value_or(std::nullopt).value_or("");
}

std::uint64_t bytes_of(const json::object& wish) {
    const auto bytes = json::find_int(wish, "bytes").value_or(std::nullopt);
    return static_cast<std::uint64_t>(std::max<std::int64_t>(bytes.value_or(0), 0));
}

// So that not all ask the same one.
std::ptrdiff_t turn_of(const std::string& worker, std::size_t others) {
    return others == 0 ? 0 : static_cast<std::ptrdiff_t>(std::hash<std::string>()(worker) % others);
}

}  // namespace

// Files of one name may lie in several folders: whoever lacks one is asked for all of them.
std::vector<json::object> Preparing::lacking_of(
    const Need& need, const std::vector<std::string>& values
) {
    std::vector<json::object> wishes;
    const std::set<std::string> lacking(values.begin(), values.end());
    std::set<std::string> known;
    for (const json::object& wish : need.wishes) {
        const std::string name = text_of(wish, "name");
        if (lacking.contains(name)) {
            known.insert(name);
            wishes.push_back(wish);
        }
    }
    // Else it lacks a file that nobody knows where to have from.
    return known == lacking ? wishes : std::vector<json::object>();
}

bool Preparing::has_room(const Worker& worker, const ModelHolder& holder, std::uint64_t bytes)
    const {
    const auto coming = on_their_way_.find(worker.id());
    const std::uint64_t before = coming == on_their_way_.end() ? 0 : coming->second;
    return holder.free_bytes() == 0 || bytes + before <= holder.free_bytes();
}

bool Preparing::must_wait(const Choice& choice) const {
    const std::string region = choice.worker->info().region;
    return std::ranges::any_of(choice.wishes, [&](const json::object& wish) {
        const std::string sha256 = text_of(wish, "sha256");
        return !sha256.empty() && flights_.must_wait(region, sha256);
    });
}

// One whose memory could not hold all of it is the last choice. Of the others
// the one that has the least to fetch; of these one that is free, then one that fetches nothing.
// nullopt: some worker can run it as it is, and begin now, or no other one is free for it.
std::optional<Preparing::Choice> Preparing::choose(const Need& need) const {
    Choice best;
    bool is_busy = false;  // some worker has all, and other work
    using Rank = std::tuple<bool, bool, std::uint64_t, std::size_t, bool, int>;
    Rank least;
    for (auto& worker : p_.fleet.workers()) {
        const ModelHolder* holder = worker->models();
        if (worker->can_run(need.requirement)) {
            if (worker->available()) {
                return std::nullopt;
            }
            is_busy = is_busy || worker->info().status == WorkerStatus::running;
            continue;
        }
        const auto values = holder == nullptr || !holder->is_open()
                                ? std::nullopt
                                : holder->lacking(need.requirement);
        auto wishes = values ? lacking_of(need, *values) : std::vector<json::object>();
        std::uint64_t bytes = 0;
        for (const json::object& wish : wishes) {
            bytes += bytes_of(wish);
        }
        if (wishes.empty() || !has_room(*worker, *holder, bytes)) {
            continue;
        }
        const std::uint64_t memory = worker->info().ram_total;
        const auto busy = busy_.find(worker->id());
        const Rank rank{
            need.failed_on.contains(worker->id()),
            memory > 0 && memory < need.bytes,
            bytes,
            wishes.size(),
            !worker->available(),
            busy == busy_.end() ? 0 : busy->second
        };
        if (!best.worker || rank < least) {
            least = rank;
            best = {std::move(worker), std::move(wishes), bytes, false, nullptr};
        }
    }
    if (is_busy && (!best.worker || !best.worker->available())) {
        return std::nullopt;
    }
    best.is_spare = is_busy;
    return best;
}

// Those of its network that have a content need not have it sent from outside again.
void Preparing::name_peers(const Need& need, Choice& choice) const {
    const WorkerInfo own = choice.worker->info();
    struct Other {
        std::string id;
        const ModelHolder* holder;
        std::optional<std::vector<std::string>> lacking;
    };
    std::vector<Other> others;
    for (const auto& worker : p_.fleet.workers()) {
        const ModelHolder* holder = worker->models();
        if (holder == nullptr || worker->id() == own.id || worker->info().region != own.region) {
            continue;
        }
        others.push_back({worker->id(), holder, holder->lacking(need.requirement)});
    }
    std::ranges::rotate(others, others.begin() + turn_of(own.id, others.size()));
    for (json::object& wish : choice.wishes) {
        const std::string sha256 = text_of(wish, "sha256");
        const std::string name = text_of(wish, "name");
        json::array peers;
        for (const Other& other : others) {
            const bool has = !sha256.empty() &&
                             (flights_.has(other.id, sha256) ||
                              (other.lacking && std::ranges::count(*other.lacking, name) == 0));
            const auto address = has ? other.holder->content_address(sha256) : std::nullopt;
            if (address && peers.size() < kPeersMax) {
                peers.emplace_back(*address);
            }
        }
        if (!peers.empty()) {
            wish["peers"] = std::move(peers);
        }
    }
}

}  // namespace comfyd::jobs
