// Python's re over PCRE2: compile, search, replacement templates. Bounded: one position of the text
// may cost a limited number of steps, memory is limited, and a cancelled run stops the search
// before the next item of the pattern is tried.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "engine/nodes/call.hpp"
#include "engine/nodes/text/regex_syntax.hpp"

namespace comfyd::engine::nodes {

// Byte positions in the text.
struct RegexSpan {
    std::size_t begin = 0;
    std::size_t end = 0;
    bool matched = false;

    std::string_view of(std::string_view text) const { return text.substr(begin, end - begin); }
};

class PythonRegex {
public:
    static tl::expected<PythonRegex, RegexProblem> compile(
        std::string_view pattern, RegexFlags flags
    );
    ~PythonRegex();
    PythonRegex(PythonRegex&&) noexcept;
    PythonRegex& operator=(PythonRegex&&) noexcept;

    // The groups of the first match at or after `start`, the whole match first; none: empty.
    // `must_advance` refuses an empty match at `start` itself.
    Result<std::vector<RegexSpan>> search(
        const Call& call, std::string_view text, std::size_t start, bool must_advance
    ) const;
    // Calls found(groups) for each match as Python's finditer does, until it returns false.
    Result<> for_each_match(
        const Call& call,
        std::string_view text,
        const std::function<bool(const std::vector<RegexSpan>&)>& found
    ) const;

    std::size_t groups() const;  // without the whole match
    std::optional<std::size_t> find_group(std::string_view name) const;

private:
    struct Compiled;
    explicit PythonRegex(std::unique_ptr<Compiled> compiled);
    std::unique_ptr<Compiled> compiled_;
};

// A replacement such as "<\1 \g<name>>".
class RegexTemplate {
public:
    static tl::expected<RegexTemplate, RegexProblem> parse(
        std::string_view text, const PythonRegex& regex
    );
    // How many bytes append() adds.
    std::uint64_t size(const std::vector<RegexSpan>& groups) const;
    void append(std::string& out, std::string_view text, const std::vector<RegexSpan>& groups)
        const;

private:
    struct Part {
        std::string literal;               // before the group
        std::optional<std::size_t> group;  // nullopt: the end
    };
    std::vector<Part> parts_;
};

}  // namespace comfyd::engine::nodes
