// Which content is safe to show in a page of this server. Pure; any thread.
#pragma once

#include <string_view>

namespace comfyd::net {

// Types that a browser would run in our origin: they are only ever downloaded.
bool is_active_type(std::string_view content_type);

}  // namespace comfyd::net
