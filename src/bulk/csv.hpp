// Comma-separated values: RFC 4180, and what programs really write. UTF-8 with or without its mark;
// fields parted by comma, semicolon or tab, whichever the header has most of, or as a first line
// "sep=;" says; lines that end in CRLF, LF or CR. Quotes are doubled within quotes and never
// escaped; line breaks may stand there. Empty lines count for nothing.
//
// The first record is the header: each column has a name, once. An empty field is not given at all;
// one that is written as "" is an empty text.
#pragma once

#include <string>
#include <vector>

#include "bulk/rows.hpp"

namespace comfyd::bulk {

class CsvReader final : public RowReader {
public:
    static constexpr std::size_t kColumnsMax = 1'000;

    Result<> feed(std::string_view piece, Rows& into) override;
    Result<> finish(Rows& into) override;

private:
    enum class At { field_start, plain, quoted, after_quote };
    struct Cell {
        std::string text;
        bool was_quoted = false;
    };

    Result<> choose_separator(bool is_all, Rows& into);
    Result<> read(std::string_view piece, Rows& into);
    Result<> take(char c, Rows& into);
    Result<> take_plain(char c, Rows& into);
    void count_line(char c);
    void end_cell();
    Result<> end_record(Rows& into);
    Result<> read_header();
    tl::unexpected<Error> wrong(std::string message) const;

    std::string start_;  // until the separator is known
    char separator_ = '\0';
    At at_ = At::field_start;
    bool after_return_ = false;  // a line feed right behind it belongs to it
    std::size_t line_ = 1;       // that is being read
    std::size_t begun_at_ = 1;   // the line of the record
    std::size_t record_bytes_ = 0;
    std::size_t record_ = 0;  // 0: the header
    Cell cell_;
    std::vector<Cell> cells_;
    std::vector<std::string> header_;
};

}  // namespace comfyd::bulk
