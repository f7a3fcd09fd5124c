// What a worker must have to run a job: its pool, node classes, and choices such as model files
// that not every worker offers.
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace comfyd {

// Held as the one text that the ledger keeps of it: of many waiting jobs each has one, and they are
// compared more often than they are looked into.
class Requirement {
public:
    struct Need {
        std::string class_type;
        std::string input{};  // empty: the class alone
        std::string value{};  // that the input must offer

        auto operator<=>(const Need&) const = default;
    };

    Requirement() = default;  // any worker
    // REQUIRES: can_name() of all their texts.
    static Requirement of(const std::set<Need>& needs);
    // Other names are needs of nobody.
    static bool can_name(std::string_view text);

    // The same, of a worker of this pool alone; empty: of any.
    Requirement in_pool(std::string_view pool) const;
    std::string_view pool() const;  // empty: any
    bool allows_pool(std::string_view pool) const {
        return this->pool().empty() || this->pool() == pool;
    }

    // Needs in their order, until `visit(class_type, input, value)` says false; false: it has.
    template <class Visit>
    bool each(Visit visit) const;

    const std::string& encoded() const { return text_; }
    static Requirement decode(std::string text) { return Requirement(std::move(text)); }

    bool operator==(const Requirement&) const = default;

private:
    explicit Requirement(std::string text) : text_(std::move(text)) {}
    std::string_view needs() const;

    // A need a line: "class" or "class\tinput\tvalue"; before them "\tpool\tname" where there is a
    // pool.
    std::string text_;
};

template <class Visit>
bool Requirement::each(Visit visit) const {
    std::string_view rest = needs();
    while (!rest.empty()) {
        const auto end = std::min(rest.find('\n'), rest.size());
        const std::string_view line = rest.substr(0, end);
        rest.remove_prefix(std::min(end + 1, rest.size()));
        const auto first = std::min(line.find('\t'), line.size());
        const std::string_view choice = line.substr(std::min(first + 1, line.size()));
        const auto second = std::min(choice.find('\t'), choice.size());
        if (!visit(
                line.substr(0, first),
                choice.substr(0, second),
                choice.substr(std::min(second + 1, choice.size()))
            )) {
            return false;
        }
    }
    return true;
}

}  // namespace comfyd

template <>
struct std::hash<comfyd::Requirement> {
    std::size_t operator()(const comfyd::Requirement& of) const noexcept {
        return std::hash<std::string>()(of.encoded());
    }
};
