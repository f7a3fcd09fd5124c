// For the tests of limits: a directory of some tenants, and a caller.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "auth/directory.hpp"

namespace comfyd::limits::test {

inline auth::DirectoryPtr directory_of(std::vector<auth::Tenant> tenants) {
    return std::make_shared<const auth::Directory>(
        std::vector<auth::ApiKey>(), tenants, auth::AllIdentities(), auth::Directory()
    );
}

inline auth::Tenant tenant(std::string name, json::object members) {
    auth::Tenant plain;
    plain.name = std::move(name);
    return plain.with(members).value();
}

inline auth::Caller caller(std::string name, std::string tier = {}) {
    auth::Caller made;
    made.tenant = std::move(name);
    made.tier = std::move(tier);
    return made;
}

}  // namespace comfyd::limits::test
