#include "base/requirement.hpp"

namespace comfyd {
namespace {

constexpr std::string_view kPoolLine = "\tpool\t";  // no class has an empty name

}  // namespace

bool Requirement::can_name(std::string_view text) {
    return !text.empty() && text.find_first_of("\n\t") == std::string_view::npos;
}

Requirement Requirement::of(const std::set<Need>& needs) {
    std::string text;
    for (const Need& need : needs) {
        text += text.empty() ? "" : "\n";
        text += need.class_type;
        if (!need.input.empty()) {
            text.append(1, '\t').append(need.input).append(1, '\t').append(need.value);
        }
    }
    return Requirement(std::move(text));
}

Requirement Requirement::in_pool(std::string_view pool) const {
    const std::string_view rest = needs();
    std::string text;
    if (!pool.empty()) {
        text.append(kPoolLine).append(pool).append(rest.empty() ? "" : "\n");
    }
    return Requirement(std::move(text.append(rest)));
}

std::string_view Requirement::pool() const {
    const std::string_view text = text_;
    return text.starts_with(kPoolLine)
               ? text.substr(kPoolLine.size(), text.find('\n') - kPoolLine.size())
               : std::string_view();
}

std::string_view Requirement::needs() const {
    const std::string_view text = text_;
    return text.starts_with(kPoolLine) ? text.substr(std::min(text.find('\n'), text.size() - 1) + 1)
                                       : text;
}

}  // namespace comfyd
