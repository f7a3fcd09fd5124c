#include "fleet/instances/kept_pools.hpp"

#include <utility>

#include "base/crypto.hpp"

namespace comfyd::fleet {
namespace {

double some_chance() {
    std::uint32_t bits = 0;
    random_bytes(&bits, sizeof bits);
    return static_cast<double>(bits) / 4294967296.0;
}

}  // namespace

KeptPools::KeptPools(Parts parts) : p_(std::move(parts)) {}
KeptPools::~KeptPools() = default;

Result<> KeptPools::begin(Fleet& fleet) {
    crew_.emplace(fleet, p_.lane, p_.pool, p_.timeouts);
    Keeper::Parts parts{
        .core = p_.core,
        .clock = p_.clock,
        .store = p_.store,
        .crew = *crew_,
        .providers = p_.providers,
        .fleet = p_.fleet,
        .domain = p_.domain,
        .pools = p_.pools,
        .budget = p_.budget,
        .gateway = p_.gateway,
        .callers = p_.callers,
        .load = p_.load,
        .chance = some_chance,
        .times = p_.times,
    };
    if (p_.mandate) {
        parts.term = jobs::Term{p_.mandate->domain, p_.mandate->epoch, p_.mandate->node};
        parts.may_act = p_.mandate->may_send;
    }
    keeper_.emplace(std::move(parts));
    return {};
}

Task<> KeptPools::recall() {
    co_await keeper_->recall();
}

void KeptPools::start() {
    keeper_->start();
}

Task<> KeptPools::end() {
    if (keeper_) {
        co_await keeper_->stop();
    }
    for (const auto& [name, provider] : p_.providers) {
        co_await provider->end();
    }
}

}  // namespace comfyd::fleet
