// Programs of this computer by their names. Blocks shortly. Any thread.
#pragma once

#include <string>

namespace comfyd {

// The first executable file of that name in the folders of PATH; a path is itself. Empty: there is
// none.
std::string find_program(const std::string& name);

}  // namespace comfyd
