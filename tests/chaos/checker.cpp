#include "chaos/checker.hpp"

#include <algorithm>
#include <iterator>
#include <sstream>

namespace comfyd::support {
namespace {

constexpr std::chrono::seconds kEndDeadline{180};
const std::map<std::string, std::string> kEndOfMessage{
    {"execution.completed", "succeeded"},
    {"execution.failed", "failed"},
    {"execution.cancelled", "canceled"},
};

bool is_end(std::string_view status) {
    return status == "succeeded" || status == "failed" || status == "canceled" ||
           status == "expired";
}

std::string text_at(const json::value& in, const char* member) {
    const json::object* object = in.if_object();
    const json::value* found = object != nullptr ? object->if_contains(member) : nullptr;
    return found != nullptr && found->is_string() ? std::string(found->get_string()) : "";
}

}  // namespace

void Checker::complain(const std::string& about, const std::string& what) {
    complaints_.push_back(about + ": " + what);
}

void Checker::check_job(const std::string& id, std::string_view mark) {
    json::value job;
    std::string status;
    wait_until(
        [&] {
            job = api_.get("/api/v2/jobs/" + id).json();
            status = text_at(job, "status");
            return is_end(status);
        },
        kEndDeadline
    );
    statuses_[id] = status;
    ++ends_[status];
    if (!is_end(status)) {
        complain(id, "has not ended: " + json::serialize(job));
        return;
    }
    if (status == "succeeded") {
        check_output(id, job, mark);
    }
    check_events(id, status);
}

void Checker::check_output(const std::string& id, const json::value& job, std::string_view mark) {
    const json::array* outputs = job.at("outputs").if_array();
    if (outputs == nullptr || outputs->size() != 1) {
        complain(id, "is completed without its output");
        return;
    }
    const std::string link = text_at(outputs->at(0), "url");
    const std::size_t path = link.find('/', link.find("://") + 3);
    const Reply picture = api_.get(path == std::string::npos ? link : link.substr(path));
    if (picture.status != 200 || picture.body.find(mark) == std::string::npos) {
        complain(id, "its output answers " + std::to_string(picture.status) + " or is another's");
    }
}

void Checker::check_events(const std::string& id, const std::string& status) {
    net::Headers from_start;
    from_start.set("Last-Event-ID", "0");
    const auto is_last = [](const SseEvent& event) {
        const std::string told = text_at(event.json(), "status");
        return told == "completed" || told == "failed" || told == "cancelled" || told == "expired";
    };
    const auto events =
        api_.read_events("/v2/workflows/execution/" + id + "/events", is_last, from_start);
    std::int64_t before = 0;
    int ends = 0;
    for (const SseEvent& event : events) {
        const json::value* number =
            event.json().is_object() ? event.json().as_object().if_contains("sequence") : nullptr;
        const std::int64_t sequence =
            number != nullptr && number->is_int64() ? number->get_int64() : 0;
        if (sequence <= before) {
            complain(id, "event " + event.data + " comes after " + std::to_string(before));
        }
        before = std::max(before, sequence);
        ends += is_last(event) ? 1 : 0;
    }
    if (ends != 1) {
        complain(
            id,
            status + ", with " + std::to_string(ends) + " ends among " +
                std::to_string(events.size()) + " events"
        );
    }
}

void Checker::check_messages(const std::vector<ReceivedRequest>& requests) {
    struct Told {
        std::vector<std::string> ids;  // of messages, each once, in the order of their arrival
        std::vector<std::string> events;
    };
    std::map<std::string, Told> told;
    std::map<std::string, std::string> bodies;  // of messages
    for (const ReceivedRequest& request : requests) {
        const std::string job(request.headers.get("X-Execution-ID"));
        const std::string id(request.headers.get("webhook-id"));
        Told& of_job = told[job];
        if (bodies.emplace(id, request.body).first->second != request.body) {
            complain(job, "message " + id + " has two bodies");
        }
        if (std::ranges::find(of_job.ids, id) == of_job.ids.end()) {
            of_job.ids.push_back(id);
            of_job.events.emplace_back(request.headers.get("X-Webhook-Event"));
        } else if (of_job.ids.back() != id) {
            complain(job, "message " + id + " comes again behind a later one");
        }
    }
    for (const auto& [job, status] : statuses_) {
        const auto& events = told[job].events;
        const auto ends = std::ranges::count_if(events, [](const std::string& e) {
            return kEndOfMessage.contains(e);
        });
        const auto end = events.empty() ? kEndOfMessage.end() : kEndOfMessage.find(events.back());
        const bool is_right_end =
            end != kEndOfMessage.end() && (end->second == status || status == "expired");
        if (ends != 1 || !is_right_end || events.front() != "execution.queued") {
            std::string all;
            for (const std::string& event : events) {
                all += event + " ";
            }
            complain(job, "is " + status + " and was told of as " + all);
        }
    }
}

void Checker::check_runs(std::string_view journal) {
    struct Run {
        std::string process;
        bool is_excused = false;  // its process was away
    };
    std::map<std::string, std::vector<Run>> running;  // by workflow
    std::map<std::string, std::string> workflows;     // by prompt and process
    std::map<std::string, int> away;                  // processes, how often
    const auto forget = [](std::vector<Run>& runs, const std::string& process) {
        std::erase_if(runs, [&](const Run& run) { return run.process == process; });
    };
    std::istringstream lines{std::string(journal)};
    for (std::string line; std::getline(lines, line);) {
        std::istringstream text(line);
        const std::vector<std::string> words{std::istream_iterator<std::string>(text), {}};
        if (words.size() < 2) {
            continue;
        }
        const std::string& what = words.front();
        const std::string& process = words.back();
        if (what == "start") {
            std::vector<Run>& runs = running[words[2]];
            for (const Run& other : runs) {
                if (!other.is_excused) {
                    complain(words[1], "runs on " + process + " while it does on " + other.process);
                }
            }
            runs.push_back({process, away[process] > 0});
            workflows[words[1] + process] = words[2];
        } else if (what == "end") {
            forget(running[workflows[words[1] + process]], process);
        } else if (what == "back") {
            --away[process];
        } else {
            away[process] += what == "away" ? 1 : 0;
            for (auto& [workflow, runs] : running) {
                if (what == "gone") {
                    forget(runs, process);
                }
                for (Run& run : runs) {
                    run.is_excused |= run.process == process;
                }
            }
        }
    }
}

}  // namespace comfyd::support
