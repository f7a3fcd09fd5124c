#include "comfy/jobs_list.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "base/text.hpp"
#include "comfy/members.hpp"

namespace comfyd::comfy {
namespace {

constexpr std::array<std::pair<JobStatus, std::string_view>, 5> kStatuses{{
    {JobStatus::pending, "pending"},
    {JobStatus::in_progress, "in_progress"},
    {JobStatus::completed, "completed"},
    {JobStatus::failed, "failed"},
    {JobStatus::cancelled, "cancelled"},
}};

std::optional<std::string> read_statuses(std::string_view text, JobsQuery& into) {
    while (!text.empty()) {
        const auto comma = std::min(text.find(','), text.size());
        const std::string_view word = trim(text.substr(0, comma), " ");
        text.remove_prefix(std::min(comma + 1, text.size()));
        if (word.empty()) {
            continue;
        }
        const auto status = parse_job_status(word);
        if (!status) {
            return "Invalid status value(s): " + std::string(word) +
                   ". Valid values: pending, in_progress, completed, failed, cancelled";
        }
        into.statuses.push_back(*status);
    }
    return std::nullopt;
}

// What is wrong, or nullopt.
std::optional<std::string> read_one(
    const std::string& name, const std::string& value, JobsQuery& into
) {
    if (name == "status") {
        return read_statuses(value, into);
    }
    if (name == "workflow_id") {
        into.workflow_id = value;
    } else if (name == "sort_by") {
        if (value != "created_at" && value != "execution_duration") {
            return "sort_by must be one of: ['created_at', 'execution_duration']";
        }
        into.by_duration = value == "execution_duration";
    } else if (name == "sort_order") {
        if (value != "asc" && value != "desc") {
            return "sort_order must be 'asc' or 'desc'";
        }
        into.ascending = value == "asc";
    } else if (name == "limit") {
        const auto limit = python_integer(value);
        if (!limit) {
            return "limit must be an integer";
        }
        if (*limit <= 0) {
            return "limit must be a positive integer";
        }
        into.limit = static_cast<std::size_t>(*limit);
    } else if (name == "offset") {
        const auto offset = python_integer(value);
        if (!offset) {
            return "offset must be an integer";
        }
        into.offset = static_cast<std::size_t>(std::max<std::int64_t>(*offset, 0));
    }
    return std::nullopt;
}

template <std::size_t N>
bool ends_with_any(std::string_view name, const std::array<std::string_view, N>& endings) {
    const std::string lowered = lower(name);
    return std::ranges::any_of(endings, [&lowered](std::string_view ending) {
        return lowered.ends_with(ending);
    });
}

bool is_shape(std::string_view name) {
    return ends_with_any<5>(name, {".obj", ".fbx", ".gltf", ".glb", ".usdz"});
}

bool is_text_file(std::string_view key, const json::object& file) {
    return key == "text" || ends_with_any<3>(text_of(file, "filename"), {".txt", ".md", ".json"});
}

// What a page can show, by the key of the list that the file stands in.
bool is_previewable(std::string_view key, const json::object& file) {
    constexpr std::array<std::string_view, 4> kKinds{"images", "video", "audio", "3d"};
    const std::string format = text_of(file, "format");
    return std::ranges::find(kKinds, key) != kKinds.end() || format.starts_with("video/") ||
           format.starts_with("audio/") || is_shape(text_of(file, "filename")) ||
           is_text_file(key, file);
}

// Some nodes name a model of a shape by its file alone.
json::object shape_file(std::string_view name) {
    return {{"filename", name}, {"subfolder", ""}, {"type", "output"}, {"mediaType", "3d"}};
}

constexpr std::size_t kTextShown = 1024;  // characters

json::object text_preview(std::string_view text) {
    std::size_t end = 0;
    for (std::size_t shown = 0; end < text.size() && shown < kTextShown; ++shown) {
        ++end;
        while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80) {
            ++end;  // the rest of a character in UTF-8
        }
    }
    json::object preview{{"content", text.substr(0, end)}};
    if (end < text.size()) {
        preview["truncated"] = true;
    }
    return preview;
}

class Tally {
public:
    void add(std::string_view node, std::string_view key, const json::array& list) {
        for (const json::value& element : list) {
            if (const json::object* file = element.if_object()) {
                add_file(node, key, *file);
            } else if (const auto* text = element.if_string();
                       text != nullptr && is_shape(view(*text))) {
                add_file(node, key, shape_file(view(*text)));
            } else if (text != nullptr && key == "text") {
                offer(Rank::text, node, key, text_preview(view(*text)));
            }
        }
    }
    OutputsSummary take() { return std::move(summary_); }

private:
    // A picture says more than a text, and one that is saved more than a temporary one.
    enum class Rank { none, text, text_file, temporary, saved };

