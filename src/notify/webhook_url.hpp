// Which addresses webhooks may be sent to.
#pragma once

#include <string>

#include "base/error.hpp"

namespace comfyd::notify {

// Whether a webhook URL may be used at all: http(s), no user info, and no literal private address
// unless allowed.
Result<> check_webhook_url(const std::string& url, bool allow_private_addresses);

}  // namespace comfyd::notify
