// A driver library of GPUs that are not there: what it tells is in the file that COMFYD_FAKE_GPUS
// names, one GPU in a line: "uuid|name|total|free|pid:bytes pid:bytes". Lines "init N", "count N"
// make it fail or exaggerate, "hang FILE" makes it wait until the file is there.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace {

struct Process {
    unsigned pid;
    unsigned long long bytes;
    unsigned instances[2];
};

struct Device {
    std::string uuid, name;
    unsigned long long total = 0, free = 0;
    std::vector<Process> processes;
};

struct Memory {
    unsigned long long total, free, used;
};

struct Told {
    int init = 0;
    unsigned count = 0;
    std::string hang;
    std::vector<Device> devices;
};

Told& told() {
    static Told told;
    return told;
}

void read() {
    Told now;
    const char* path = std::getenv("COMFYD_FAKE_GPUS");
    std::ifstream file(path == nullptr ? "" : path);
    for (std::string line; std::getline(file, line);) {
        std::istringstream words(line);
        std::string first;
        words >> first;
        if (first == "init") {
            words >> now.init;
        } else if (first == "count") {
            words >> now.count;
        } else if (first == "hang") {
            words >> now.hang;
        } else {
            std::istringstream fields(line);
            Device device;
            std::string total, free, processes;
            std::getline(fields, device.uuid, '|');
            std::getline(fields, device.name, '|');
            std::getline(fields, total, '|');
            std::getline(fields, free, '|');
            std::getline(fields, processes, '|');
            device.total = std::strtoull(total.c_str(), nullptr, 10);
            device.free = std::strtoull(free.c_str(), nullptr, 10);
            std::istringstream each(processes);
            for (std::string process; each >> process;) {
                const auto colon = process.find(':');
                device.processes.push_back(
                    {static_cast<unsigned>(std::strtoul(process.c_str(), nullptr, 10)),
                     process.substr(colon + 1) == "?"
                         ? ~0ULL
                         : std::strtoull(process.c_str() + colon + 1, nullptr, 10),
                     {0, 0}}
                );
            }
            now.devices.push_back(device);
        }
    }
    told() = now;
}

Device& device(void* handle) {
    return told().devices[reinterpret_cast<std::size_t>(handle) - 1];
}

// As a library that does not end its texts.
int copy(const std::string& from, char* into, unsigned size) {
    std::memset(into, 'x', size);
    std::memcpy(into, from.data(), std::min<std::size_t>(from.size(), size));
    if (from.size() < size) {
        into[from.size()] = '\0';
    }
    return 0;
}

}  // namespace

extern "C" {

int nvmlInit_v2() {
    read();
    return told().init;
}
int nvmlShutdown() {
    return 0;
}
const char* nvmlErrorString(int code) {
    return code == 9 ? "Driver Not Loaded" : nullptr;
}
int nvmlDeviceGetCount_v2(unsigned* count) {
    read();
    while (!told().hang.empty() && ::access(told().hang.c_str(), F_OK) != 0) {
        ::usleep(1'000);
    }
    *count = told().count != 0 ? told().count : static_cast<unsigned>(told().devices.size());
    return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** handle) {
    if (index >= told().devices.size()) {
        return 2;
    }
    *handle = reinterpret_cast<void*>(static_cast<std::size_t>(index) + 1);
    return 0;
}
int nvmlDeviceGetUUID(void* handle, char* into, unsigned size) {
    return copy(device(handle).uuid, into, size);
}
int nvmlDeviceGetName(void* handle, char* into, unsigned size) {
    return copy(device(handle).name, into, size);
}
int nvmlDeviceGetMemoryInfo(void* handle, void* memory) {
    const Device& of = device(handle);
    *static_cast<Memory*>(memory) = {of.total, of.free, of.total - of.free};
    return of.total == 0 ? 3 : 0;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void* handle, unsigned* count, void* into) {
    const auto& processes = device(handle).processes;
    const unsigned room = *count;
    *count = static_cast<unsigned>(processes.size());
    if (room < *count) {
        return 7;
    }
    std::copy(processes.begin(), processes.end(), static_cast<Process*>(into));
    return 0;
}
}