    void add_file(std::string_view node, std::string_view key, const json::object& file) {
        ++summary_.count;
        if (!is_previewable(key, file)) {
            return;
        }
        ++summary_.previewable;
        const bool is_saved = text_of(file, "type") == "output";
        const Rank rank = is_text_file(key, file) ? Rank::text_file
                          : is_saved              ? Rank::saved
                                                  : Rank::temporary;
        offer(rank, node, key, file);
    }

    void offer(Rank rank, std::string_view node, std::string_view key, json::object preview) {
        if (rank <= rank_) {
            return;
        }
        rank_ = rank;
        preview["nodeId"] = node;
        preview.emplace("mediaType", key);
        summary_.preview = std::move(preview);
    }

    OutputsSummary summary_;
    Rank rank_ = Rank::none;
};

}  // namespace

std::string_view to_string(JobStatus status) {
    return kStatuses[static_cast<std::size_t>(status)].second;
}

std::optional<JobStatus> parse_job_status(std::string_view name) {
    const auto* found =
        std::ranges::find_if(kStatuses, [name](const auto& entry) { return entry.second == name; });
    return found == kStatuses.end() ? std::nullopt : std::optional(found->first);
}

bool JobsQuery::wants(JobStatus status) const {
    return statuses.empty() || std::ranges::find(statuses, status) != statuses.end();
}

tl::expected<JobsQuery, std::string> parse_jobs_query(
    const std::vector<std::pair<std::string, std::string>>& query
) {
    JobsQuery parsed;
    for (const auto& [name, value] : query) {
        if (auto wrong = read_one(name, value, parsed)) {
            return tl::unexpected(std::move(*wrong));
        }
    }
    return parsed;
}

std::optional<std::int64_t> python_integer(std::string_view text) {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (end != text.data() + text.size() || error == std::errc::invalid_argument) {
        return std::nullopt;
    }
    using Limits = std::numeric_limits<std::int64_t>;
    return error == std::errc() ? number : text.starts_with('-') ? Limits::min() : Limits::max();
}

json::object pagination(const JobsQuery& query, std::size_t total, bool has_more) {
    json::object page;
    page["offset"] = query.offset;
    page["limit"] = query.limit ? json::value(*query.limit) : json::value();
    page["total"] = total;
    page["has_more"] = has_more;
    return page;
}

OutputsSummary summarise_outputs(const json::object& outputs) {
    Tally tally;
    for (const auto& [node, ui] : outputs) {
        const json::object* lists = ui.if_object();
        if (lists == nullptr) {
            continue;
        }
        for (const auto& [key, list] : *lists) {
            if (key != "animated" && list.is_array()) {
                tally.add(node, key, list.get_array());
            }
        }
    }
    return tally.take();
}

void add_summary(json::object& job, const OutputsSummary& summary) {
    job["outputs_count"] = summary.count;
    job["previewable_outputs_count"] = summary.previewable;
    if (summary.preview) {
        job["preview_output"] = *summary.preview;
    }
}

std::string workflow_id_of(const json::object& extra_data) {
    const json::object* info = object_of(extra_data, "extra_pnginfo");
    const json::object* graph = info == nullptr ? nullptr : object_of(*info, "workflow");
    return graph == nullptr ? std::string() : text_of(*graph, "id");
}

}  // namespace comfyd::comfy
