#include "notify/story.hpp"

namespace comfyd::notify {
namespace {

// What is told of a failure at most; the whole of it is in the API.
constexpr std::size_t kReasonBytesMax = 600;
constexpr std::size_t kLinksMax = 20;

std::string text_of(const json::object& from, std::string_view key) {
    const json::value* found = json::find(from, key);
    return found != nullptr && found->is_string() ? std::string(found->get_string()) : "";
}

std::string cut(std::string text, std::size_t bytes_max) {
    if (text.size() > bytes_max) {
        std::size_t end = bytes_max;
        while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) {
            --end;  // never within a character
        }
        text.resize(end);
        text += "…";
    }
    return text;
}

struct Wording {
    std::string_view title;
    std::string_view sentence;
};

Wording wording_of(jobs::EventType type) {
    switch (type) {
        case jobs::EventType::queued:
            return {"Job queued", "The job waits for a worker."};
        case jobs::EventType::started:
            return {"Job started", "The job runs on a worker."};
        case jobs::EventType::retrying:
            return {"Job is tried again", "An attempt failed. Another one follows."};
        case jobs::EventType::cancelling:
            return {"Job is being cancelled", "The job was asked to stop."};
        case jobs::EventType::completed:
            return {"Job completed", "The job has finished and its results are stored."};
        case jobs::EventType::failed:
            return {"Job failed", "The job has failed and will not be tried again by itself."};
        case jobs::EventType::cancelled:
            return {"Job cancelled", "The job was cancelled."};
        case jobs::EventType::expired:
            return {"Job expired", "The job did not finish before its deadline."};
        case jobs::EventType::warning:
            return {"Job accepted with a warning", "Not everything is done as it was asked for."};
        case jobs::EventType::progress:
        case jobs::EventType::output:
        case jobs::EventType::preview:
            break;
    }
    return {"Job is running", "The job makes progress."};
}

void add_failure(Story& story, const jobs::Event& event) {
    const json::value* error = json::find(event.data, "error");
    if (error == nullptr || !error->is_object()) {
        return;
    }
    const json::object& failure = error->get_object();
    story.facts.emplace_back("Reason", cut(text_of(failure, "message"), kReasonBytesMax));
    story.facts.emplace_back("Error code", text_of(failure, "code"));
    const std::string node = text_of(failure, "node_id");
    if (!node.empty()) {
        const std::string kind = text_of(failure, "class_type");
        story.facts.emplace_back("Node", kind.empty() ? node : node + " (" + kind + ")");
    }
    story.facts.emplace_back("What to do", text_of(failure, "suggested_action"));
}

void add_warnings(Story& story, const jobs::Event& event) {
    const json::value* warnings = json::find(event.data, "warnings");
    if (warnings == nullptr || !warnings->is_array()) {
        return;
    }
    for (const json::value& warning : warnings->get_array()) {
        const std::string text =
            warning.is_string() ? std::string(warning.get_string()) : json::serialize(warning);
        story.facts.emplace_back("Warning", cut(text, kReasonBytesMax));
    }
}

}  // namespace

std::string show_time(Time time) {
    std::string text = to_rfc3339(time);
    text[10] = ' ';
    return text.substr(0, 19) + " UTC";
}

std::string show_duration(Millis duration) {
    const auto ms = duration.count();
    if (ms < 1000) {
        return std::to_string(ms) + " ms";
    }
    if (ms < 60'000) {
        return std::to_string(ms / 1000) + "." + std::to_string(ms % 1000 / 100) + " s";
    }
    if (ms < 3'600'000) {
        return std::to_string(ms / 60'000) + " min " + std::to_string(ms % 60'000 / 1000) + " s";
    }
    return std::to_string(ms / 3'600'000) + " h " + std::to_string(ms % 3'600'000 / 60'000) +
           " min";
}

Story tell(const jobs::Job& job, const jobs::Event& event, std::vector<Link> links) {
    const Wording wording = wording_of(event.type);
    Story story;
    story.title = wording.title;
    if (!job.workflow_id.empty()) {
        story.title += ": " + cut(job.workflow_id, 100);
    }
    story.sentence = wording.sentence;
    story.facts.emplace_back("Job", job.id.to_string());
    story.facts.emplace_back("Tenant", job.tenant);
    if (!job.workflow_id.empty()) {
        story.facts.emplace_back("Workflow", job.workflow_id);
    }
    add_failure(story, event);
    add_warnings(story, event);
    story.facts.emplace_back("When", show_time(event.at));
    if (is_terminal(event.state) && job.started_at && *job.started_at <= event.at) {
        story.facts.emplace_back("Ran for", show_duration(event.at - *job.started_at));
    }
    std::erase_if(story.facts, [](const auto& fact) { return fact.second.empty(); });
    story.links = std::move(links);
    if (story.links.size() > kLinksMax) {
        story.links.resize(kLinksMax);
    }
    return story;
}

}  // namespace comfyd::notify
