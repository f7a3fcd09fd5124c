// Prompts as ComfyUI's answers show them: in the queue, in the history, in the list of jobs. Pure;
// any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "base/time.hpp"
#include "comfy/jobs_list.hpp"

namespace comfyd::comfy::server {

struct PromptView {
    json::value number;  // as it was answered
    std::string id;
    json::value graph = json::object();
    json::object extra_data{};
    json::array outputs{};  // ids of the nodes that are to run
};
// [number, id, graph, extra_data, outputs]
json::array to_json(PromptView prompt);

struct QueueView {
    std::vector<PromptView> running;
    std::vector<PromptView> pending;
};
json::object to_json(QueueView queue);

// How a run went: {"status_str", "completed", "messages"}. `messages`: [event, data].
json::object run_status(bool success, json::array messages);
// What a history tells of a node with outputs. `parent`: null of a node of the prompt's own.
json::object node_meta(
    std::string_view node, std::string_view shown_as, json::value parent, std::string_view real
);

struct HistoryView {
    PromptView prompt;
    json::object outputs{};  // node id -> ui
    json::object status{};   // run_status()
    json::object meta{};     // node id -> node_meta()
};
// {"prompt", "outputs", "status", "meta"}
json::object to_json(HistoryView entry);
// The same as a member of the answer: "id": {…}
std::string encode_member(HistoryView entry);

// A part of a history.
struct HistoryPage {
    std::vector<std::string> members{};  // encode_member(), oldest first
    std::size_t left_out = 0;            // older ones, for which there was no room
};
std::string encode(const HistoryPage& page);

struct JobView {
    std::string id;
    JobStatus status = JobStatus::pending;
    json::value priority;
    Time created{};
    std::optional<Time> started{};  // of one that has ended
    std::optional<Time> ended{};
    json::object error{};    // the data of execution_error; empty: none
    json::object outputs{};  // node id -> ui
    std::string workflow_id{};

    // Of a job that is asked for alone.
    struct Details {
        std::optional<json::object> outputs{};  // as above, of one that has ended
        std::optional<json::object> status{};   // run_status(), likewise
        json::value graph;
        json::object extra_data{};
    };
    std::optional<Details> details{};
};
json::object to_json(JobView job);

struct JobsPage {
    std::vector<JobView> jobs{};
    std::size_t total = 0;  // that the query fits
    bool has_more = false;
};
json::object to_json(JobsPage page, const JobsQuery& query);

}  // namespace comfyd::comfy::server
