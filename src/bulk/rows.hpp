// Rows of a table of parameter sets, as it comes in: pieces of bytes go in, rows come out. Memory
// holds one row and what of the piece is not read yet. Pure; one thread.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/json.hpp"

namespace comfyd::bulk {

struct Row {
    std::size_t record = 0;  // from 1, without a header
    std::size_t line = 0;    // where it begins in the file, from 1
    json::object values;
    bool is_text = false;  // the values are texts, whatever they stand for
};
using Rows = std::vector<Row>;

class RowReader {
public:
    virtual ~RowReader() = default;
    // Adds the rows that are complete now. After a failure (Code::invalid_argument, with record and
    // line where there is one) it is of no more use.
    virtual Result<> feed(std::string_view piece, Rows& into) = 0;
    virtual Result<> finish(Rows& into) = 0;
};

enum class RowFormat { csv, jsonl, json };
std::optional<RowFormat> parse_row_format(std::string_view name);  // "csv", "jsonl", "json"
// By the name of the file, or else its content type.
std::optional<RowFormat> guess_row_format(
    std::string_view file_name, std::string_view content_type
);

inline constexpr std::size_t kRowBytesMax = 8 * 1024 * 1024;

std::unique_ptr<RowReader> make_row_reader(RowFormat format);

// "record 3 (line 7): …", with both as details.
tl::unexpected<Error> wrong_row(std::size_t record, std::size_t line, std::string message);

// A text in UTF-16, as Excel saves "Unicode text", is refused by its name: nullopt for other bytes.
std::optional<Error> foreign_encoding(std::string_view first_bytes);
// Whether it may be kept as text.
bool is_utf8(std::string_view text);

}  // namespace comfyd::bulk
