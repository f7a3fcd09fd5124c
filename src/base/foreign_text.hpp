// Text that others wrote and that may quote what a prompt says: messages of workers and nodes. The
// log shows it, or where that is wished only how long it was. Any thread.
#pragma once

#include <string>
#include <string_view>

namespace comfyd::log {

// Called once at start-up.
void hide_foreign_text(bool hides);
std::string foreign(std::string_view text);

}  // namespace comfyd::log
