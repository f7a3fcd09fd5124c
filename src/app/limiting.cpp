#include "app/limiting.hpp"

#include <algorithm>
#include <utility>

#include <boost/asio/post.hpp>

#include "app/breakers.hpp"
#include "base/hop.hpp"
#include "base/log.hpp"
#include "fleet/instances/store.hpp"

namespace comfyd::app {
namespace {

constexpr Millis kLookEvery{1'000};
constexpr Millis kCountMoneyEvery{1'000};
constexpr int kCountEvery = 5;  // looks
constexpr Millis kGoneAfter{15'000};
constexpr std::uintmax_t kReserve = 512ULL << 20;
constexpr std::uintmax_t kReservedPart = 20;  // of a small disk, a twentieth

limits::AddressRules address_rules(const Config& config) {
    auto blocked = net::AddressRanges::parse(config.blocked_addresses);
    return {
        blocked ? std::move(*blocked) : net::AddressRanges(),
        static_cast<double>(config.strangers_per_minute)
    };
}

bool is_nearly_full(const std::filesystem::path& folder, std::uintmax_t asked_for) {
    std::error_code error;
    const auto space = std::filesystem::space(folder, error);
    const std::uintmax_t reserve =
        asked_for != 0 ? asked_for : std::min(kReserve, space.capacity / kReservedPart);
    return !error && space.available < reserve;
}

}  // namespace

Result<std::unique_ptr<Limiting>> Limiting::make(Parts parts) {
    std::unique_ptr<limits::RedisMeter> shared;
    if (is_clustered(parts.config) && !parts.config.events.empty()) {
        auto url = cluster::redis::Url::parse(parts.config.events);
        if (!url) {
            return fail(Code::config_invalid, "'events': " + url.error().message);
        }
        shared = std::make_unique<limits::RedisMeter>(
            parts.executor, std::move(*url), parts.config.cluster_name
        );
    }
    return std::unique_ptr<Limiting>(new Limiting(std::move(parts), std::move(shared)));
}

Limiting::Limiting(Parts parts, std::unique_ptr<limits::RedisMeter> shared)
    : p_(std::move(parts)),
      book_(p_.directory, p_.config.tiers, p_.config.tier_default),
      shared_(std::move(shared)),
      rates_(book_, p_.clock, shared_.get()),
      addresses_(address_rules(p_.config), p_.clock),
      quotas_(
          book_,
          p_.clock,
          {[this](std::string tenant) { return p_.service.unfinished(std::move(tenant)); },
           [this](jobs::StatsQuery query) { return p_.ledger.stats(std::move(query)); },
           [this](std::string tenant) { return p_.ledger.stored_bytes(std::move(tenant)); },
           [this] { return has_room(); }}
      ),
      budgets_(
          p_.directory,
          book_,
          p_.clock,
          p_.ledger,
          {[this](jobs::StatsQuery query) { return p_.ledger.stats(std::move(query)); },
           [this](std::string tenant, autoscale::LimitNews news) {
               return tell(std::move(tenant), std::move(news));
           }}
      ),
      tasks_(p_.executor) {}

jobs::TenantOptions Limiting::terms_of(const std::string& tenant, const std::string& token_tier)
    const {
    const limits::Allowance allowance = book_.of(tenant, token_tier);
    const auto directory = p_.directory.now();
    const auth::Tenant* known = directory->find_tenant(tenant);
    return {
        {known == nullptr ? 1 : known->weight,
         static_cast<std::size_t>(allowance.running_max),
         budgets_.hold_of(tenant)},
        scheduler::parse_tier(book_.tier_of(tenant, token_tier)).value_or(scheduler::Tier::basic),
        allowance.gpu_seconds_per_day
    };
}

std::map<std::string, jobs::TenantOptions> Limiting::all_terms() const {
    std::map<std::string, jobs::TenantOptions> all;
    const auto directory = p_.directory.now();
    for (const auto& [name, tenant] : directory->tenants()) {
        all[name] = terms_of(name, "");
    }
    return all;
}

Task<> Limiting::open() {
    co_await await_on(p_.executor, look_at_budgets());
}

void Limiting::start() {
    if (shared_) {
        shared_->start();
    }
    tasks_.spawn("limits", keep_looking());
    tasks_.spawn("budgets of tenants", keep_counting());
}

Task<> Limiting::stop() {
    tasks_.cancel();
    co_await tasks_.join();
    if (shared_) {
        co_await shared_->stop();
    }
}

Task<> Limiting::keep_looking() {
    const auto reserve = static_cast<std::uintmax_t>(p_.config.disk_free_mb) << 20;
    bool goes_on = true;
    for (int looks = 0; goes_on; ++looks) {
        const bool is_full = co_await p_.pool.run([&folders = p_.folders, reserve] {
            return std::ranges::any_of(folders, [reserve](const std::filesystem::path& folder) {
                return is_nearly_full(folder, reserve);
            });
        });
        if (is_disk_full_.exchange(is_full) != is_full) {
            log::warning(
                is_full ? "the disk is nearly full: nothing new is taken in"
                        : "there is room on the disk again"
            );
        }
        if (is_clustered(p_.config) && looks % kCountEvery == 0) {
            co_await count_nodes();
        }
        goes_on = co_await sleep_for(kLookEvery);
    }
}

Task<> Limiting::keep_counting() {
    bool goes_on = true;
    while (goes_on) {
        const bool is_changed = co_await look_at_budgets();
        if (is_changed) {
            boost::asio::post(p_.core, [this] { p_.service.set_tenants(all_terms()); });
        }
        goes_on = co_await sleep_for(kCountMoneyEvery);
    }
}

Task<bool> Limiting::look_at_budgets() {
    return budgets_.look(!p_.is_ours || p_.is_ours());
}

// As the budgets of pools are told of, in the log of the fleet.
Task<> Limiting::tell(std::string tenant, autoscale::LimitNews news) {
    fleet::FleetEvent event;
    event.at = p_.clock.now();
    event.fleet = p_.config.fleet_name;
    event.what = news.what();
    event.why = std::move(news.sentence);
    event.tenant = std::move(tenant);
    event.details = news.details();
    log::info("budget", {{"what", event.what}, {"why", event.why}});
    auto noted = co_await p_.ledger.note_fleet_event(std::move(event));
    if (!noted && noted.error().code != Code::cancelled) {
        log::warning("an event of a budget is not noted", {{"error", noted.error().message}});
    }
}

Task<> Limiting::count_nodes() {
    auto roster = co_await p_.ledger.nodes()->roster();
    if (roster) {
        const auto here = std::ranges::count_if(*roster, [](const cluster::RosterEntry& entry) {
            return entry.seen_ago < kGoneAfter;
        });
        rates_.set_nodes(static_cast<std::size_t>(std::max<std::ptrdiff_t>(here, 1)));
    }
}

Result<> Limiting::has_room() const {
    if (!is_disk_full_) {
        return {};
    }
    return fail(
        Code::storage_unavailable,
        "the disk of this server is nearly full, so that it takes in nothing new for now",
        {{"reason", "disk_nearly_full"}, {"retry_after", 30}}
    );
}

void Limiting::collect(observe::Metrics::Gauges& gauges) const {
    const auto set = [&gauges](const char* name, const char* help, double value) {
        gauges.set(name, help, {}, value);
    };
    const auto rates = rates_.counts();
    const auto addresses = addresses_.counts();
    set("comfyd_requests_limited",
        "Requests that were refused because of their tenant's or key's rate, since start.",
        static_cast<double>(rates.refused));
    set("comfyd_quota_refusals",
        "Jobs and files that were refused because of their tenant's quotas, since start.",
        static_cast<double>(quotas_.refused()));
    set("comfyd_address_refusals",
        "Requests that were refused because of their address, since start.",
        static_cast<double>(addresses.blocked + addresses.held_up));
    set("comfyd_disk_nearly_full",
        "1 while nothing new is taken in because the disk is nearly full.",
        is_disk_full_ ? 1 : 0);
    for (const auto& [tenant, left] : budgets_.left_usd()) {
        gauges.set(
            "comfyd_tenant_budget_left_usd",
            "Left of a tenant's budget, of the limit that is nearest to its end.",
            {{"tenant", tenant}},
            left
        );
    }
    if (shared_) {
        show_breaker("redis:limits", shared_->breaker(), gauges);
        set("comfyd_limits_alone",
            "Requests whose rate this node judged alone because Redis was away, since start.",
            static_cast<double>(rates.alone));
        set("comfyd_limits_shared",
            "1 while nodes count requests together.",
            shared_->is_up() ? 1 : 0);
    }
}

}  // namespace comfyd::app
