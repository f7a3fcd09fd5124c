// The end of a log that another program writes. Blocks: for a pool. Any thread.
#pragma once

#include <filesystem>
#include <string>

namespace comfyd::fleet {

// At most so many lines, and not more than 1 MB of them; what cannot be read as text is replaced.
// Empty where there is no such file.
std::string last_lines(const std::filesystem::path& log, int lines);
// Without its end, and cut where it is long.
std::string last_line(const std::filesystem::path& log);

}  // namespace comfyd::fleet
