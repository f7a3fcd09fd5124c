// Rows as JSON: an object on each line, or an array of objects. Pure; one thread.
#pragma once

#include <string>

#include "bulk/rows.hpp"

namespace comfyd::bulk {

// Lines end in LF or CRLF; empty ones count for nothing.
class JsonLinesReader final : public RowReader {
public:
    Result<> feed(std::string_view piece, Rows& into) override;
    Result<> finish(Rows& into) override;

private:
    Result<> end_line(Rows& into);

    std::string text_;  // of the line
    std::size_t line_ = 1;
    std::size_t record_ = 1;
};

class JsonArrayReader final : public RowReader {
public:
    Result<> feed(std::string_view piece, Rows& into) override;
    Result<> finish(Rows& into) override;

private:
    enum class At { mark, start, element_or_end, element, within, end };

    Result<> take(char c, Rows& into);
    Result<> take_between(char c);
    void take_within(char c);
    Result<> end_element(Rows& into);
    tl::unexpected<Error> wrong(std::string message) const;

    At at_ = At::mark;
    std::size_t mark_bytes_ = 0;
    std::string text_;  // of the element
    std::size_t depth_ = 0;
    bool is_quoted_ = false;
    bool is_escaped_ = false;
    std::size_t line_ = 1;
    std::size_t begun_at_ = 1;
    std::size_t record_ = 1;
};

}  // namespace comfyd::bulk
