// What nodes ask a leader by name, and who answers it.
#pragma once

#include <cstdint>

#include "cluster/mail.hpp"
#include "jobs/leader.hpp"

namespace comfyd::cluster {

namespace question {

inline constexpr char kCancel[] = "cancel";
inline constexpr char kLive[] = "live";
inline constexpr char kExplain[] = "explain";
inline constexpr char kReadOutput[] = "read_output";
inline constexpr char kLoad[] = "load";
inline constexpr char kWorkers[] = "workers";
inline constexpr char kFreeMemory[] = "free_memory";

// Larger files of running jobs are not sent from node to node.
inline constexpr std::uint64_t kFileBytesMax = 4 * 1024 * 1024;

}  // namespace question

// Answers them for the domains that this node leads. Before mail.start(); `here` outlives it.
void answer_questions(Mail& mail, jobs::Leader& here);

}  // namespace comfyd::cluster
