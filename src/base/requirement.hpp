// What a worker must have to run a job: a machine as the request wants it, node classes, and
// choices such as model files that not every worker offers.
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace comfyd {

// What a request says of the machine that runs it. Empty and 0: nothing.
struct MachineWish {
    static constexpr double kMemoryMax = 4096;

    std::string pool{};
    std::string gpu{};  // a kind of GPU; is_gpu() says what is one
    std::string region{};
    double memory_gb = 0;  // that its GPU must have, at most kMemoryMax
    // From 0 to 1: of its GPU's memory, what the job may take. No worker lacks it.
    double memory_part = 0;

    // What least_gpu_memory() makes of memory_gb.
    std::uint64_t memory_bytes() const;
    // Of its text members.
    static bool can_name(std::string_view text);
    bool operator==(const MachineWish&) const = default;
};

// What a worker is, for such wishes.
struct MachineFacts {
    std::string_view pool{};
    std::string_view gpu{};
    std::string_view region{};
    // 0: not known, and then it has not enough. What "cpu" has does not count.
    std::uint64_t gpu_memory_bytes = 0;
};

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

    // The same, of such a machine alone. Memory is rounded up to halves of a gigabyte and parts to
    // hundredths: there are not as many requirements as there are numbers.
    Requirement on(const MachineWish& machine) const;
    MachineWish machine() const;
    // The same, of a worker of this pool alone; empty: of any.
    Requirement in_pool(std::string_view pool) const;
    std::string_view pool() const;  // empty: any
    bool allows_pool(std::string_view pool) const {
        return this->pool().empty() || this->pool() == pool;
    }
    // Some machines of a pool may not do.
    bool is_particular() const;
    bool allows(const MachineFacts& machine) const;
    // In words, each to follow "lacks": "the GPU 'RTX 4090' (it has 'NVIDIA L40S')".
    std::vector<std::string> missing_of(const MachineFacts& machine) const;
    // Without what no worker lacks.
    Requirement musts() const;
    // All that is said of the machine, as one text; equal texts say the same.
    std::string_view machine_text() const;

    // Needs in their order, until `visit(class_type, input, value)` says false; false: it has.
    template <class Visit>
    bool each(Visit visit) const;

    const std::string& encoded() const { return text_; }
    static Requirement decode(std::string text) { return Requirement(std::move(text)); }

    bool operator==(const Requirement&) const = default;

private:
    explicit Requirement(std::string text) : text_(std::move(text)) {}
    std::string_view needs() const;
    std::string_view member(std::string_view line) const;

    // A need a line: "class" or "class\tinput\tvalue"; before them "\tpool\tname" and the like,
    // where something is said of the machine.
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
