// A job out of its row. A row has the columns below, in this order, and typed access to each:
// is_null(), integer(), text(), uuid(), time(), optional_time().
//   j (jobs): id, tenant, dialect, state, priority, created_at, started_at, finished_at,
//   not_before,
//     deadline, timeout_ms, attempt, max_attempts, worker, cancel_requested, sequence, revision,
//     workflow_id, node_count, whether it has a webhook
//   what was asked for: metadata, dialect_data
//   what came of it: failure, outputs, ui_outputs, usage
//   j: reuse_key, reused_from, shared_prompt, shared_place
//   the data of the event that it was made with; its domain
#pragma once

#include <string_view>
#include <utility>

#include "jobs/job.hpp"
#include "ledger/codec.hpp"

namespace comfyd::ledger {

inline constexpr int kJobColumnCount = 32;
inline constexpr int kResultColumns = 4;

template <class Row>
Result<> read_result(const Row& row, int column, jobs::Job& job) {
    if (const auto failure = row.text(column); !failure.empty()) {
        const auto object = decode_object(failure);
        if (!object) {
            return fail(object.error());
        }
        job.failure = jobs::Failure::from_json(*object);
    }
    if (const auto outputs = row.text(column + 1); !outputs.empty()) {
        const auto array = decode_array(outputs);
        if (!array) {
            return fail(array.error());
        }
        for (const json::value& output : *array) {
            if (output.is_object()) {
                job.outputs.push_back(jobs::Output::from_json(output.get_object()));
            }
        }
    }
    if (const auto ui_outputs = row.text(column + 2); !ui_outputs.empty()) {
        auto object = decode_object(ui_outputs);
        if (!object) {
            return fail(object.error());
        }
        job.ui_outputs = std::move(*object);
    }
    if (const auto usage = row.text(column + 3); !usage.empty()) {
        const auto object = decode_object(usage);
        if (!object) {
            return fail(object.error());
        }
        job.usage = jobs::Usage::from_json(*object);
    }
    return {};
}

// What else was asked for about its turn stands in the event that it was made with. Few jobs have
// any, and they alone pay for the parsing.
inline void read_standing(std::string_view queued_data, jobs::Job& job) {
    if (queued_data.find("\"class\"") == std::string_view::npos &&
        queued_data.find("\"fairness_key\"") == std::string_view::npos) {
        return;
    }
    if (const auto data = decode_object(queued_data)) {
        const auto text = [&data](std::string_view key) {
            return json::find_string(*data, key).value_or(std::nullopt).value_or("");
        };
        job.batch = text("class") == "batch";
        job.fairness_key = text("fairness_key");
    }
}

template <class Row>
Result<jobs::Job> read_job(const Row& row) {
    jobs::Job job;
    int column = 0;
    job.id.uuid = row.uuid(column++);
    job.tenant = row.text(column++);
    job.dialect = row.text(column++);
    job.state = static_cast<jobs::State>(row.integer(column++));
    job.priority = static_cast<int>(row.integer(column++));
    job.created_at = row.time(column++);
    job.started_at = row.optional_time(column++);
    job.finished_at = row.optional_time(column++);
    job.not_before = row.optional_time(column++);
    job.deadline = row.optional_time(column++);
    job.timeout = Millis(row.integer(column++));
    job.attempt = static_cast<int>(row.integer(column++));
    job.max_attempts = static_cast<int>(row.integer(column++));
    job.worker = row.text(column++);
    job.cancel_requested = row.integer(column++) != 0;
    job.sequence = static_cast<std::uint64_t>(row.integer(column++));
    job.revision = static_cast<int>(row.integer(column++));
    job.workflow_id = row.text(column++);
    job.node_count = static_cast<int>(row.integer(column++));
    job.has_webhook = row.integer(column++) != 0;
    if (job.state < jobs::State::queued || job.state > jobs::State::expired) {
        return fail(damaged("job"));
    }
    auto metadata = decode_object(row.text(column++));
    if (!metadata) {
        return fail(std::move(metadata.error()));
    }
    job.metadata = std::move(*metadata);
    auto dialect_data = decode_object(row.text(column++));
    if (!dialect_data) {
        return fail(std::move(dialect_data.error()));
    }
    job.dialect_data = std::move(*dialect_data);
    if (const auto result = read_result(row, column, job); !result) {
        return fail(result.error());
    }
    column += kResultColumns;
    job.reuse_key = row.text(column++);
    if (!row.is_null(column)) {
        job.reused_from = JobId{row.uuid(column)};
    }
    ++column;
    if (!row.is_null(column)) {
        const auto prompt = PromptId::parse(row.text(column));
        if (!prompt) {
            return fail(damaged("job"));
        }
        job.shared = {*prompt, static_cast<std::size_t>(row.integer(column + 1))};
    }
    read_standing(row.text(kJobColumnCount - 2), job);
    job.domain = row.text(kJobColumnCount - 1);
    return job;
}

}  // namespace comfyd::ledger
