// What the program nvidia-smi tells of GPUs, for computers whose driver library is not to be had.
// Blocks: for a pool.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/gpus.hpp"

namespace comfyd {

// Code::not_found: there is no such program. Otherwise as run_filter(), and Code::protocol_error:
// what it says is no list of GPUs.
Result<std::vector<Gpu>> ask_nvidia_smi(const std::string& program, Millis time_max);

// Its lines "uuid, total MiB, free MiB, name". Pure.
Result<std::vector<Gpu>> parse_smi_gpus(std::string_view lines);
// Its lines "gpu uuid, pid, used MiB": added to those GPUs that are there. Pure.
void parse_smi_processes(std::string_view lines, std::vector<Gpu>& gpus);

}  // namespace comfyd
