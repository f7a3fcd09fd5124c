// What a browser shows for a session: a name by which it is found, a dot, and 256 bits that nobody
// else has. Only the hash of it is stored. Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace comfyd::auth {

std::string make_browser_token();
// The name in it; nullopt: it is not of the form.
std::optional<std::string> id_of_browser_token(std::string_view token);

// 256 bits as text of an address.
std::string make_secret_text();

}  // namespace comfyd::auth
