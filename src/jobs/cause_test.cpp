// The texts are those of ComfyUI, torch, CUDA and the libraries below them, as users reported them
// or as they were recorded.
#include "jobs/cause.hpp"

#include <gtest/gtest.h>

namespace comfyd::jobs {
namespace {

struct Told {
    const char* type;
    const char* message;
    Cause cause;
};
// Names the test: in letters that mean nothing to those who read the list of tests.
void PrintTo(const Told& told, std::ostream* out) {
    for (const char c : std::string(told.type) + " " + told.message) {
        const bool is_plain =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        *out << (is_plain ? c : '_');
    }
}

class Exceptions : public testing::TestWithParam<Told> {};

TEST_P(Exceptions, HaveTheirCause) {
    const Told& told = GetParam();
    EXPECT_EQ(to_string(cause_of_exception(told.type, told.message)), to_string(told.cause))
        << told.type << ": " << told.message;
}

constexpr Told kMemory[] = {
    {"torch.OutOfMemoryError",
     "Allocation on device 0 would exceed allowed memory. (out of memory)\nCurrently allocated     "
     ": 22.17 GiB\nRequested               : 2.00 GiB\n",
     Cause::out_of_memory},
    {"torch.OutOfMemoryError",
     "Allocation on device \nThis error means you ran out of memory on your GPU.\n\nTIPS: If the "
     "workflow worked before you might have accidentally set the batch_size to a large number.",
     Cause::out_of_memory},
    {"torch.cuda.OutOfMemoryError",
     "CUDA out of memory. Tried to allocate 4.50 GiB. GPU 0 has a total capacity of 23.69 GiB of "
     "which 1.12 GiB is free.",
     Cause::out_of_memory},
    {"torch.cuda.OutOfMemoryError",
     "HIP out of memory. Tried to allocate 20.00 MiB (GPU 0; 15.98 GiB total capacity; 14.01 GiB "
     "already allocated)",
     Cause::out_of_memory},
    {"torch.AcceleratorError",
     "CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported at some other "
     "API call",
     Cause::out_of_memory},
    {"RuntimeError",
     "MPS backend out of memory (MPS allocated: 17.82 GB, other allocations: 384.00 KB, max "
     "allowed: 18.13 GB). Tried to allocate 256.00 MB on private pool.",
     Cause::out_of_memory},
    {"RuntimeError",
     "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
     Cause::out_of_memory},
    {"RuntimeError",
     "Not enough memory, use lower resolution (max approx. 1216x1216). Need: 5.1GB free, "
     "Have:3.9GB free",
     Cause::out_of_memory},
    {"RuntimeError",
     "[enforce fail at alloc_cpu.cpp:117] err == 0. DefaultCPUAllocator: can't allocate memory: "
     "you tried to allocate 6442450944 bytes. Error code 12 (Cannot allocate memory)",
     Cause::out_of_memory},
    {"numpy.core._exceptions._ArrayMemoryError",
     "Unable to allocate 12.0 GiB for an array with shape (1024, 1024, 1024) and data type float32",
     Cause::out_of_memory},
    {"MemoryError", "", Cause::out_of_memory},
};
INSTANTIATE_TEST_SUITE_P(OutOfMemory, Exceptions, testing::ValuesIn(kMemory));

constexpr Told kFaults[] = {
    {"RuntimeError",
     "CUDA error: an illegal memory access was encountered\nCUDA kernel errors might be "
     "asynchronously reported at some other API call, so the stacktrace below might be incorrect.",
     Cause::cuda_fault},
    {"torch.AcceleratorError",
     "CUDA error: an illegal memory access was encountered",
     Cause::cuda_fault},
    {"RuntimeError",
     "CUDA error: device-side assert triggered\nCompile with `TORCH_USE_CUDA_DSA` to enable "
     "device-side assertions.",
     Cause::cuda_fault},
    {"RuntimeError", "CUDA error: unspecified launch failure", Cause::cuda_fault},
    {"RuntimeError", "CUDA error: misaligned address", Cause::cuda_fault},
    {"RuntimeError",
     "Triton Error [CUDA]: an illegal memory access was encountered",
     Cause::cuda_fault},
    {"RuntimeError", "CUDA error: uncorrectable ECC error encountered", Cause::cuda_fault},
    {"RuntimeError", "HIP error: unspecified launch failure", Cause::cuda_fault},
    {"RuntimeError",
     "Unable to determine the device handle for GPU0000:01:00.0: GPU is lost.  Reboot the system "
     "to recover this GPU",
     Cause::cuda_fault},
};
INSTANTIATE_TEST_SUITE_P(CudaFault, Exceptions, testing::ValuesIn(kFaults));

constexpr Told kWorkers[] = {
    {"RuntimeError",
     "CUDA error: no kernel image is available for execution on the device",
     Cause::worker_misconfigured},
    {"RuntimeError",
     "The NVIDIA driver on your system is too old. CUDA driver version is insufficient for CUDA "
     "runtime version",
     Cause::worker_misconfigured},
    {"AssertionError", "Torch not compiled with CUDA enabled", Cause::worker_misconfigured},
    {"NotImplementedError",
     "No operator found for `memory_efficient_attention_forward` with inputs:",
     Cause::worker_misconfigured},
    {"ValueError",
     "type fp8e4nv not supported in this architecture. The supported fp8 dtypes are ('fp8e4b15', "
     "'fp8e5')",
     Cause::worker_misconfigured},
    {"OSError",
     "[Errno 28] No space left on device: '/srv/comfyui/output/a.png'",
     Cause::worker_disk_full},
    {"RuntimeError", "basic_ios::clear: No space left on device", Cause::worker_disk_full},
};
INSTANTIATE_TEST_SUITE_P(Worker, Exceptions, testing::ValuesIn(kWorkers));

constexpr Told kModels[] = {
    {"safetensors_rust.SafetensorError",
     "Error while deserializing header: HeaderTooLarge",
     Cause::model_damaged},
    {"safetensors_rust.SafetensorError",
     "Error while deserializing header: MetadataIncompleteBuffer",
     Cause::model_damaged},
    {"RuntimeError",
     "ERROR: Could not detect model type of: /srv/comfyui/models/checkpoints/a.safetensors",
     Cause::model_damaged},
    {"RuntimeError",
     "PytorchStreamReader failed reading zip archive: failed finding central directory",
     Cause::model_damaged},
    {"_pickle.UnpicklingError", "invalid load key, '<'.", Cause::model_damaged},
    {"FileNotFoundError",
     "Model in folder 'checkpoints' with filename 'a.safetensors' not found.",
     Cause::model_missing},
    {"FileNotFoundError",
     "No such file or directory: \"/srv/comfyui/models/loras/b.safetensors\"",
     Cause::model_missing},
};
INSTANTIATE_TEST_SUITE_P(Model, Exceptions, testing::ValuesIn(kModels));

constexpr Told kNodes[] = {
    {"RuntimeError",
     "mat1 and mat2 shapes cannot be multiplied (154x2048 and 768x320)",
     Cause::node_error},
    {"RuntimeError",
     "ERROR: clip input is invalid: None\n\nIf the clip is from a checkpoint loader node your "
     "checkpoint does not contain a valid clip or text encoder model.",
     Cause::node_error},
    {"Exception", "Intentional sync execution error for testing\n", Cause::node_error},
    {"FileNotFoundError",
     "[Errno 2] No such file or directory: '/tmp/picture.png'",
     Cause::node_error},
    // Words of the prompt or of a node, not signs.
    {"KeyError", "'CUDA out of memory. Tried to allocate'", Cause::node_error},
    {"ValueError",
     "the prompt 'a gpu with a bad memory, invalid allocation' is too long",
     Cause::node_error},
    {"TypeError", "an illegal memory access was encountered", Cause::node_error},
    {"RuntimeError", "CUDA error: invalid argument", Cause::node_error},
    {"", "", Cause::node_error},
};
INSTANTIATE_TEST_SUITE_P(Node, Exceptions, testing::ValuesIn(kNodes));

TEST(Cause, ATextThatAClientWroteFarBelowDecidesNothing) {
    const std::string quoted =
        "cannot tokenize: " + std::string(5'000, 'a') + " an illegal memory access was encountered";
    EXPECT_EQ(cause_of_exception("ValueError", quoted), Cause::node_error);
}

TEST(Cause, EveryOneIsInTheTableOnce) {
    for (int i = 0; i < kCauses; ++i) {
        const auto cause = static_cast<Cause>(i);
        EXPECT_EQ(info(cause).cause, cause);
        EXPECT_EQ(parse_cause(to_string(cause)), cause);
    }
    EXPECT_FALSE(parse_cause("bad luck"));
}

Failure failure_of(Code code, json::object details = {}) {
    return Failure::from(Error(code, "so it is", std::move(details)));
}

TEST(Cause, FollowsFromTheCodeUnlessItIsNamed) {
    EXPECT_EQ(cause_of(failure_of(Code::worker_lost)), Cause::worker_lost);
    EXPECT_EQ(cause_of(failure_of(Code::worker_unavailable)), Cause::worker_refused);
    EXPECT_EQ(cause_of(failure_of(Code::execution_timeout)), Cause::timeout);
    EXPECT_EQ(cause_of(failure_of(Code::storage_full)), Cause::storage);
    EXPECT_EQ(cause_of(failure_of(Code::invalid_workflow)), Cause::validation);
    EXPECT_EQ(cause_of(failure_of(Code::protocol_error)), Cause::unknown);
    EXPECT_EQ(cause_of(failure_of(Code::worker_lost, {{"cause", "hung"}})), Cause::hung);
    EXPECT_EQ(cause_of(failure_of(Code::worker_lost, {{"cause", "else"}})), Cause::worker_lost);
}

json::object refusal_of(std::initializer_list<const char*> types) {
    json::array errors;
    for (const char* type : types) {
        errors.emplace_back(json::object{{"type", type}, {"message", "so it is"}});
    }
    return {{"node_errors", json::object{{"4", json::object{{"errors", errors}}}}}};
}

TEST(Cause, AWorkerThatLacksAModelIsToldFromOneThatRefusesTheWorkflow) {
    const auto of = [](json::object details) {
        return cause_of(failure_of(Code::worker_rejected, std::move(details)));
    };
    EXPECT_EQ(of(refusal_of({"value_not_in_list"})), Cause::model_missing);
    EXPECT_EQ(of(refusal_of({"value_not_in_list", "value_not_in_list"})), Cause::model_missing);
    EXPECT_EQ(of(refusal_of({"value_not_in_list", "required_input_missing"})), Cause::validation);
    EXPECT_EQ(of(refusal_of({})), Cause::validation);
    EXPECT_EQ(of({}), Cause::validation);
}

TEST(Cause, TheMemoryThatWasWantedIsReadFromTheText) {
    constexpr double kGiB = 1024.0 * 1024 * 1024;
    const auto gib = [](const char* text) {
        const auto wanted = memory_wanted(text);
        return wanted ? static_cast<double>(*wanted) / kGiB : -1;
    };
    EXPECT_NEAR(
        gib("CUDA out of memory. Tried to allocate 4.50 GiB. GPU 0 has a total capacity of "
            "23.69 GiB of which 1.19 GiB is free."),
        27.0,
        0.01
    );
    EXPECT_NEAR(
        gib("CUDA out of memory. Tried to allocate 512.00 MiB (GPU 0; 15.98 GiB total capacity; "
            "14.00 GiB already allocated; 0 bytes free)"),
        0.5,
        0.01
    );
    EXPECT_NEAR(
        gib("Allocation on device 0 would exceed allowed memory. (out of memory)\n"
            "Currently allocated     : 22.25 GiB\nRequested               : 2.00 GiB\n"),
        24.25,
        0.01
    );
    EXPECT_EQ(gib("Allocation on device "), -1);
    EXPECT_EQ(gib("Tried to allocate 99999999999999999999999 GiB"), -1);
    EXPECT_EQ(gib("Tried to allocate"), -1);
}

TEST(Cause, TheMachinesMemoryIsNotTheGpus) {
    EXPECT_TRUE(is_host_memory("MemoryError", ""));
    EXPECT_TRUE(is_host_memory("RuntimeError", "DefaultCPUAllocator: can't allocate memory"));
    EXPECT_FALSE(is_host_memory("torch.OutOfMemoryError", "Allocation on device "));
}

}  // namespace
}  // namespace comfyd::jobs
