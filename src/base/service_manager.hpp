// What systemd is told of this process (Type=notify): that it serves, and that it is stopping.
#pragma once

#include <string_view>

namespace comfyd {

// "READY=1", "STOPPING=1", … (sd_notify). Nothing happens where nobody waits for it. Written by
// hand: one datagram, for which a library would have to be on every machine.
void tell_service_manager(std::string_view state);

}  // namespace comfyd
