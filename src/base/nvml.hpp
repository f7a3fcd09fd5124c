// The NVIDIA driver's library for those who watch GPUs, found when the program runs: neither its
// headers nor the library are needed to build or to start. One thread at a time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/gpus.hpp"

namespace comfyd {

class Nvml {
public:
    // Code::not_found: there is no such library, or it is none. Code::upstream_error: it finds no
    // driver, in its words.
    static Result<std::unique_ptr<Nvml>> open(const std::string& library);
    ~Nvml();
    Nvml(const Nvml&) = delete;
    Nvml& operator=(const Nvml&) = delete;

    // Without those that do not answer. Code::upstream_error.
    Result<std::vector<Gpu>> look() const;

private:
    struct Functions;
    Nvml(void* handle, std::unique_ptr<Functions> functions);
    Gpu read(void* device) const;
    std::vector<GpuProcess> processes(void* device) const;

    void* handle_;
    std::unique_ptr<Functions> functions_;
};

// What others than the driver may have put there is refused or cut: of a UUID nothing but what can
// stand in an environment, of a name what can be read. Empty: it is none.
std::string clean_gpu_uuid(std::string_view text);
std::string clean_gpu_name(std::string_view text);

}  // namespace comfyd
