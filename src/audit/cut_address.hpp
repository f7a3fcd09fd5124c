#pragma once

#include <string>

namespace comfyd::audit {

// "192.0.2.7" -> "192.0.2.0/24", "2001:db8:1:2::3" -> "2001:db8:1::/48"; what is no address stays.
std::string cut_address(const std::string& address);

}  // namespace comfyd::audit
