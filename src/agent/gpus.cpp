#include "agent/gpus.hpp"

#include <dlfcn.h>
#include <stdio.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace comfyd::agent {
namespace {

constexpr unsigned kGpusMax = 64;
constexpr unsigned kProcessesMax = 256;

std::string_view trim(std::string_view text) {
    const auto first = std::min(text.find_first_not_of(" \t\r"), text.size());
    text.remove_prefix(first);
    return text.substr(0, text.find_last_not_of(" \t\r") + 1);
}

std::vector<std::string_view> split(std::string_view text, char mark) {
    std::vector<std::string_view> parts;
    while (true) {
        const auto end = std::min(text.find(mark), text.size());
        parts.push_back(trim(text.substr(0, end)));
        if (end == text.size()) {
            return parts;
        }
        text.remove_prefix(end + 1);
    }
}

template <class Number>
bool read_number(std::string_view text, Number& into) {
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), into);
    return parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
}

std::string output_of(const char* command) {
    constexpr std::size_t kBytesMax = 64 * 1024;
    std::string text;
    const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command, "re"), ::pclose);
    std::array<char, 4096> room{};
    std::size_t count = 1;
    while (pipe && count > 0 && text.size() < kBytesMax) {
        count = ::fread(room.data(), 1, room.size(), pipe.get());
        text.append(room.data(), count);
    }
    return text;
}

}  // namespace

// The few calls of NVML that are needed, as its header declares them: it is not there to build with
// on most machines, nor to run with on those without a GPU.
class GpuMeter::Library {
public:
    static std::unique_ptr<Library> open() {
        void* handle = ::dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL);
        if (handle == nullptr) {
            return nullptr;
        }
        std::unique_ptr<Library> library(new Library(handle));
        return library->is_usable_ ? std::move(library) : nullptr;
    }
    ~Library() {
        if (is_usable_) {
            shutdown_();
        }
        ::dlclose(handle_);
    }
    Library(const Library&) = delete;
    Library& operator=(const Library&) = delete;

    std::vector<Gpu> read() const {
        std::vector<Gpu> gpus;
        unsigned count = 0;
        if (count_(&count) != kSuccess) {
            return gpus;
        }
        for (unsigned index = 0; index < std::min(count, kGpusMax); ++index) {
            void* device = nullptr;
            Memory memory{};
            if (device_(index, &device) != kSuccess || memory_(device, &memory) != kSuccess) {
                continue;
            }
            Gpu gpu;
            gpu.index = static_cast<int>(index);
            gpu.uuid = text_of(uuid_, device);
            gpu.name = text_of(name_, device);
            gpu.memory_total = memory.total;
            gpu.memory_free = memory.free;
            gpu.processes = processes_of(device);
            gpus.push_back(std::move(gpu));
        }
        return gpus;
    }

