// The system calls of programs that are not ours. Inside this room only.
#pragma once

#include "base/sandbox.hpp"

namespace comfyd {

// For this process and what it starts; there is no way back. An errno, or 0.
int restrict_program(SandboxNetwork network);

}  // namespace comfyd
