// What an OpenID provider says of itself (OpenID Connect Discovery). The operator has chosen it: it
// may be anywhere, but is asked by https, or on this machine.
#pragma once

#include <string>
#include <string_view>

#include "base/json.hpp"
#include "base/task.hpp"
#include "net/client.hpp"

namespace comfyd::auth::oidc {

// By https, or from this machine.
bool is_safe_address(std::string_view url);

// With its limits of size and time. Code::upstream_error for statuses from 500 on,
// Code::protocol_error for others than 200: it is there, and refuses.
Task<Result<net::ClientResponse>> ask(net::Client& client, net::ClientRequest request);
Task<Result<net::ClientResponse>> get(net::Client& client, std::string url);

// {issuer}/.well-known/openid-configuration, which must call itself by the same name.
Task<Result<json::object>> discover(net::Client& client, std::string issuer);
// Code::protocol_error: it has no such member.
Result<std::string> address_in(const json::object& about, const char* member);

}  // namespace comfyd::auth::oidc
