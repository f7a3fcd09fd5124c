#include "cluster/leader_json.hpp"

#include <array>

#include <boost/describe/class.hpp>
#include <boost/describe/enum.hpp>
#include <boost/json/value_from.hpp>
#include <boost/json/value_to.hpp>

#include "cluster/members.hpp"

namespace comfyd::scheduler {

BOOST_DESCRIBE_ENUM(WaitClass, high, medium, low, batch)
BOOST_DESCRIBE_STRUCT(Grounds, (), (bits))
BOOST_DESCRIBE_STRUCT(Amount, (), (jobs, seconds))
BOOST_DESCRIBE_STRUCT(
    Numbers, (), (remaining_s, load_s, run_s, finish_s, vram_needed, vram_free, cached, load, score)
)
BOOST_DESCRIBE_STRUCT(WorkerVerdict, (), (worker, capable, is_free, reason, numbers))
BOOST_DESCRIBE_STRUCT(
    Explanation,
    (),
    (position,
     wait_class,
     priority,
     grounds,
     fairness_key,
     waited_s,
     target_s,
     ahead_by_class,
     ahead_by_tenant,
     own_tenant_ahead,
     other_tenants_ahead,
     running,
     workers_capable,
     workers,
     expected_wait_s,
     expected_run_s,
     expected_load_s,
     tenant_at_limit,
     waits_for,
     reasons,
     advice)
)

}  // namespace comfyd::scheduler

namespace comfyd {

BOOST_DESCRIBE_STRUCT(MachineWish, (), (pool, gpu, region, memory_gb, memory_part))

}  // namespace comfyd

namespace comfyd::jobs {

BOOST_DESCRIBE_ENUM(WorkerStatus, starting, idle, running, draining, down)
BOOST_DESCRIBE_STRUCT(Load::Waiting, (), (machine, jobs, seconds, is_served))
BOOST_DESCRIBE_STRUCT(Load::Use, (), (worker, pool, status, slots, jobs, seconds, wanted))
BOOST_DESCRIBE_STRUCT(Load, (), (waiting, workers))

}  // namespace comfyd::jobs

