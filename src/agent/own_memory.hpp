// What the agent's process takes of the memory that is there for ComfyUI.
#pragma once

namespace comfyd::agent {

// Pages of code that only the start needed, of this program and of the libraries that come with it,
// are no longer this process's. They are never changed, so what is needed after all is read again
// from the file, mostly from the system's cache. Any thread.
void give_back_code();

}  // namespace comfyd::agent
