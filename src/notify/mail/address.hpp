// Mail addresses, in any script: as a person writes them, and as they go to a server. Pure; any
// thread.
#pragma once

#include <string>
#include <string_view>

#include "base/error.hpp"

namespace comfyd::notify::mail {

// local@domain with the domain in ASCII (xn--…), which every server takes. A local part in another
// script stays as it is. Code::invalid_argument, with the reason.
Result<std::string> address_for_servers(std::string_view address);
// Whether that works at all.
Result<> check_address(std::string_view address);

// Only a server that offers SMTPUTF8 takes it.
bool needs_utf8(std::string_view address);

}  // namespace comfyd::notify::mail
