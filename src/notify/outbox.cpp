#include "notify/outbox.hpp"

#include "base/json.hpp"

namespace comfyd::notify {
namespace {

constexpr std::size_t kNoteErrorBytesMax = 256;

std::int64_t integer_of(const json::object& from, std::string_view key) {
    return json::find_int(from, key).value_or(std::nullopt).value_or(0);
}

}  // namespace

std::string encode_log(const AttemptLog& log) {
    json::array notes;
    const std::size_t first = log.size() > kAttemptLogMax ? log.size() - kAttemptLogMax : 0;
    for (std::size_t i = first; i < log.size(); ++i) {
        json::object note{
            {"at", to_unix_ms(log[i].at)}, {"status", log[i].status}, {"ms", log[i].took.count()}
        };
        if (!log[i].error.empty()) {
            note["error"] = log[i].error.substr(0, kNoteErrorBytesMax);
        }
        notes.emplace_back(std::move(note));
    }
    return json::serialize(notes);
}

AttemptLog decode_log(std::string_view text) {
    AttemptLog log;
    const auto notes = json::parse(text);
    if (!notes || !notes->is_array()) {
        return log;
    }
    for (const json::value& entry : notes->get_array()) {
        if (!entry.is_object()) {
            continue;
        }
        const json::object& note = entry.get_object();
        log.push_back(
            {from_unix_ms(integer_of(note, "at")),
             static_cast<int>(integer_of(note, "status")),
             Millis(integer_of(note, "ms")),
             json::find_string(note, "error").value_or(std::nullopt).value_or("")}
        );
    }
    return log;
}

}  // namespace comfyd::notify