private:
    static constexpr int kSuccess = 0;
    struct Memory {
        unsigned long long total, free, used;
    };
    struct Process {
        unsigned pid;
        unsigned long long bytes;
        unsigned gpu_instance, compute_instance;
    };
    using Text = int (*)(void*, char*, unsigned);

    explicit Library(void* handle) : handle_(handle) {
        int (*init)() = nullptr;
        is_usable_ = find("nvmlInit_v2", init) && find("nvmlShutdown", shutdown_) &&
                     find("nvmlDeviceGetCount_v2", count_) &&
                     find("nvmlDeviceGetHandleByIndex_v2", device_) &&
                     find("nvmlDeviceGetMemoryInfo", memory_) && find("nvmlDeviceGetUUID", uuid_) &&
                     find("nvmlDeviceGetName", name_) && init() == kSuccess;
        find("nvmlDeviceGetComputeRunningProcesses_v3", processes_);
    }

    template <class Function>
    bool find(const char* name, Function& into) {
        into = reinterpret_cast<Function>(::dlsym(handle_, name));
        return into != nullptr;
    }

    static std::string text_of(Text call, void* device) {
        std::array<char, 128> text{};
        return call(device, text.data(), text.size() - 1) == kSuccess ? text.data() : "";
    }

    std::vector<GpuProcess> processes_of(void* device) const {
        std::vector<GpuProcess> found;
        std::array<Process, kProcessesMax> processes{};
        unsigned count = kProcessesMax;
        if (processes_ == nullptr || processes_(device, &count, processes.data()) != kSuccess) {
            return found;
        }
        for (unsigned i = 0; i < std::min(count, kProcessesMax); ++i) {
            constexpr unsigned long long kUnknown = ~0ULL;
            const auto bytes = processes[i].bytes == kUnknown ? 0 : processes[i].bytes;
            found.push_back({static_cast<pid_t>(processes[i].pid), bytes});
        }
        return found;
    }

    void* handle_;
    bool is_usable_ = false;
    int (*shutdown_)() = nullptr;
    int (*count_)(unsigned*) = nullptr;
    int (*device_)(unsigned, void**) = nullptr;
    int (*memory_)(void*, Memory*) = nullptr;
    Text uuid_ = nullptr;
    Text name_ = nullptr;
    int (*processes_)(void*, unsigned*, Process*) = nullptr;
};

GpuMeter::GpuMeter(std::string visible) : visible_(std::move(visible)), library_(Library::open()) {}
GpuMeter::~GpuMeter() = default;

std::vector<Gpu> GpuMeter::read() {
    std::vector<Gpu> gpus;
    if (library_) {
        gpus = library_->read();
    } else if (has_program_) {
        // A driver that is stuck holds it for ever; and what is secret is not its business.
        constexpr const char* kCommand =
            "timeout 10 env -u COMFYD_WORKER_TOKEN nvidia-smi "
            "--query-gpu=index,uuid,name,memory.total,memory.used "
            "--format=csv,noheader,nounits 2>/dev/null";
        gpus = parse_smi(output_of(kCommand));
        has_program_ = !gpus.empty();
    }
    return only_visible(std::move(gpus), visible_);
}

std::vector<Gpu> parse_smi(std::string_view text) {
    constexpr std::size_t kFields = 5;
    std::vector<Gpu> gpus;
    for (const std::string_view line : split(text, '\n')) {
        const auto fields = split(line, ',');
        Gpu gpu;
        std::uint64_t total_mb = 0;
        std::uint64_t used_mb = 0;
        const bool is_gpu = fields.size() == kFields && read_number(fields[0], gpu.index) &&
                            read_number(fields[3], total_mb) && read_number(fields[4], used_mb);
        if (is_gpu && gpus.size() < kGpusMax) {
            gpu.uuid = fields[1];
            gpu.name = fields[2];
            gpu.memory_total = total_mb << 20;
            gpu.memory_free = (total_mb - std::min(used_mb, total_mb)) << 20;
            gpus.push_back(std::move(gpu));
        }
    }
    return gpus;
}

std::vector<Gpu> only_visible(std::vector<Gpu> gpus, std::string_view visible) {
    if (trim(visible).empty()) {
        return gpus;
    }
    const auto named = split(visible, ',');
    std::erase_if(gpus, [&](const Gpu& gpu) {
        return std::ranges::none_of(named, [&](std::string_view name) {
            int index = -1;
            return read_number(name, index) ? index == gpu.index
                                            : !name.empty() && gpu.uuid.starts_with(name);
        });
    });
    return gpus;
}

json::object to_json(const Gpu& gpu) {
    json::array processes;
    for (const GpuProcess& process : gpu.processes) {
        processes.push_back(json::object{{"pid", process.pid}, {"memory_bytes", process.bytes}});
    }
    json::object shown;
    shown["uuid"] = gpu.uuid;
    shown["name"] = gpu.name;
    shown["memory_total_bytes"] = gpu.memory_total;
    shown["memory_free_bytes"] = gpu.memory_free;
    shown["processes"] = std::move(processes);
    return shown;
}

}  // namespace comfyd::agent
