#include "jobs/ranking.hpp"

#include <utility>
#include <vector>

#include "base/log.hpp"
#include "jobs/doctor.hpp"

namespace comfyd::jobs {

scheduler::ProfilePtr known_profile(scheduler::ProfilePtr profile, const Requirement& requirement) {
    if (!profile) {
        auto plain = std::make_shared<scheduler::Profile>();
        plain->requirement = requirement;
        profile = std::move(plain);
    }
    return profile;
}

std::uint64_t content_of(const Spec& spec) {
    return std::hash<std::string>{}(spec.workflow);
}

void Ranking::set_tenants(const std::map<std::string, TenantOptions>& tenants, bool classify) {
    for (const std::string& name : named_) {
        if (!tenants.contains(name)) {
            scheduler_.set_tenant(name, {});
        }
    }
    named_.clear();
    for (const auto& [name, options] : tenants) {
        scheduler_.set_tenant(name, options.terms);
        named_.insert(name);
    }
    if (classify && tenants_) {
        tenants_->set(tenants);
    } else if (classify) {
        tenants_.emplace(tenants);
    }
}

Task<> Ranking::recall_usage(Ledger& ledger) {
    const Time now = clock_.now();
    const auto names = tenants_ ? tenants_->with_quota() : std::vector<std::string>();
    for (const std::string& name : names) {
        StatsQuery query{name, now - std::chrono::hours(23), now, StatsGroup::hour};
        auto past = co_await ledger.stats(std::move(query));
        if (!past) {
            log::warning(
                "what a tenant has used is not known",
                {{"tenant", name}, {"error", past.error().message}}
            );
            continue;
        }
        for (const Stats::Group& hour : past->groups) {
            if (const auto begins = parse_rfc3339(hour.key)) {
                tenants_->add_used(name, *begins, hour.totals.gpu);
            }
        }
    }
}

void Ranking::add_used(const Job& job, Time at, const Usage& used) {
    if (tenants_) {
        tenants_->add_used(job.tenant, at, used.gpu);
    }
}

scheduler::JobKeys Ranking::keys_of(const Job& job, scheduler::ProfilePtr profile) const {
    scheduler::JobKeys keys;
    keys.priority = job.priority;
    keys.batch = job.batch;
    keys.tenant = job.tenant;
    keys.fairness_key = job.fairness_key;
    const std::string tier = named_tier(job.dialect_data);
    std::optional<TenantOptions> found;
    if (terms_of_ && (!tier.empty() || !named_.contains(job.tenant))) {
        found = terms_of_(job.tenant, tier);
        scheduler_.set_tenant(job.tenant, found->terms);
    }
    if (tenants_) {
        auto known = scheduler_.circumstances(profile);
        tenants_->describe(job.tenant, clock_.now(), known);
        known.tier = found ? found->tier : known.tier;
        keys.grounds = scheduler::grounds_of(known);
        keys.priority = scheduler::priority_of(job.priority, keys.grounds);
    }
    if (is_suspect(job) && profile->can_be_merged) {
        auto alone = std::make_shared<scheduler::Profile>(*profile);
        alone->can_be_merged = false;
        profile = std::move(alone);
    }
    keys.profile = std::move(profile);
    keys.queued_at = job.created_at;
    keys.avoid = workers_to_avoid(job);
    return keys;
}

}  // namespace comfyd::jobs
