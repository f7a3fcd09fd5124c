#include "fleet/instances/fleet_crew.hpp"

#include <algorithm>
#include <utility>

#include "base/deadline.hpp"
#include "base/hop.hpp"
#include "comfy/client.hpp"

namespace comfyd::fleet {
namespace {

using Verdict = Examination::Verdict;

constexpr Millis kStatusTimeout{10'000};
constexpr std::size_t kStatusBytesMax = 256 * 1024;
constexpr Millis kLookAgain{500};
// Drivers keep some of a GPU's memory, and an image some of the disk.
constexpr double kMemoryPart = 0.9;
constexpr double kDiskPart = 0.5;

std::string gigabytes(std::uint64_t bytes) {
    constexpr std::uint64_t kTenth = 100'000'000;
    const std::uint64_t tenths = bytes / kTenth;
    return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " GB";
}

bool is_short_of(std::uint64_t has, std::uint64_t promised, double part) {
    return has != 0 && static_cast<double>(has) < static_cast<double>(promised) * part;
}

std::uint64_t bytes_of(const json::object& from, std::string_view key) {
    const json::value* found = json::find(from, key);
    return found != nullptr && found->is_int64() && found->get_int64() > 0
               ? static_cast<std::uint64_t>(found->get_int64())
               : 0;
}

std::string text_of(const json::object& from, std::string_view key) {
    const json::value* found = json::find(from, key);
    return found != nullptr && found->is_string() ? std::string(found->get_string())
                                                  : std::string();
}

Examination not_yet(std::string why) {
    return {Verdict::not_yet, std::move(why), {}};
}

net::ClientRequest status_request(const WorkerConfig& worker) {
    constexpr std::string_view kUnix = "unix:";
    constexpr std::string_view kCalls = "worker://";  // it has no address, and called us
    net::ClientRequest request;
    std::string base = worker.url;
    if (base.starts_with(kUnix) || base.starts_with(kCalls)) {
        request.socket = base.starts_with(kUnix) ? base.substr(kUnix.size()) : base;
        base = "http://localhost";
    }
    while (base.ends_with('/')) {
        base.pop_back();
    }
    request.url = base + "/worker/v1/status";
    request.timeout = kStatusTimeout;
    request.response_bytes_max = kStatusBytesMax;
    if (!worker.token.empty()) {
        request.headers.set("Authorization", "Bearer " + worker.token);
    }
    return request;
}

}  // namespace

std::optional<AgentStatus> AgentStatus::read(std::string_view text) {
    const auto document = json::parse_object(text);
    if (!document) {
        return std::nullopt;
    }
    AgentStatus status;
    status.state = text_of(*document, "state");
    status.reason = text_of(*document, "reason");
    status.disk_free_bytes = bytes_of(*document, "disk_free_bytes");
    status.fetches_models = json::find(*document, "models") != nullptr;
    if (const auto gpus = json::find_array(*document, "gpus"); gpus && *gpus != nullptr) {
        for (const json::value& gpu : **gpus) {
            if (!gpu.is_object()) {
                continue;
            }
            const std::uint64_t total = bytes_of(gpu.get_object(), "memory_total_bytes");
            status.gpu_memory_bytes =
                status.gpu_memory_bytes == 0 ? total : std::min(status.gpu_memory_bytes, total);
            if (status.gpu.empty()) {
                status.gpu = text_of(gpu.get_object(), "uuid");
            }
        }
    }
    return status;
}

Examination judge(const AgentStatus& status, std::uint64_t vram_total, const Promise& promise) {
    const std::uint64_t memory =
        status.gpu_memory_bytes != 0 ? status.gpu_memory_bytes : vram_total;
    if (is_short_of(memory, promise.gpu_memory_bytes, kMemoryPart)) {
        return {
            Verdict::wrong,
            "its GPU has " + gigabytes(memory) + " of memory and not the " +
                gigabytes(promise.gpu_memory_bytes) + " that were promised",
            {}
        };
    }
    if (is_short_of(status.disk_free_bytes, promise.disk_bytes, kDiskPart)) {
        return {
            Verdict::wrong,
            "only " + gigabytes(status.disk_free_bytes) + " of its disk are free, of " +
                gigabytes(promise.disk_bytes) + " that were promised",
            {}
        };
    }
    return {Verdict::good, {}, status.gpu};
}

Task<Examination> FleetCrew::examine(WorkerConfig worker, Promise promise) {
    auto found = co_await await_on(lane_.executor, examine_there(worker, promise));
    if (found.fetches_models) {
        fleet_.meet_agent(worker, found.disk_free_bytes);
    }
    co_return found;
}

// Where there is no agent in front of it, ComfyUI alone is asked.
Task<Examination> FleetCrew::examine_there(WorkerConfig worker, Promise promise) {
    auto answer = co_await lane_.http.send(status_request(worker));
    if (!answer) {
        co_return not_yet("it does not answer: " + answer.error().message);
    }
    if (answer->status == 401 || answer->status == 403) {
        co_return Examination{Verdict::wrong, "it does not know its token", {}};
    }
    AgentStatus status;
    if (answer->status == 200) {
        const auto read = AgentStatus::read(answer->body);
        if (!read) {
            co_return not_yet("its agent tells nothing that can be read");
        }
        if (read->state == "failed") {
            co_return Examination{Verdict::wrong, "its ComfyUI failed: " + read->reason, {}};
        }
        if (read->state != "ready") {
            Examination found = not_yet(
                "its ComfyUI is " + read->state + (read->reason.empty() ? "" : ": " + read->reason)
            );
            found.fetches_models = read->fetches_models;
            found.disk_free_bytes = read->disk_free_bytes;
            co_return found;
        }
        status = *read;
    } else if (answer->status != 404) {
        co_return not_yet("its agent answers with status " + std::to_string(answer->status));
    }
    comfy::Client client(lane_.http, pool_, worker.url, timeouts_, worker.token);
    auto stats = co_await client.system_stats();
    if (!stats) {
        co_return not_yet("its ComfyUI does not answer: " + stats.error().message);
    }
    // It tells the computer's memory as that of its device.
    if (promise.has_gpu && stats->device.starts_with("cpu")) {
        co_return Examination{
            Verdict::wrong,
            "its ComfyUI computes on the CPU and not on the GPU that was promised: has its image "
            "CUDA, and the machine a driver?",
            {}
        };
    }
    co_return judge(status, stats->vram_total, promise);
}

Task<Result<>> FleetCrew::warm_up(WorkerConfig worker, std::string workflow, Millis patience) {
    auto done = co_await await_on(
        lane_.executor, warm_up_there(std::move(worker), std::move(workflow), patience)
    );
    co_return done;
}

// Sent like any prompt, and looked for until it is in the history: nobody waits for its pictures.
Task<Result<>> FleetCrew::warm_up_there(
    WorkerConfig worker, std::string workflow, Millis patience
) {
    const Deadline deadline = Deadline::in(patience);
    comfy::Client client(lane_.http, pool_, worker.url, timeouts_, worker.token);
    comfy::Submission submission;
    submission.prompt_id = PromptId::make(SystemClock().now()).to_string();
    submission.client_id = "comfyd-warm-up";
    submission.prompt = std::move(workflow);
    const std::string id = submission.prompt_id;
    auto accepted = co_await client.submit(std::move(submission));
    if (!accepted) {
        co_return fail(std::move(accepted.error()));
    }
    while (!deadline.has_passed()) {
        auto entry = co_await client.history(id);
        if (!entry) {
            co_return fail(std::move(entry.error()));
        }
        if (*entry) {
            const comfy::HistoryEntry& ended = **entry;
            const std::string why =
                ended.error ? ended.error->exception_message : std::string("it was interrupted");
            co_return ended.success ? Result<>() : fail(Code::node_execution_error, why);
        }
        const bool goes_on = co_await sleep_for(kLookAgain);
        if (!goes_on) {
            co_return fail(Code::cancelled, "nobody waits for it any more");
        }
    }
    co_return fail(Code::request_timeout, "the warm-up did not end in time");
}

Result<> FleetCrew::employ(WorkerConfig worker) {
    return fleet_.add_comfyui(std::move(worker));
}

Task<Result<>> FleetCrew::dismiss(std::string worker, Millis patience) {
    return fleet_.remove(std::move(worker), patience);
}

void FleetCrew::show(const std::vector<Instance>& instances) {
    std::vector<jobs::WorkerInfo> coming;
    for (const Instance& instance : instances) {
        const bool is_coming = instance.state < InstanceState::ready;
        const bool has_failed = instance.state == InstanceState::removing && instance.has_failed;
        if (!is_coming && !has_failed) {
            continue;
        }
        jobs::WorkerInfo info;
        info.id = instance.worker();
        info.url = instance.url;
        info.status = is_coming ? jobs::WorkerStatus::starting : jobs::WorkerStatus::down;
        info.gpu = instance.offer.gpu;
        info.vram_total = instance.offer.gpu_memory_bytes;
        info.last_error = has_failed ? instance.reason : std::string();
        info.created_at = instance.when(InstanceState::requested).value_or(Time());
        info.last_active_at = info.created_at;
        info.pool = instance.pool;
        info.region = instance.offer.region;
        info.machine = instance.name();
        coming.push_back(std::move(info));
    }
    fleet_.set_coming(std::move(coming));
}

void FleetCrew::hinder(std::map<std::string, std::string> why) {
    fleet_.set_hindrances(std::move(why));
}

void FleetCrew::drain(const std::string& worker) {
    static_cast<void>(fleet_.drain(worker));
}

bool FleetCrew::answers(const std::string& worker) const {
    const auto found = fleet_.find(worker);
    const auto status = found ? found->info().status : jobs::WorkerStatus::down;
    return status != jobs::WorkerStatus::down && status != jobs::WorkerStatus::starting;
}

std::size_t FleetCrew::jobs(const std::string& worker) const {
    const auto found = fleet_.find(worker);
    return found ? found->running() : 0;
}

}  // namespace comfyd::fleet
