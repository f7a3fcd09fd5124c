#include "ledger/job_texts.hpp"

#include "jobs/profile_text.hpp"
#include "ledger/codec.hpp"
#include "notify/target.hpp"

namespace comfyd::ledger {
namespace {

std::size_t size_of(const std::optional<std::string>& text) {
    return text ? text->size() : 0;
}

}  // namespace

SpecTexts::SpecTexts(const jobs::NewJob& job)
    : spec(encode_spec(job.spec)),
      extra_data(encode(job.spec.extra_data)),
      metadata(encode(job.spec.metadata)),
      dialect_data(encode(job.spec.dialect_data)),
      queued_data(encode(job.change.event.data)),
      used_assets(mentioned_assets(job.spec.workflow)) {
    if (job.spec.profile) {
        profile = jobs::encode_profile(job.spec.profile);
    }
    if (job.spec.webhook) {
        webhook = notify::encode_target(*job.spec.webhook);
        webhook_events = encode_webhook_events(*job.spec.webhook);
        announces = job.spec.webhook->wants(jobs::webhook_event_name(jobs::EventType::queued));
    }
}

std::size_t SpecTexts::bytes() const {
    return spec.size() + size_of(extra_data) + size_of(metadata) + size_of(dialect_data) +
           size_of(profile) + size_of(webhook);
}

ResultTexts::ResultTexts(const jobs::Change& change)
    : ui_outputs(encode(change.job.ui_outputs)), event_data(encode(change.event.data)) {
    const jobs::Job& job = change.job;
    if (job.failure) {
        failure = json::serialize(job.failure->to_json());
    }
    json::array listed;
    for (const jobs::Output& output : job.outputs) {
        listed.emplace_back(output.to_json());
    }
    jobs::each_file(job.outputs, [this](const jobs::Output& file) {
        output_bytes_ += file.bytes ? file.bytes->size() : 0;
    });
    outputs = encode(listed);
    if (job.usage) {
        usage = json::serialize(job.usage->to_json());
    }
}

std::size_t ResultTexts::bytes() const {
    return size_of(failure) + size_of(outputs) + size_of(ui_outputs) + size_of(event_data) +
           output_bytes_;
}

}  // namespace comfyd::ledger
