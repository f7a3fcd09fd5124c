#include "jobs/past_attempts.hpp"

#include <utility>

#include "jobs/cause.hpp"

namespace comfyd::jobs {
namespace {

std::string text_of(const json::object& from, std::string_view key) {
    const json::value* found = json::find(from, key);
    return found != nullptr && found->is_string() ? std::string(found->get_string())
                                                  : std::string();
}

PastAttempt begun_by(const Event& started) {
    const json::value* number = json::find(started.data, "attempt");
    PastAttempt attempt;
    attempt.number =
        number != nullptr && number->is_int64() ? static_cast<int>(number->get_int64()) : 0;
    attempt.worker = text_of(started.data, "worker");
    attempt.started_at = started.at;
    return attempt;
}

void end_by(PastAttempt& attempt, const Event& event) {
    attempt.ended_at = event.at;
    if (const json::value* error = json::find(event.data, "error");
        error != nullptr && error->is_object()) {
        attempt.failure = Failure::from_json(error->get_object());
        // What became of the job by it is the job's.
        if (const std::string cause = text_of(attempt.failure->details, "last_cause");
            !cause.empty()) {
            attempt.failure->details[kCauseKey] = cause;
            attempt.failure->message = text_of(attempt.failure->details, "last_message");
        }
    }
    attempt.retry_at = parse_rfc3339(text_of(event.data, "retry_at"));
}

json::value or_null(std::string text) {
    return text.empty() ? json::value(nullptr) : json::value(std::move(text));
}

json::value or_null(const std::optional<Time>& time) {
    return time ? json::value(to_rfc3339(*time)) : json::value(nullptr);
}

}  // namespace

json::object PastAttempt::to_json() const {
    return {
        {"attempt", number},
        {"worker", worker},
        {"started_at", to_rfc3339(started_at)},
        {"ended_at", or_null(ended_at)},
        {"cause", failure ? json::value(to_string(cause_of(*failure))) : json::value(nullptr)},
        {"code", failure ? json::value(to_string(failure->code)) : json::value(nullptr)},
        {"message", or_null(failure ? failure->message : std::string())},
        {"node_id", or_null(failure ? failure->node_id : std::string())},
        {"retry_at", or_null(retry_at)},
    };
}

std::vector<PastAttempt> past_attempts(const std::vector<Event>& events) {
    std::vector<PastAttempt> past;
    bool has_ended = false;
    for (const Event& event : events) {
        if (event.type == EventType::started) {
            past.push_back(begun_by(event));
        }
        if (has_ended && !is_terminal(event.state)) {
            for (PastAttempt& attempt : past) {
                attempt.is_of_this_life =
                    event.type == EventType::started && &attempt == &past.back();
            }
        }
        has_ended = is_terminal(event.state);
        const bool ends_attempt = event.type == EventType::retrying || has_ended;
        if (ends_attempt && !past.empty() && !past.back().ended_at) {
            end_by(past.back(), event);
        }
    }
    return past;
}

}  // namespace comfyd::jobs
