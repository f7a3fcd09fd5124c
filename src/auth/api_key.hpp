// The form of the API keys that comfyd makes: "ck_live_", eight letters and digits by which one is
// found, 32 that are secret, and six that let a typing error or a false hit of a scanner be seen
// without asking anybody. Scanners find them by \bck_live_[0-9A-Za-z]{46}\b. Pure; any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace comfyd::auth {

inline constexpr std::size_t kKeyIdSize = 8;

// One that nobody has.
std::string make_key_id();
// A new key of this id; its secret part comes from nowhere else.
std::string make_key(std::string_view id);
// nullopt: it is not of the form, or has a slip in it.
std::optional<std::string_view> id_of_key(std::string_view key);
bool is_key_id(std::string_view text);

}  // namespace comfyd::auth
