// Jobs in every state, for the tests of the dialects.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "api/dialects/execution/execution.hpp"
#include "jobs/service.hpp"

namespace comfyd::api::fixture {

inline const Time kCreated = from_unix_ms(1'700'000'000'000);
inline const JobId kJob = *JobId::parse("01890000-0000-7000-8000-000000000001");
inline const AssetId kAsset = *AssetId::parse("01890000-0000-7000-8000-0000000000aa");

inline execution::Links links() {
    return [](const AssetId& id) {
        return Download{"http://here/" + id.to_string(), kCreated + std::chrono::hours(1)};
    };
}

inline jobs::Output output(std::string type, std::string name) {
    jobs::Output made;
    made.asset = kAsset;
    made.node_id = "9";
    made.name = std::move(name);
    made.folder = "output";
    made.type = std::move(type);
    made.content_type = "image/png";
    made.size_bytes = 321;
    made.hash = "blake3:ab";
    return made;
}

inline jobs::Job job(jobs::State state) {
    jobs::Job made;
    made.id = kJob;
    made.tenant = "local";
    made.state = state;
    made.created_at = kCreated;
    made.sequence = 1;
    made.node_count = 2;
    made.metadata = {{"order", 7}};
    if (state != jobs::State::queued) {
        made.attempt = 2;
        made.worker = "gpu-1";
        made.started_at = kCreated + Millis(2'000);
        made.sequence = 12;
    }
    if (is_terminal(state)) {
        made.finished_at = kCreated + Millis(5'500);
    }
    if (state == jobs::State::completed) {
        made.outputs = {output("image", "a.png"), output("text", "a.txt")};
        made.ui_outputs = {{"9", json::object{{"images", json::array()}}}};
    }
    if (state == jobs::State::failed || state == jobs::State::retry_waiting) {
        jobs::Failure failure;
        failure.code = Code::out_of_memory;
        failure.message = "the GPU is full";
        failure.node_id = "3";
        failure.class_type = "KSampler";
        made.failure = failure;
    }
    if (state == jobs::State::expired) {
        jobs::Failure failure;
        failure.code = Code::deadline_exceeded;
        failure.message = "too late";
        made.failure = failure;
    }
    return made;
}

inline execution::Shown shown(jobs::State state) {
    execution::Shown made;
    made.view.job = job(state);
    return made;
}

inline jobs::Event event(jobs::EventType type, jobs::State state, json::object data = {}) {
    jobs::Event made;
    made.job = kJob;
    made.sequence = 20;
    made.type = type;
    made.at = kCreated + Millis(5'500);
    made.state = state;
    made.data = std::move(data);
    return made;
}

// Serialised, so that a failed comparison shows both sides.
inline std::string text(const json::value& value) {
    return json::serialize_canonical(value);
}

}  // namespace comfyd::api::fixture