namespace comfyd::cluster {
namespace {

constexpr std::array kStatuses{
    jobs::WorkerStatus::starting,
    jobs::WorkerStatus::idle,
    jobs::WorkerStatus::running,
    jobs::WorkerStatus::draining,
    jobs::WorkerStatus::down,
};

jobs::WorkerStatus status_of(std::string_view text) {
    for (const jobs::WorkerStatus status : kStatuses) {
        if (jobs::to_string(status) == text) {
            return status;
        }
    }
    return jobs::WorkerStatus::down;
}

CircuitBreaker::State breaker_of(std::string_view text) {
    using enum CircuitBreaker::State;
    return text == "open" ? open : text == "half_open" ? half_open : closed;
}

template <class Number>
void add(json::object& to, std::string_view key, const std::optional<Number>& number) {
    if (number) {
        to[key] = *number;
    }
}

std::optional<int> whole_in(const json::object& from, std::string_view key) {
    const auto number = number_in(from, key);
    return number ? std::optional(static_cast<int>(*number)) : std::nullopt;
}

std::optional<double> real_in(const json::object& from, std::string_view key) {
    return json::find_number(from, key).value_or(std::nullopt);
}

jobs::Progress progress_from_json(const json::object& from) {
    jobs::Progress progress;
    progress.value = real_in(from, "value").value_or(0);
    progress.nodes_done = small_in(from, "nodes_done", 0);
    progress.nodes_total = small_in(from, "nodes_total", 0);
    progress.current_node = text_in(from, "current_node");
    progress.current_node_class = text_in(from, "current_node_class");
    progress.step = small_in(from, "step", 0);
    progress.steps = small_in(from, "steps", 0);
    progress.message = text_in(from, "message");
    return progress;
}

}  // namespace

json::object to_json(const jobs::LedJob& job) {
    return {{"job", job.id.to_string()}, {"domain", job.domain}};
}

std::optional<jobs::LedJob> led_job_from_json(const json::value& from) {
    const json::object* object = from.if_object();
    const auto id = object == nullptr ? std::nullopt : id_in<JobTag>(*object, "job");
    return id ? std::optional(jobs::LedJob{*id, text_in(*object, "domain")}) : std::nullopt;
}

json::object to_json(const jobs::Forecast::Live& live) {
    json::object to;
    if (live.progress) {
        to["progress"] = live.progress->to_json();
    }
    add(to, "queue_position", live.queue_position);
    add(to, "estimated_wait_s", live.estimated_wait_s);
    add(to, "estimated_remaining_s", live.estimated_remaining_s);
    add(to, "estimate_confidence", live.estimate_confidence);
    return to;
}

jobs::Forecast::Live live_from_json(const json::object& from) {
    jobs::Forecast::Live live;
    if (const json::object* progress = object_in(from, "progress")) {
        live.progress = progress_from_json(*progress);
    }
    live.queue_position = whole_in(from, "queue_position");
    live.estimated_wait_s = whole_in(from, "estimated_wait_s");
    live.estimated_remaining_s = whole_in(from, "estimated_remaining_s");
    live.estimate_confidence = real_in(from, "estimate_confidence");
    return live;
}

json::object to_json(const jobs::Waiting& waiting) {
    json::object to;
    if (waiting.explanation) {
        to["explanation"] = boost::json::value_from(*waiting.explanation);
    }
    if (waiting.waits_for) {
        to["waits_for"] = waiting.waits_for->to_string();
    }
    return to;
}

jobs::Waiting waiting_from_json(const json::object& from) {
    jobs::Waiting waiting;
    if (const json::value* explanation = json::find(from, "explanation")) {
        auto read = boost::json::try_value_to<scheduler::Explanation>(*explanation);
        if (read) {
            waiting.explanation = std::move(*read);
        }
    }
    waiting.waits_for = id_in<JobTag>(from, "waits_for");
    return waiting;
}

json::object to_json(const jobs::Load& load) {
    return boost::json::value_from(load).as_object();
}

jobs::Load load_from_json(const json::object& from) {
    auto load = boost::json::try_value_to<jobs::Load>(json::value(from));
    return load ? std::move(*load) : jobs::Load{};
}

json::object to_json(const jobs::WorkerInfo& worker) {
    json::object to{
        {"id", worker.id},
        {"url", worker.url},
        {"status", jobs::to_string(worker.status)},
        {"version", worker.version},
        {"gpu", worker.gpu},
        {"vram_total", worker.vram_total},
        {"vram_free", worker.vram_free},
        {"ram_total", worker.ram_total},
        {"fetched_outside", worker.fetched_outside},
        {"fetched_from_peers", worker.fetched_from_peers},
        {"node_classes", worker.node_classes},
        {"last_error", worker.last_error},
        {"created_at", to_unix_ms(worker.created_at)},
        {"last_active_at", to_unix_ms(worker.last_active_at)},
        {"completed", worker.completed},
        {"failed", worker.failed},
        {"slots", worker.slots},
        {"model_memory_bytes", worker.model_memory_bytes},
        {"gpu_id", worker.gpu_id},
        {"pool", worker.pool},
        {"region", worker.region},
        {"machine", worker.machine},
        {"breaker", to_string(worker.breaker)},
    };
    if (worker.current_job) {
        to["current_job"] = worker.current_job->to_string();
    }
    json::array jobs;
    for (const JobId& job : worker.jobs) {
        jobs.emplace_back(job.to_string());
    }
    to["jobs"] = std::move(jobs);
    to["running"] = worker.running;
    return to;
}

jobs::WorkerInfo worker_from_json(const json::object& from) {
    jobs::WorkerInfo worker;
    worker.id = text_in(from, "id");
    worker.url = text_in(from, "url");
    worker.status = status_of(text_in(from, "status"));
    worker.version = text_in(from, "version");
    worker.gpu = text_in(from, "gpu");
    worker.vram_total = count_in(from, "vram_total");
    worker.vram_free = count_in(from, "vram_free");
    worker.ram_total = count_in(from, "ram_total");
    worker.fetched_outside = count_in(from, "fetched_outside");
    worker.fetched_from_peers = count_in(from, "fetched_from_peers");
    worker.node_classes = count_in(from, "node_classes");
    worker.last_error = text_in(from, "last_error");
    worker.created_at = time_in(from, "created_at").value_or(Time{});
    worker.last_active_at = time_in(from, "last_active_at").value_or(Time{});
    worker.completed = count_in(from, "completed");
    worker.failed = count_in(from, "failed");
    worker.slots = small_in(from, "slots", 1);
    worker.model_memory_bytes = count_in(from, "model_memory_bytes");
    worker.gpu_id = text_in(from, "gpu_id");
    worker.pool = text_in(from, "pool");
    worker.region = text_in(from, "region");
    worker.machine = text_in(from, "machine");
    worker.breaker = breaker_of(text_in(from, "breaker"));
    worker.current_job = id_in<JobTag>(from, "current_job");
    const json::array* jobs = json::find_array(from, "jobs").value_or(nullptr);
    for (const json::value& text : jobs == nullptr ? json::array() : *jobs) {
        const auto job = text.is_string() ? JobId::parse(std::string_view(text.get_string()))
                                          : std::optional<JobId>();
        if (job) {
            worker.jobs.push_back(*job);
        }
    }
    worker.running = count_in(from, "running");
    return worker;
}

}  // namespace comfyd::cluster
