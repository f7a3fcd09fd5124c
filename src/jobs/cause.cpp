#include "jobs/cause.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>

#include "base/assert.hpp"
#include "base/text.hpp"

namespace comfyd::jobs {
namespace {

using enum Category;

constexpr auto kNever = std::nullopt;
// As many as the job has attempts.
constexpr int kAll = 100;

// In the order of the enum; the unit test checks that. Categories, actions and waits are those that
// clients of the execution API were promised.
constexpr std::array kInfos{
    // clang-format off
    //                                                                                                                       retries  down   worker  ran
    CauseInfo{Cause::validation, "validation", validation_error, "validate_workflow_structure", kNever,                      0,       false, false, false},
    CauseInfo{Cause::node_error, "node_error", execution_error, "check_the_failing_node", kNever,                            0,       false, false, true},
    CauseInfo{Cause::out_of_memory, "out_of_memory", resource_error, "reduce_batch_size_or_model_size", 60,                  1,       false, false, true},
    CauseInfo{Cause::cuda_fault, "cuda_fault", system_error, "contact_support", 300,                                         1,       true,  true,  true},
    CauseInfo{Cause::hung, "hung", system_error, "contact_support", 300,                                                     1,       true,  true,  true},
    CauseInfo{Cause::worker_lost, "worker_lost", system_error, "retry_later", 5,                                             kAll,    true,  true,  true},
    CauseInfo{Cause::worker_refused, "worker_refused", resource_error, "retry_later", 60,                                    kAll,    false, true,  false},
    CauseInfo{Cause::worker_misconfigured, "worker_misconfigured", system_error, "contact_support", 300,                     1,       false, false, true},
    CauseInfo{Cause::worker_disk_full, "worker_disk_full", system_error, "contact_support", 300,                             2,       false, false, true},
    CauseInfo{Cause::model_missing, "model_missing", validation_error, "check_model_availability", kNever,                   1,       false, false, false},
    CauseInfo{Cause::model_damaged, "model_damaged", validation_error, "check_model_availability", kNever,                   1,       false, false, true},
    CauseInfo{Cause::model_unavailable, "model_unavailable", resource_error, "check_model_availability", 120,               0,       false, false, false},
    CauseInfo{Cause::interrupted, "interrupted", execution_error, "retry_later", 5,                                          1,       false, false, true},
    CauseInfo{Cause::timeout, "timeout", timeout_error, "increase_timeout_or_simplify_workflow", 120,                        1,       false, false, true},
    CauseInfo{Cause::storage, "storage", system_error, "retry_later", 60,                                                    kAll,    false, false, true},
    CauseInfo{Cause::poison, "poison", system_error, "contact_support", kNever,                                              0,       true,  false, true},
    CauseInfo{Cause::unknown, "unknown", system_error, "contact_support", 300,                                               1,       false, false, true},
    // clang-format on
};

bool contains(std::string_view text, std::string_view what) {
    return text.find(what) != std::string_view::npos;
}

template <std::size_t Count>
bool contains_any(std::string_view text, const std::array<std::string_view, Count>& signs) {
    return std::ranges::any_of(signs, [text](std::string_view sign) {
        return contains(text, sign);
    });
}

// Phrases of torch, CUDA, ComfyUI and the libraries below them, in lower case. Each is long enough
// to mean one thing only.
constexpr std::array<std::string_view, 12> kOutOfMemory{
    "out of memory. tried to allocate",  // CUDA, HIP
    "allocation on device",
    "backend out of memory",  // MPS
    "cuda error: out of memory",
    "hip error: out of memory",
    "hiperroroutofmemory",
    "cublas_status_alloc_failed",
    "not enough memory, use lower resolution",
    "defaultcpuallocator: can't allocate memory",
    "defaultcpuallocator: not enough memory",
    "unable to allocate",  // numpy
    "cannot allocate memory",
};
constexpr std::array<std::string_view, 15> kCudaFault{
    "an illegal memory access was encountered",
    "illegal memory access",
    "device-side assert triggered",
    "unspecified launch failure",
    "misaligned address",
    "an illegal instruction was encountered",
    "invalid program counter",
    "hardware stack error",
    "operation not supported on global/shared address space",
    "the launch timed out and was terminated",
    "triton error [cuda]",
    "uncorrectable ecc error",
    "gpu is lost",
    "fallen off the bus",
    "cudnn_status_execution_failed",
};
constexpr std::array<std::string_view, 7> kMisconfigured{
    "no kernel image is available",
    "cuda driver version is insufficient",
    "torch not compiled with cuda enabled",
    "no operator found for `memory_efficient_attention",
    "fp8e4nv not supported",
    "found no nvidia driver on your system",
    "is not compatible with the current pytorch installation",
};
constexpr std::array<std::string_view, 6> kModelDamaged{
    "error while deserializing header",
    "could not detect model type of",
    "pytorchstreamreader failed",
    "headertoolarge",
    "metadataincompletebuffer",
    "invalid load key",  // of pickle
};
constexpr std::array<std::string_view, 2> kDiskFull{"no space left on device", "[errno 28]"};

// A file of weights by its name.
bool names_model_file(std::string_view text) {
    constexpr std::array<std::string_view, 7> kSuffixes{
        ".safetensors", ".sft", ".ckpt", ".pth", ".pt'", ".gguf", ".onnx"
    };
    return contains_any(text, kSuffixes);
}

bool is_missing_model(std::string_view type, std::string_view text) {
    if (contains(text, "model in folder") && contains(text, "not found")) {
        return true;  // folder_paths.get_full_path_or_raise
    }
    return type == "FileNotFoundError" &&
           (contains(text, "/models/") || contains(text, "\\models\\") || names_model_file(text));
}

// The last part of "torch.cuda.OutOfMemoryError".
std::string_view class_name(std::string_view type) {
    const auto dot = type.rfind('.');
    return dot == std::string_view::npos ? type : type.substr(dot + 1);
}

// Of a worker's refusal: every fault of a node is a value that is not in its list, as where a model
// is not there. Others would be refused by each worker.
bool lacks_only_models(const json::object& details) {
    const json::value* nodes = json::find(details, "node_errors");
    if (nodes == nullptr || !nodes->is_object() || nodes->get_object().empty()) {
        return false;
    }
    for (const auto& node : nodes->get_object()) {
        const json::object* about = node.value().if_object();
        const json::value* errors = about == nullptr ? nullptr : json::find(*about, "errors");
        if (errors == nullptr || !errors->is_array() || errors->get_array().empty()) {
            return false;
        }
        for (const json::value& error : errors->get_array()) {
            const json::object* one = error.if_object();
            const json::value* type = one == nullptr ? nullptr : json::find(*one, "type");
            if (type == nullptr || *type != json::value("value_not_in_list")) {
                return false;
            }
        }
    }
    return true;
}

std::string text_of(const json::object& from, std::string_view key) {
    const json::value* found = json::find(from, key);
    return found != nullptr && found->is_string() ? std::string(found->get_string())
                                                  : std::string();
}

Cause cause_of(Code code, const json::object& details) {
    if (const auto named = parse_cause(text_of(details, kCauseKey))) {
        return *named;
    }
    switch (code) {
        case Code::worker_rejected:
            return lacks_only_models(details) ? Cause::model_missing : Cause::validation;
        case Code::invalid_argument:
        case Code::malformed_json:
        case Code::invalid_workflow:
        case Code::workflow_format_ui:
        case Code::missing_asset:
        case Code::no_capable_worker:
        case Code::payload_too_large:
            return Cause::validation;
        case Code::node_execution_error:
            return cause_of_exception(
                text_of(details, "exception_type"), text_of(details, "exception_message")
            );
        case Code::out_of_memory:
            return Cause::out_of_memory;
        case Code::worker_lost:
            return Cause::worker_lost;
        case Code::worker_unavailable:
        case Code::connection_failed:
            return Cause::worker_refused;
        case Code::execution_timeout:
        case Code::deadline_exceeded:
            return Cause::timeout;
        case Code::storage_full:
        case Code::storage_unavailable:
            return Cause::storage;
        default:
            return Cause::unknown;
    }
}

struct Amount {
    std::uint64_t bytes = 0;
    std::size_t end = 0;  // of its text
};

// The first "2.50 GiB" at or after a place.
std::optional<Amount> find_amount(std::string_view text, std::size_t from) {
    constexpr std::array<std::pair<std::string_view, double>, 4> kUnits{
        {{"KiB", 1024.0}, {"MiB", 1048576.0}, {"GiB", 1073741824.0}, {"bytes", 1.0}}
    };
    for (std::size_t at = from; at < text.size(); ++at) {
        if (text[at] < '0' || text[at] > '9') {
            continue;
        }
        double number = 0;
        const auto read = std::from_chars(text.data() + at, text.data() + text.size(), number);
        const auto end = static_cast<std::size_t>(read.ptr - text.data());
        const std::string_view rest = text.substr(std::min(end + 1, text.size()));
        for (const auto& [unit, factor] : kUnits) {
            constexpr double kMost = 1e15;
            if (read.ec == std::errc() && rest.starts_with(unit) && number * factor < kMost) {
                return Amount{static_cast<std::uint64_t>(number * factor), end + unit.size()};
            }
        }
        return std::nullopt;
    }
    return std::nullopt;
}

std::optional<std::uint64_t> amount_after(std::string_view text, std::string_view words) {
    const auto at = text.find(words);
    if (at == std::string_view::npos) {
        return std::nullopt;
    }
    const auto amount = find_amount(text, at + words.size());
    return amount ? std::optional(amount->bytes) : std::nullopt;
}

}  // namespace

const CauseInfo& info(Cause cause) {
    const auto index = static_cast<std::size_t>(cause);
    COMFYD_ASSERT(index < kInfos.size() && kInfos[index].cause == cause);
    return kInfos[index];
}

std::string_view to_string(Cause cause) {
    return info(cause).name;
}

std::optional<Cause> parse_cause(std::string_view name) {
    const auto found = std::ranges::find(kInfos, name, &CauseInfo::name);
    return found == kInfos.end() ? std::nullopt : std::optional(found->cause);
}

Cause cause_of_exception(std::string_view type, std::string_view message) {
    const std::string_view name = class_name(type);
    // What a node was given may stand in the text of an exception; a fault of torch or CUDA is told
    // in the first lines.
    constexpr std::size_t kTextMax = 4'096;
    const std::string text = lower(std::string(message.substr(0, kTextMax)));
    if (name == "OutOfMemoryError" || name == "MemoryError") {
        return Cause::out_of_memory;
    }
    if (name == "SafetensorError" || name == "UnpicklingError") {
        return contains_any(text, kDiskFull) ? Cause::worker_disk_full : Cause::model_damaged;
    }
    // Classes that say nothing of the GPU: their texts are a node's own.
    constexpr std::array<std::string_view, 6> kPlain{
        "KeyError", "TypeError", "AttributeError", "IndexError", "NameError", "ZeroDivisionError"
    };
    if (std::ranges::find(kPlain, name) != kPlain.end()) {
        return Cause::node_error;
    }
    if (is_missing_model(name, text)) {
        return Cause::model_missing;
    }
    if (contains_any(text, kCudaFault)) {
        return Cause::cuda_fault;
    }
    if (contains_any(text, kOutOfMemory)) {
        return Cause::out_of_memory;
    }
    if (contains_any(text, kMisconfigured)) {
        return Cause::worker_misconfigured;
    }
    if (contains_any(text, kModelDamaged)) {
        return Cause::model_damaged;
    }
    return contains_any(text, kDiskFull) ? Cause::worker_disk_full : Cause::node_error;
}

bool is_host_memory(std::string_view type, std::string_view message) {
    constexpr std::array<std::string_view, 3> kHost{
        "defaultcpuallocator", "unable to allocate", "cannot allocate memory"
    };
    return class_name(type) == "MemoryError" || contains_any(lower(message), kHost);
}

std::optional<std::uint64_t> memory_wanted(std::string_view message) {
    // "Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.69 GiB of which 1.10 GiB is
    // free.": all that is in use, by whomever, and what was asked for.
    if (const auto wanted = amount_after(message, "Tried to allocate")) {
        const auto total = amount_after(message, "total capacity of");
        const auto free = amount_after(message, "of which");
        if (total && free && *free <= *total) {
            return *wanted + *total - *free;
        }
        const auto allocated = amount_after(message, "already allocated");
        return allocated ? *wanted + *allocated : *wanted;
    }
    // "Currently allocated : 22.17 GiB", "Requested : 2.00 GiB" of the asynchronous allocator.
    const auto allocated = amount_after(message, "Currently allocated");
    const auto wanted = amount_after(message, "Requested");
    return allocated && wanted ? std::optional(*allocated + *wanted) : std::nullopt;
}

Cause cause_of(const Failure& failure) {
    return cause_of(failure.code, failure.details);
}

Cause cause_of(const Error& error) {
    return cause_of(error.code, error.details);
}

Cause cause_of_fetch(Code code) {
    switch (code) {
        case Code::invalid_argument:
            return Cause::validation;
        case Code::hash_mismatch:
            return Cause::model_damaged;
        case Code::storage_full:
        case Code::storage_unavailable:
            return Cause::worker_disk_full;
        default:
            return Cause::model_unavailable;
    }
}

bool is_judged(const Failure& failure) {
    return failure.details.contains(kCauseKey);
}

Category category_of(const Failure& failure) {
    return is_judged(failure) ? info(cause_of(failure)).category : info(failure.code).category;
}

std::string_view suggested_action_of(const Failure& failure) {
    return is_judged(failure) ? info(cause_of(failure)).suggested_action
                              : info(failure.code).suggested_action;
}

}  // namespace comfyd::jobs
