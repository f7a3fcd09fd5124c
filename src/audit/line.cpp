#include "audit/line.hpp"

#include <array>
#include <utility>

#include "base/crypto.hpp"

namespace comfyd::audit {
namespace {

constexpr std::size_t kTextBytesMax = 256;
constexpr std::size_t kHashBytes = 64;
constexpr std::string_view kHashMember = ",\"hash\":\"";
constexpr std::string_view kEnd = "\"}";

// What strangers send stands in paths: it must not break a terminal, nor the form of a line.
std::string shown(std::string_view text) {
    std::string clean;
    for (const char c : text.substr(0, kTextBytesMax)) {
        clean += c >= ' ' && c < '\x7f' ? c : '?';
    }
    return json::quoted(clean);
}

std::string_view outcome_of(int status) {
    return status < 400 ? "ok" : status < 500 ? "refused" : "failed";
}

std::string begin_line(Time at, std::string_view node, std::string_view action, const Link& link) {
    return "{\"seq\":" + std::to_string(link.seq + 1) + ",\"time\":\"" + to_rfc3339(at) +
           "\",\"node\":" + shown(node) + ",\"action\":" + shown(action);
}

std::string end_line(std::string text, Link& link) {
    text += ",\"prev\":\"" + link.hash + '"';
    link.hash = to_hex(sha256(text));
    ++link.seq;
    text += kHashMember;
    text += link.hash;
    text += kEnd;
    return text;
}

bool is_hash(std::string_view text) {
    return text.size() == kHashBytes &&
           text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace

std::string make_line(const Event& event, std::string_view node, Link& link) {
    std::string text = begin_line(event.at, node, event.action, link);
    if (event.status != 0) {
        text += ",\"outcome\":\"";
        text += outcome_of(event.status);
        text += "\",\"status\":" + std::to_string(event.status);
    }
    const std::array<std::pair<std::string_view, std::string_view>, 12> members{{
        {"error", event.error},
        {"tenant", event.tenant},
        {"key", event.key},
        {"key_id", event.key_id},
        {"subject", event.subject},
        {"from", event.from},
        {"request", event.request},
        {"trace", event.trace},
        {"method", event.method},
        {"route", event.route},
        {"object", event.object},
        {"note", event.note},
    }};
    for (const auto& [name, value] : members) {
        if (!value.empty()) {
            text += ",\"";
            text += name;
            text += "\":" + shown(value);
        }
    }
    if (event.count != 1) {
        text += ",\"count\":" + std::to_string(event.count);
    }
    return end_line(std::move(text), link);
}

std::string make_checkpoint(Time at, std::string_view node, const Seal& seal, Link& link) {
    std::string text = begin_line(at, node, kCheckpoint, link);
    text += ",\"public_key\":\"" + seal.key + "\",\"signature\":\"" + seal.signature + '"';
    return end_line(std::move(text), link);
}

std::string sealed_text(std::string_view time, std::string_view node, const Link& link) {
    std::string text = "comfyd audit checkpoint\n";
    text += time;
    text += '\n';
    text += node;
    text += '\n' + std::to_string(link.seq) + '\n' + link.hash + '\n';
    return text;
}

std::optional<Line> read_line(std::string_view text) {
    constexpr std::size_t kTail = kHashMember.size() + kHashBytes + kEnd.size();
    if (text.size() <= kTail || text.size() > kLineBytesMax) {
        return std::nullopt;
    }
    const std::string_view hashed = text.substr(0, text.size() - kTail);
    const std::string_view tail = text.substr(hashed.size());
    auto members = json::parse_object(text);
    if (!members || !tail.starts_with(kHashMember)) {
        return std::nullopt;
    }
    Line line;
    line.members = std::move(*members);
    line.prev = text_of(line, "prev");
    line.hash = std::string(tail.substr(kHashMember.size(), kHashBytes));
    const auto seq = json::find_int(line.members, "seq").value_or(std::nullopt);
    if (!seq || *seq < 1 || !is_hash(line.prev) || !is_hash(line.hash)) {
        return std::nullopt;
    }
    line.seq = static_cast<std::uint64_t>(*seq);
    line.is_whole = to_hex(sha256(hashed)) == line.hash;
    return line;
}

std::string text_of(const Line& line, std::string_view member) {
    return json::find_string(line.members, member).value_or(std::nullopt).value_or("");
}

}  // namespace comfyd::audit
