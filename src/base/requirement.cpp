#include "base/requirement.hpp"

#include <charconv>
#include <cmath>
#include <cstdio>

#include "base/gpu_name.hpp"
#include "base/text.hpp"

namespace comfyd {
namespace {

// In this order, before the needs: no class has an empty name.
constexpr std::string_view kPool = "\tpool\t";
constexpr std::string_view kGpu = "\tgpu\t";
constexpr std::string_view kMemory = "\tmemory\t";  // in gigabytes
constexpr std::string_view kRegion = "\tregion\t";
constexpr std::string_view kPart = "\tpart\t";  // in hundredths

void add_line(std::string& text, std::string_view name, std::string_view value) {
    if (!value.empty()) {
        text.append(name).append(value).append(1, '\n');
    }
}

std::string shown(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.6g", value);
    return text;
}

double number_in(std::string_view text) {
    double number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
}

// Up to the next multiple of 1/steps; nothing that is no number gets in.
double rounded_up(double value, double steps, double most) {
    return value > 0 ? std::min(std::ceil(value * steps - 1e-6) / steps, most) : 0;
}

}  // namespace

std::uint64_t MachineWish::memory_bytes() const {
    return least_gpu_memory(memory_gb);
}

bool MachineWish::can_name(std::string_view text) {
    constexpr std::size_t kMost = 64;
    return text.size() <= kMost &&
           std::ranges::all_of(text, [](char c) { return c >= 0x20 && c < 0x7F; });
}

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

Requirement Requirement::on(const MachineWish& machine) const {
    constexpr double kHalves = 2;
    constexpr double kHundredths = 100;
    const double memory = rounded_up(machine.memory_gb, kHalves, MachineWish::kMemoryMax);
    const double part = rounded_up(machine.memory_part, kHundredths, 1);
    std::string text;
    add_line(text, kPool, machine.pool);
    add_line(text, kGpu, machine.gpu);
    add_line(text, kMemory, memory > 0 ? shown(memory) : "");
    add_line(text, kRegion, machine.region);
    add_line(text, kPart, part > 0 ? shown(part * kHundredths) : "");
    const std::string_view rest = needs();
    if (rest.empty() && !text.empty()) {
        text.pop_back();
    }
    return Requirement(std::move(text.append(rest)));
}

MachineWish Requirement::machine() const {
    constexpr double kHundredths = 100;
    MachineWish machine;
    machine.pool = pool();
    machine.gpu = member(kGpu);
    machine.region = member(kRegion);
    machine.memory_gb = number_in(member(kMemory));
    machine.memory_part = number_in(member(kPart)) / kHundredths;
    return machine;
}

Requirement Requirement::in_pool(std::string_view pool) const {
    MachineWish wish = machine();
    wish.pool = pool;
    return on(wish);
}

std::string_view Requirement::pool() const {
    return member(kPool);
}

bool Requirement::is_particular() const {
    return !member(kGpu).empty() || !member(kMemory).empty() || !member(kRegion).empty();
}

bool Requirement::allows(const MachineFacts& machine) const {
    return allows_pool(machine.pool) && (!is_particular() || missing_of(machine).empty());
}

std::vector<std::string> Requirement::missing_of(const MachineFacts& machine) const {
    constexpr double kTenth = 1024.0 * 1024 * 1024 / 10;
    std::vector<std::string> missing;
    const auto text = [](std::string_view of) { return std::string(of); };
    if (const auto gpu = member(kGpu); !gpu.empty() && !is_gpu(gpu, machine.gpu)) {
        missing.push_back(
            "the GPU '" + text(gpu) + "'" +
            (machine.gpu.empty() ? "" : " (it has '" + text(machine.gpu) + "')")
        );
    }
    const double memory_gb = number_in(member(kMemory));
    const std::uint64_t memory = machine.gpu == "cpu" ? 0 : machine.gpu_memory_bytes;
    if (least_gpu_memory(memory_gb) > memory) {
        missing.push_back(
            shown(memory_gb) + " GB of GPU memory" +
            (memory == 0
                 ? ""
                 : " (it has " + shown(std::round(static_cast<double>(memory) / kTenth) / 10) +
                       " GB)")
        );
    }
    if (const auto region = member(kRegion);
        !region.empty() && lower(region) != lower(machine.region)) {
        missing.push_back(
            "the region '" + text(region) + "'" +
            (machine.region.empty() ? "" : " (it is in '" + text(machine.region) + "')")
        );
    }
    return missing;
}

Requirement Requirement::musts() const {
    if (member(kPart).empty()) {
        return *this;
    }
    MachineWish wish = machine();
    wish.memory_part = 0;
    return on(wish);
}

std::string_view Requirement::machine_text() const {
    const std::string_view text = text_;
    const std::string_view machine = text.substr(0, text.size() - needs().size());
    return machine.substr(0, machine.find_last_not_of('\n') + 1);
}

// Of the lines before the needs.
std::string_view Requirement::member(std::string_view line) const {
    std::string_view rest = text_;
    while (rest.starts_with('\t')) {
        const auto end = std::min(rest.find('\n'), rest.size());
        if (rest.starts_with(line)) {
            return rest.substr(line.size(), end - line.size());
        }
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return {};
}

std::string_view Requirement::needs() const {
    std::string_view rest = text_;
    while (rest.starts_with('\t')) {
        rest.remove_prefix(std::min(rest.find('\n'), rest.size() - 1) + 1);
    }
    return rest;
}

}  // namespace comfyd
