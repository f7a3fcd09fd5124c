// Which server a command talks to, and with which key. Pure but for the environment.
#pragma once

#include <string>

namespace comfyd::app {

// What is empty comes from COMFYD_URL and COMFYD_KEY; the server is this machine's own when nobody
// says. Without slashes at the end of the address.
void complete_address(std::string& url, std::string& key);

}  // namespace comfyd::app
