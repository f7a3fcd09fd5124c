#include "base/nvml.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/text.hpp"

namespace comfyd {
namespace {

constexpr unsigned kGpusMax = 64;
constexpr unsigned kProcessesMax = 4'096;
constexpr std::size_t kTextBytes = 96;     // what the library asks for at most
constexpr std::size_t kUuidBytesMax = 64;  // there are 40

// Its own declarations, as far as they are used: the numbers are part of its binary interface.
constexpr int kSuccess = 0;
constexpr int kInsufficientSize = 7;
constexpr auto kNotAvailable = static_cast<unsigned long long>(-1);

struct MemoryInfo {
    unsigned long long total;
    unsigned long long free;
    unsigned long long used;
};

struct ProcessInfo {  // of nvmlDeviceGetComputeRunningProcesses_v2 and _v3
    unsigned pid;
    unsigned long long used_memory;
    unsigned gpu_instance;
    unsigned compute_instance;
};

using Text = std::array<char, kTextBytes>;

std::string_view view_of(const Text& text) {
    return {text.data(), ::strnlen(text.data(), text.size())};
}

template <class Function>
bool find(void* handle, const char* name, Function& function) {
    function = reinterpret_cast<Function>(::dlsym(handle, name));
    return function != nullptr;
}

}  // namespace

struct Nvml::Functions {
    int (*init)() = nullptr;
    int (*shutdown)() = nullptr;
    int (*count)(unsigned*) = nullptr;
    int (*device)(unsigned, void**) = nullptr;
    int (*uuid)(void*, char*, unsigned) = nullptr;
    int (*name)(void*, char*, unsigned) = nullptr;
    int (*memory)(void*, void*) = nullptr;                // a MemoryInfo
    int (*processes)(void*, unsigned*, void*) = nullptr;  // ProcessInfos; nullptr: an old driver
    const char* (*error)(int) = nullptr;                  // likewise

    bool load(void* handle) {
        find(handle, "nvmlErrorString", error);
        if (!find(handle, "nvmlDeviceGetComputeRunningProcesses_v3", processes)) {
            find(handle, "nvmlDeviceGetComputeRunningProcesses_v2", processes);
        }
        return find(handle, "nvmlInit_v2", init) && find(handle, "nvmlShutdown", shutdown) &&
               find(handle, "nvmlDeviceGetCount_v2", count) &&
               find(handle, "nvmlDeviceGetHandleByIndex_v2", device) &&
               find(handle, "nvmlDeviceGetUUID", uuid) && find(handle, "nvmlDeviceGetName", name) &&
               find(handle, "nvmlDeviceGetMemoryInfo", memory);
    }

    Error failure(const char* what, int code) const {
        const char* words = error == nullptr ? nullptr : error(code);
        return Error(
            Code::upstream_error,
            "NVML " + std::string(what) + ": " +
                (words == nullptr ? "error " + std::to_string(code) : clean_gpu_name(words))
        );
    }
};

std::string clean_gpu_uuid(std::string_view text) {
    text = trim(text);
    const auto is_plain = [](char c) {
        return (c >= '0' && c <= '9') || (lower(c) >= 'a' && lower(c) <= 'z') || c == '-';
    };
    return text.starts_with("GPU-") && text.size() <= kUuidBytesMax &&
                   std::ranges::all_of(text, is_plain)
               ? std::string(text)
               : std::string();
}

std::string clean_gpu_name(std::string_view text) {
    std::string name(trim(text.substr(0, kTextBytes)));
    std::ranges::replace_if(name, [](char c) { return c < ' ' || c > '~'; }, '?');
    return name;
}

Nvml::Nvml(void* handle, std::unique_ptr<Functions> functions)
    : handle_(handle), functions_(std::move(functions)) {}

Nvml::~Nvml() {
    functions_->shutdown();
    ::dlclose(handle_);
}

Result<std::unique_ptr<Nvml>> Nvml::open(const std::string& library) {
    void* handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
        return fail(Code::not_found, "there is no library " + library);
    }
    auto functions = std::make_unique<Functions>();
    if (!functions->load(handle)) {
        ::dlclose(handle);
        return fail(Code::not_found, "the library " + library + " is not NVML");
    }
    if (const int code = functions->init(); code != kSuccess) {
        Error failure = functions->failure("finds no driver", code);
        ::dlclose(handle);
        return fail(std::move(failure));
    }
    return std::unique_ptr<Nvml>(new Nvml(handle, std::move(functions)));
}

Result<std::vector<Gpu>> Nvml::look() const {
    unsigned count = 0;
    if (const int code = functions_->count(&count); code != kSuccess) {
        return fail(functions_->failure("counts no GPUs", code));
    }
    std::vector<Gpu> gpus;
    for (unsigned at = 0; at < std::min(count, kGpusMax); ++at) {
        void* device = nullptr;
        if (functions_->device(at, &device) != kSuccess || device == nullptr) {
            continue;
        }
        Gpu gpu = read(device);
        if (!gpu.uuid.empty()) {
            gpus.push_back(std::move(gpu));
        }
    }
    return gpus;
}

Gpu Nvml::read(void* device) const {
    Gpu gpu;
    Text text{};
    if (functions_->uuid(device, text.data(), static_cast<unsigned>(text.size())) == kSuccess) {
        gpu.uuid = clean_gpu_uuid(view_of(text));
    }
    text = {};
    if (functions_->name(device, text.data(), static_cast<unsigned>(text.size())) == kSuccess) {
        gpu.name = clean_gpu_name(view_of(text));
    }
    // What the driver keeps for itself counts as used here, which is right for who asks what fits.
    MemoryInfo memory{};
    if (functions_->memory(device, &memory) == kSuccess) {
        gpu.memory_total_bytes = memory.total;
        gpu.memory_free_bytes = std::min(memory.free, memory.total);
    }
    gpu.processes = processes(device);
    return gpu;
}

std::vector<GpuProcess> Nvml::processes(void* device) const {
    std::vector<GpuProcess> found;
    if (functions_->processes == nullptr) {
        return found;
    }
    std::vector<ProcessInfo> infos(64);
    auto count = static_cast<unsigned>(infos.size());
    int code = functions_->processes(device, &count, infos.data());
    if (code == kInsufficientSize) {
        infos.resize(std::min(count, kProcessesMax - 16) + 16);  // more may have come meanwhile
        count = static_cast<unsigned>(infos.size());
        code = functions_->processes(device, &count, infos.data());
    }
    if (code != kSuccess) {
        return found;
    }
    infos.resize(std::min<std::size_t>(count, infos.size()));
    for (const ProcessInfo& info : infos) {
        const auto memory = info.used_memory == kNotAvailable
                                ? std::nullopt
                                : std::optional<std::uint64_t>(info.used_memory);
        found.push_back({static_cast<pid_t>(info.pid), memory});
    }
    return found;
}

}  // namespace comfyd
