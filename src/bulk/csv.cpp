#include "bulk/csv.hpp"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "base/text.hpp"

namespace comfyd::bulk {
namespace {

constexpr std::string_view kMark = "\xEF\xBB\xBF";
constexpr std::string_view kSeparators = ",;\t";
constexpr std::string_view kLineEnds = "\r\n";

// Where the first line ends, outside of quotes; npos: not within `text`.
std::size_t end_of_line(std::string_view text) {
    bool is_quoted = false;
    for (std::size_t at = 0; at < text.size(); ++at) {
        is_quoted = is_quoted != (text[at] == '"');
        if (!is_quoted && kLineEnds.find(text[at]) != std::string_view::npos) {
            return at;
        }
    }
    return std::string_view::npos;
}

char most_frequent_separator(std::string_view line) {
    std::size_t counts[kSeparators.size()] = {};
    bool is_quoted = false;
    for (const char c : line) {
        is_quoted = is_quoted != (c == '"');
        const auto place = kSeparators.find(c);
        if (!is_quoted && place != std::string_view::npos) {
            ++counts[place];
        }
    }
    return kSeparators[static_cast<std::size_t>(std::ranges::max_element(counts) - counts)];
}

// Of a line "sep=;", which some programs put before the header and some of those in quotes.
std::optional<char> declared_separator(std::string_view line) {
    if (line.size() >= 2 && line.front() == '"' && line.back() == '"') {
        line = line.substr(1, line.size() - 2);
    }
    if (line.size() == 5 && lower(line.substr(0, 4)) == "sep=") {
        return line[4];
    }
    return std::nullopt;
}

}  // namespace

tl::unexpected<Error> CsvReader::wrong(std::string message) const {
    if (record_ == 0) {
        return fail(
            Code::invalid_argument,
            "the header (line " + std::to_string(begun_at_) + "): " + std::move(message),
            {{"record", 0}, {"line", begun_at_}}
        );
    }
    return wrong_row(record_, begun_at_, std::move(message));
}

Result<> CsvReader::feed(std::string_view piece, Rows& into) {
    if (separator_ != '\0') {
        return read(piece, into);
    }
    start_ += piece;
    return choose_separator(false, into);
}

Result<> CsvReader::choose_separator(bool is_all, Rows& into) {
    if (auto foreign = foreign_encoding(start_)) {
        return fail(std::move(*foreign));
    }
    if (start_.size() > kRowBytesMax) {
        return wrong("the first line has no end");
    }
    // A mark may still be on its way.
    if (!is_all && start_.size() < kMark.size() + 1) {
        return {};
    }
    std::string_view text = start_;
    text.remove_prefix(text.starts_with(kMark) ? kMark.size() : 0);
    const auto end = end_of_line(text);
    if (end == std::string_view::npos && !is_all) {
        return {};
    }
    const std::string_view line = text.substr(0, end);
    if (const auto declared = declared_separator(line)) {
        if (kSeparators.find(*declared) == std::string_view::npos) {
            return wrong("'sep=' must name a comma, a semicolon or a tab");
        }
        separator_ = *declared;
        text.remove_prefix(line.size());
        // The end of that line is read as that of an empty one.
    } else {
        separator_ = most_frequent_separator(line);
    }
    const std::string rest(text);
    start_ = {};
    return read(rest, into);
}

Result<> CsvReader::read(std::string_view piece, Rows& into) {
    for (const char c : piece) {
        if (auto taken = take(c, into); !taken) {
            return taken;
        }
    }
    return {};
}

void CsvReader::count_line(char c) {
    line_ += c == '\r' || (c == '\n' && !after_return_) ? 1 : 0;
    after_return_ = c == '\r';
}

Result<> CsvReader::take(char c, Rows& into) {
    if (c == '\0') {
        return wrong("there is a zero byte in it: this is no text in UTF-8");
    }
    if (++record_bytes_ > kRowBytesMax) {
        return wrong(
            "it is longer than " + std::to_string(kRowBytesMax) +
            " bytes: a quote may not have been closed"
        );
    }
    const bool is_second_half = c == '\n' && after_return_ && at_ != At::quoted;
    if (at_ == At::quoted) {
        count_line(c);
        if (c == '"') {
            at_ = At::after_quote;
        } else {
            cell_.text += c;
        }
        return {};
    }
    if (is_second_half) {
        after_return_ = false;
        begun_at_ = line_;
        record_bytes_ = 0;
        return {};
    }
    return take_plain(c, into);
}

Result<> CsvReader::take_plain(char c, Rows& into) {
    if (c == '\r' || c == '\n') {
        count_line(c);
        return end_record(into);
    }
    after_return_ = false;
    if (c == separator_) {
        end_cell();
        return cells_.size() < kColumnsMax
                   ? Result<>()
                   : wrong("it has more than " + std::to_string(kColumnsMax) + " fields");
    }
    if (c == '"' && at_ == At::field_start) {
        cell_.was_quoted = true;
        at_ = At::quoted;
    } else if (c == '"' && at_ == At::after_quote) {
        cell_.text += c;
        at_ = At::quoted;
    } else if (at_ == At::after_quote) {
        return wrong(
            "field " + std::to_string(cells_.size() + 1) +
            " goes on behind its closing quote: a quote within quotes is written twice"
        );
    } else {
        cell_.text += c;
        at_ = At::plain;
    }
    return {};
}

void CsvReader::end_cell() {
    cells_.push_back(std::move(cell_));
    cell_ = {};
    at_ = At::field_start;
}

Result<> CsvReader::end_record(Rows& into) {
    end_cell();
    std::vector<Cell> cells = std::move(cells_);
    cells_.clear();
    const bool is_empty =
        cells.size() == 1 && cells.front().text.empty() && !cells.front().was_quoted;
    if (!is_empty) {
        for (const Cell& cell : cells) {
            if (!is_utf8(cell.text)) {
                return wrong("it is not in UTF-8: save the file as UTF-8");
            }
        }
        if (header_.empty()) {
            cells_ = std::move(cells);
            if (auto read = read_header(); !read) {
                return read;
            }
            cells_.clear();
            record_ = 1;
        } else {
            if (cells.size() != header_.size()) {
                return wrong(
                    "it has " + std::to_string(cells.size()) + " fields, but the header has " +
                    std::to_string(header_.size())
                );
            }
            Row row{record_, begun_at_, {}, true};
            for (std::size_t i = 0; i < cells.size(); ++i) {
                if (!cells[i].text.empty() || cells[i].was_quoted) {
                    row.values[header_[i]] = cells[i].text;
                }
            }
            into.push_back(std::move(row));
            ++record_;
        }
    }
    begun_at_ = line_;
    record_bytes_ = 0;
    return {};
}

Result<> CsvReader::read_header() {
    std::unordered_set<std::string_view> seen;
    for (const Cell& cell : cells_) {
        const std::string_view name = trim(cell.text);
        if (name.empty()) {
            return wrong("column " + std::to_string(header_.size() + 1) + " has no name");
        }
        header_.emplace_back(name);
        if (!seen.insert(name).second) {
            return wrong("two columns are named '" + header_.back() + "'");
        }
    }
    return {};
}

Result<> CsvReader::finish(Rows& into) {
    if (separator_ == '\0') {
        if (auto chosen = choose_separator(true, into); !chosen) {
            return chosen;
        }
    }
    if (at_ == At::quoted) {
        return wrong("a quote in field " + std::to_string(cells_.size() + 1) + " is never closed");
    }
    if (record_bytes_ > 0) {
        if (auto ended = end_record(into); !ended) {
            return ended;
        }
    }
    return header_.empty()
               ? Result<>(fail(
                     Code::invalid_argument, "the file is empty: its first line names the columns"
                 ))
               : Result<>();
}

}  // namespace comfyd::bulk
