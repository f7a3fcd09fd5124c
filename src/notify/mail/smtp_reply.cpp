#include "notify/mail/smtp_reply.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/text.hpp"

namespace comfyd::notify::mail {
namespace {

constexpr std::size_t kLinesMax = 128;
constexpr std::size_t kShownBytesMax = 300;

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

// "5.7.8 Bad credentials" -> "5.7.8"
std::string_view enhanced_code(std::string_view text) {
    const std::string_view word = text.substr(0, text.find(' '));
    const auto dots = std::ranges::count(word, '.');
    const bool is_code = word.size() >= 5 && dots == 2 && is_digit(word.front()) &&
                         is_digit(word.back()) &&
                         std::ranges::all_of(word, [](char c) { return is_digit(c) || c == '.'; });
    return is_code ? word : std::string_view();
}

std::string upper(std::string_view text) {
    std::string made(text);
    std::ranges::transform(made, made.begin(), [](char c) {
        return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    });
    return made;
}

std::vector<std::string> words_of(std::string_view text) {
    std::vector<std::string> words;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find(' '), text.size());
        if (end > 0) {
            words.push_back(upper(text.substr(0, end)));
        }
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return words;
}

}  // namespace

std::string Reply::to_string() const {
    std::string shown = std::to_string(code);
    for (const std::string& line : lines) {
        shown += ' ';
        // A server's words go into logs and dead letters: no control characters.
        for (const char c : line) {
            shown += c >= ' ' && c != '\x7f' ? c : ' ';
        }
    }
    if (shown.size() > kShownBytesMax) {
        shown.resize(kShownBytesMax);
        shown += "…";
    }
    return shown;
}

Result<bool> ReplyReader::add(std::string_view line) {
    int code = 0;
    const bool has_code = line.size() >= 3 && is_digit(line[0]) && is_digit(line[1]) &&
                          is_digit(line[2]) &&
                          (line.size() == 3 || line[3] == ' ' || line[3] == '-');
    if (has_code) {
        std::from_chars(line.data(), line.data() + 3, code);
    }
    const bool is_first = reply_.lines.empty();
    if (code < 200 || code > 599 || (!is_first && code != reply_.code)) {
        return fail(Code::protocol_error, "the mail server's answer is not SMTP");
    }
    if (reply_.lines.size() >= kLinesMax) {
        return fail(Code::protocol_error, "the mail server's answer does not end");
    }
    reply_.code = code;
    const std::string_view text = line.substr(std::min<std::size_t>(4, line.size()));
    if (is_first) {
        reply_.enhanced = enhanced_code(text);
    }
    reply_.lines.emplace_back(text);
    return line.size() == 3 || line[3] == ' ';
}

Reply ReplyReader::take() {
    return std::exchange(reply_, Reply());
}

bool Capabilities::has_auth(std::string_view mechanism) const {
    return std::ranges::find(auth, mechanism) != auth.end();
}

Capabilities Capabilities::from(const Reply& hello) {
    Capabilities found;
    for (std::size_t i = 1; i < hello.lines.size(); ++i) {  // the first one greets
        // Some old servers write "AUTH=PLAIN".
        std::string line = hello.lines[i];
        std::ranges::replace(line, '=', ' ');
        std::vector<std::string> words = words_of(line);
        if (words.empty()) {
            continue;
        }
        if (words[0] == "STARTTLS") {
            found.starttls = true;
        } else if (words[0] == "SMTPUTF8") {
            found.smtputf8 = true;
        } else if (words[0] == "AUTH") {
            found.auth.insert(found.auth.end(), words.begin() + 1, words.end());
        } else if (words[0] == "SIZE" && words.size() > 1) {
            std::uint64_t size = 0;
            const auto [end, error] =
                std::from_chars(words[1].data(), words[1].data() + words[1].size(), size);
            if (error == std::errc() && size > 0) {  // 0: no limit
                found.size_max = size;
            }
        }
    }
    return found;
}

}  // namespace comfyd::notify::mail
