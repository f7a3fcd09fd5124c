// What the configuration means for the parts of the program: their options, as far as they follow
// from it alone. Pure.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "admission/desk.hpp"
#include "api/services.hpp"
#include "app/config/config.hpp"
#include "assets/breaker_store.hpp"
#include "assets/store.hpp"
#include "auth/directory.hpp"
#include "auth/jwt/tokens.hpp"
#include "auth/oidc/code_flow.hpp"
#include "auth/session_cookies.hpp"
#include "bulk/keeper.hpp"
#include "fleet/fleet.hpp"
#include "jobs/service.hpp"
#include "notify/channels.hpp"
#include "notify/notifier.hpp"

namespace comfyd::app {

// How long a job is kept from its end on.
Millis kept_for(const Config& config);

// By which ledger::open_storage() finds what is durable.
std::string ledger_url(const Config& config);
assets::StoreOptions store_options(const Config& config);
// Those of the configuration, not opened yet. Code::config_invalid. Both outlive them.
Result<assets::BlobStores> make_stores(const Config& config, Clock& clock, Pool& pool);
// The same; those elsewhere are left alone while they are away.
struct WatchedStores {
    assets::BlobStores all;
    std::vector<const assets::BreakerStore*> elsewhere;  // among them
};
Result<WatchedStores> make_watched_stores(const Config& config, Clock& clock, Pool& pool);

fleet::WorkerConfig worker_config(const Config& config, const WorkerSetting& worker);
// As whom comfyd connects to workers that speak TLS. Code::config_invalid.
Result<std::vector<net::ClientIdentity>> worker_identities(const Config& config);
fleet::FleetOptions fleet_options(const Config& config, const fleet::TenantFolders& folders);
jobs::ServiceOptions service_options(const Config& config);
notify::ChannelOptions channel_options(const Config& config);
notify::NotifierOptions notifier_options(const Config& config);
bulk::KeeperOptions keeper_options(const Config& config);
admission::Rules admission_rules(const Config& config);
api::ApiOptions api_options(const Config& config);
// What holds for the tenants that there are.
admission::TenantTable::Rules tenant_rules(const Config& config, const auth::Directory& directory);
auth::Tokens::Options token_options(const Config& config);
// How browsers keep their sessions. nullopt: over plain HTTP to other machines none may be had.
std::optional<auth::SessionCookies::Options> cookie_options(const Config& config);
auth::oidc::CodeFlow::Options code_flow_options(const Config& config);

}  // namespace comfyd::app
