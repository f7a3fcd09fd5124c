#include "bulk/rows.hpp"

#include <utility>

#include "base/text.hpp"
#include "bulk/csv.hpp"
#include "bulk/json_rows.hpp"

namespace comfyd::bulk {

std::optional<RowFormat> parse_row_format(std::string_view name) {
    if (name == "csv") {
        return RowFormat::csv;
    }
    if (name == "jsonl") {
        return RowFormat::jsonl;
    }
    if (name == "json") {
        return RowFormat::json;
    }
    return std::nullopt;
}

std::optional<RowFormat> guess_row_format(
    std::string_view file_name, std::string_view content_type
) {
    const std::string name = lower(file_name);
    if (name.ends_with(".csv") || name.ends_with(".tsv")) {
        return RowFormat::csv;
    }
    if (name.ends_with(".jsonl") || name.ends_with(".ndjson")) {
        return RowFormat::jsonl;
    }
    if (name.ends_with(".json")) {
        return RowFormat::json;
    }
    const std::string type = lower(trim(content_type.substr(0, content_type.find(';'))));
    if (type == "text/csv" || type == "text/tab-separated-values") {
        return RowFormat::csv;
    }
    if (type == "application/jsonl" || type == "application/x-ndjson" ||
        type == "application/x-jsonlines") {
        return RowFormat::jsonl;
    }
    return type == "application/json" ? std::optional(RowFormat::json) : std::nullopt;
}

std::unique_ptr<RowReader> make_row_reader(RowFormat format) {
    switch (format) {
        case RowFormat::csv:
            return std::make_unique<CsvReader>();
        case RowFormat::jsonl:
            return std::make_unique<JsonLinesReader>();
        case RowFormat::json:
            break;
    }
    return std::make_unique<JsonArrayReader>();
}

tl::unexpected<Error> wrong_row(std::size_t record, std::size_t line, std::string message) {
    return fail(
        Code::invalid_argument,
        "record " + std::to_string(record) + " (line " + std::to_string(line) +
            "): " + std::move(message),
        {{"record", record}, {"line", line}}
    );
}

std::optional<Error> foreign_encoding(std::string_view first_bytes) {
    const bool has_mark =
        first_bytes.starts_with("\xFF\xFE") || first_bytes.starts_with("\xFE\xFF");
    if (!has_mark && first_bytes.substr(0, 4).find('\0') == std::string_view::npos) {
        return std::nullopt;
    }
    return Error(
        Code::invalid_argument,
        "the file is in UTF-16: save it as UTF-8 (in Excel: \"CSV UTF-8\")",
        {{"encoding", "UTF-16"}}
    );
}

bool is_utf8(std::string_view text) {
    for (std::size_t at = 0; at < text.size();) {
        const auto byte = [&](std::size_t place) {
            return place < text.size() ? static_cast<unsigned char>(text[place]) : 0U;
        };
        const unsigned first = byte(at);
        const std::size_t length = first < 0x80                     ? 1
                                   : first >= 0xC2 && first <= 0xDF ? 2
                                   : first >= 0xE0 && first <= 0xEF ? 3
                                   : first >= 0xF0 && first <= 0xF4 ? 4
                                                                    : 0;
        if (length == 0) {
            return false;
        }
        for (std::size_t i = 1; i < length; ++i) {
            if ((byte(at + i) & 0xC0U) != 0x80) {
                return false;
            }
        }
        const unsigned second = byte(at + 1);
        const bool is_overlong =
            (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
        const bool is_no_point =
            (first == 0xED && second > 0x9F) || (first == 0xF4 && second > 0x8F);
        if (is_overlong || is_no_point) {
            return false;
        }
        at += length;
    }
    return true;
}

}  // namespace comfyd::bulk
