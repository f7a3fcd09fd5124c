#include "base/nvidia_smi.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <utility>

#include "base/filter_process.hpp"
#include "base/find_program.hpp"
#include "base/nvml.hpp"
#include "base/text.hpp"

namespace comfyd {
namespace {

constexpr std::size_t kOutputBytesMax = 1'000'000;
constexpr std::size_t kGpusMax = 64;
constexpr std::size_t kProcessesMax = 4'096;
constexpr std::uint64_t kMebibyte = 1024 * 1024;

// Up to the next `end`, which is taken away with it.
std::string_view take(std::string_view& text, char end) {
    const auto at = text.find(end);
    const std::string_view taken = text.substr(0, at);
    text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
    return trim(taken, " \t\r");
}

template <class Number>
std::optional<Number> number_in(std::string_view text) {
    Number number{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc() && end == text.data() + text.size() ? std::optional(number)
                                                                    : std::nullopt;
}

// nullopt: "[N/A]" and what else is no number.
std::optional<std::uint64_t> bytes_in(std::string_view mebibytes) {
    constexpr std::uint64_t kMost = 1ULL << 40;
    const auto count = number_in<std::uint64_t>(mebibytes);
    return count && *count < kMost ? std::optional(*count * kMebibyte) : std::nullopt;
}

Result<std::string> ask(const std::string& program, const char* query, Millis time_max) {
    ChildCommand command{"nvidia-smi", program, {query, "--format=csv,noheader,nounits"}};
    for (const char* name : {"PATH", "LD_LIBRARY_PATH"}) {
        if (const char* value = std::getenv(name)) {
            command.environment.push_back(std::string(name) + "=" + value);
        }
    }
    return run_filter(command, "", {time_max, kOutputBytesMax});
}

}  // namespace

Result<std::vector<Gpu>> parse_smi_gpus(std::string_view lines) {
    std::vector<Gpu> gpus;
    const bool is_empty = trim(lines, " \t\r\n").empty();
    while (!lines.empty() && gpus.size() < kGpusMax) {
        std::string_view line = take(lines, '\n');
        Gpu gpu;
        gpu.uuid = clean_gpu_uuid(take(line, ','));
        gpu.memory_total_bytes = bytes_in(take(line, ',')).value_or(0);
        gpu.memory_free_bytes =
            std::min(bytes_in(take(line, ',')).value_or(0), gpu.memory_total_bytes);
        gpu.name = clean_gpu_name(line);
        if (!gpu.uuid.empty()) {
            gpus.push_back(std::move(gpu));
        }
    }
    if (gpus.empty() && !is_empty) {
        return fail(Code::protocol_error, "nvidia-smi tells no GPUs in a form that is known");
    }
    return gpus;
}

void parse_smi_processes(std::string_view lines, std::vector<Gpu>& gpus) {
    for (std::size_t count = 0; !lines.empty() && count < kProcessesMax; ++count) {
        std::string_view line = take(lines, '\n');
        const std::string_view uuid = take(line, ',');
        const auto pid = number_in<pid_t>(take(line, ','));
        const auto memory = bytes_in(trim(line, " \t\r"));
        const auto gpu = std::ranges::find(gpus, uuid, &Gpu::uuid);
        if (gpu != gpus.end() && pid && *pid > 0) {
            gpu->processes.push_back({*pid, memory});
        }
    }
}

Result<std::vector<Gpu>> ask_nvidia_smi(const std::string& program, Millis time_max) {
    const std::string path = find_program(program);
    if (path.empty()) {
        return fail(Code::not_found, "there is no program " + program);
    }
    const auto told = ask(path, "--query-gpu=uuid,memory.total,memory.free,name", time_max);
    if (!told) {
        return fail(told.error());
    }
    auto gpus = parse_smi_gpus(*told);
    if (!gpus || gpus->empty()) {
        return gpus;
    }
    // Without who uses them they are still there.
    if (const auto used = ask(path, "--query-compute-apps=gpu_uuid,pid,used_memory", time_max)) {
        parse_smi_processes(*used, *gpus);
    }
    return gpus;
}

}  // namespace comfyd
