// Whose an API key is, of those that a directory has. One hash was made of it; nothing is written
// but, once a minute, when the key was used. Any thread.
#pragma once

#include <optional>
#include <string_view>

#include "auth/directory.hpp"

namespace comfyd::auth {

// `id`: the public part of a key that was made at run time. Code::unauthorized: it is unknown,
// revoked or has expired; Code::forbidden: its tenant is disabled. A key of the configuration has
// all scopes of its tenant; an operator's has all there are.
Result<Caller> caller_of_key(
    const Directory& directory, std::optional<std::string_view> id, const Digest& sha256, Time now
);

// Code::forbidden when it is disabled.
Result<> check_tenant_is_enabled(const Directory& directory, const std::string& tenant);

}  // namespace comfyd::auth
