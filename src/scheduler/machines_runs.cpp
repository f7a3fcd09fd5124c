// What runs on workers, how long it goes on, and what it leaves loaded. Workers on one GPU share
// its time evenly: a clock for each GPU counts what each of them has had.
#include <algorithm>

#include "scheduler/machines.hpp"

namespace comfyd::scheduler {

// The others on the GPU go on faster or slower from now on.
void Machines::change_busy(Gpu& gpu, int workers) {
    gpu.busy += static_cast<std::size_t>(workers);
    if (gpu.workers.size() > 1) {
        for (const Index other : gpu.workers) {
            if (machines_[other].listed && !machines_[other].listed_free) {
                unlist(other);
                list(other);
            }
        }
    }
}

double Machines::served_s(const Gpu& gpu, Time now) {
    const double passed_s = static_cast<double>((now - gpu.as_of).count()) / 1000.0;
    return gpu.served_s +
           std::max(0.0, passed_s) / static_cast<double>(std::max<std::size_t>(1, gpu.busy));
}

double Machines::served_s(const Machine& machine, Time now) const {
    return served_s(gpus_[machine.gpu], now);
}

double Machines::left_s(const Gpu& gpu, const Run& run, Time now) {
    constexpr double kLatePart = 0.1;
    const double had_s = served_s(gpu, now) - run.began_s;
    return had_s < run.seconds ? run.seconds - had_s : kLatePart * had_s;
}

double Machines::sharing(const Machine& machine) const {
    const std::size_t others = gpus_[machine.gpu].busy - (machine.runs.empty() ? 0 : 1);
    return static_cast<double>(others + 1);
}

std::vector<Index> Machines::start(Index worker, Run run, Index profile, Time now) {
    Machine& machine = machines_[worker];
    unlist(worker);
    Gpu& gpu = gpus_[machine.gpu];
    gpu.served_s = served_s(gpu, now);
    gpu.as_of = now;
    if (machine.runs.empty()) {
        change_busy(gpu, 1);
    }
    run.began_s = gpu.served_s;
    machine.runs.push_back(run);
    gpu.used += run.vram_bytes;
    const std::vector<Index> gone = use_models(machine, profile, machine.runs.size() == 1);
    list(worker);
    return gone;
}

std::vector<Index> Machines::warm(Index worker, Index profile) {
    Machine& machine = machines_[worker];
    unlist(worker);
    std::vector<Index> gone = use_models(machine, profile, true);
    machine.free_since = ++tick_;
    forget_results(worker);
    list(worker);
    return gone;
}

// Loaded models by their use, the latest first, and how many of them stay beside `wanted`.
std::size_t Machines::kept_beside(const Machine& machine, const std::vector<Index>& wanted) const {
    std::uint64_t held = 0;
    std::size_t kept = 0;
    for (const Loaded& loaded : machine.loaded) {
        if (std::ranges::count(wanted, loaded.model) == 0) {
            held += std::max<std::uint64_t>(1, profiles_.model(loaded.model).bytes);
            if (held > machine.state.model_memory_bytes) {
                break;
            }
        }
        ++kept;
    }
    return kept;
}

bool Machines::would_keep(const Machine& machine, Index profile, Index other) const {
    const std::vector<Index>& wanted = profiles_[profile].models;
    const auto kept =
        machine.loaded.begin() + static_cast<std::ptrdiff_t>(kept_beside(machine, wanted));
    return std::ranges::all_of(profiles_[other].models, [&](Index model) {
        return std::ranges::count(wanted, model) > 0 ||
               std::any_of(machine.loaded.begin(), kept, [model](const Loaded& loaded) {
                   return loaded.model == model;
               });
    });
}

std::optional<Millis> Machines::idle_for(const Machine& machine, Time now) const {
    const Gpu& gpu = gpus_[machine.gpu];
    const bool is_alone = gpu.workers.size() == 1;
    return is_alone && machine.runs.empty() && machine.has_room()
               ? std::optional(std::max(Millis(0), std::chrono::floor<Millis>(now - gpu.as_of)))
               : std::nullopt;
}

// The models of the profile are in use now. Those that had to go, where they are anchors.
std::vector<Index> Machines::use_models(Machine& machine, Index profile, bool is_alone) {
    ++tick_;
    const std::vector<Index>& wanted = profiles_[profile].models;
    for (const Index model : wanted) {
        const auto known = std::find_if(
            machine.loaded.begin(),
            machine.loaded.end(),
            [model](const Loaded& loaded) { return loaded.model == model; }
        );
        if (known == machine.loaded.end()) {
            machine.loaded.push_back(Loaded{model, tick_});
        } else {
            known->used = tick_;
        }
    }
    // What the other runs of this worker use is not known here and counts as kept.
    std::sort(machine.loaded.begin(), machine.loaded.end(), [](const Loaded& a, const Loaded& b) {
        return a.used != b.used ? a.used > b.used : a.model < b.model;
    });
    std::uint64_t kept = 0;
    std::vector<Index> gone;
    const auto first_gone = std::find_if(
        machine.loaded.begin() + static_cast<std::ptrdiff_t>(wanted.size()),
        machine.loaded.end(),
        [&](const Loaded& loaded) {
            kept += std::max<std::uint64_t>(1, profiles_.model(loaded.model).bytes);
            return kept > machine.state.model_memory_bytes && is_alone;
        }
    );
    for (auto it = first_gone; it != machine.loaded.end(); ++it) {
        if (it->model < anchors_.size() && anchors_[it->model].in_use) {
            gone.push_back(it->model);
        }
    }
    machine.loaded.erase(first_gone, machine.loaded.end());
    return gone;
}

Time Machines::expected_end(const Machine& machine) const {
    constexpr double kLongestMs = 30.0 * 24 * 3600 * 1000;
    const Time as_of = gpus_[machine.gpu].as_of;
    const double left_ms = 1000 * remaining_s(machine, as_of);
    return as_of + Millis(static_cast<std::int64_t>(std::min(left_ms, kLongestMs)));
}

void Machines::stay(Index worker, Time until, double latest_load_s) {
    machines_[worker].stays_until = until;
    machines_[worker].latest_load_s = latest_load_s;
}

std::vector<Index> Machines::finish(Index worker, const JobId& job, Time now) {
    Machine& machine = machines_[worker];
    const auto run = std::find_if(machine.runs.begin(), machine.runs.end(), [&job](const Run& r) {
        return r.job == job;
    });
    if (run == machine.runs.end()) {
        return {};
    }
    unlist(worker);
    Gpu& gpu = gpus_[machine.gpu];
    gpu.served_s = served_s(gpu, now);
    gpu.as_of = now;
    gpu.used -= run->vram_bytes;
    machine.runs.erase(run);
    if (machine.runs.empty()) {
        change_busy(gpu, -1);
    }
    machine.free_since = ++tick_;
    list(worker);
    std::vector<Index> with_room;
    for (const Index other : gpu.workers) {
        if (machines_[other].has_room()) {
            with_room.push_back(other);
        }
    }
    return with_room;
}

double Machines::remaining_s(const Machine& machine, Time now) const {
    if (machine.has_room()) {
        return 0;
    }
    const Gpu& gpu = gpus_[machine.gpu];
    std::optional<double> first;
    for (const Run& run : machine.runs) {
        const double left = left_s(gpu, run, now);
        first = std::min(first.value_or(left), left);
    }
    return first ? *first * static_cast<double>(gpu.busy) : 0;
}

double Machines::left_s(const Machine& machine, Time now) const {
    double seconds = 0;
    for (const Run& run : machine.runs) {
        seconds += left_s(gpus_[machine.gpu], run, now);
    }
    return seconds;
}

Amount Machines::running(Time now) const {
    Amount amount;
    for (const Machine& machine : machines_) {
        amount.jobs += machine.runs.size();
        amount.seconds += left_s(machine, now);
    }
    return amount;
}

}  // namespace comfyd::scheduler
