// Workers come, change and go; who of them is free. machines_runs.cpp knows what runs on them.
#include "scheduler/machines.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "base/gpu_name.hpp"

namespace comfyd::scheduler {
namespace {

// Of any pool: what a worker says to that is its own business.
MachineFacts facts_of(const WorkerState& state) {
    return {{}, state.gpu_type, state.region, state.vram_bytes};
}

// Machines that are alike do not tell the same to the byte.
std::uint64_t whole_gigabytes(std::uint64_t bytes) {
    constexpr std::uint64_t kGiB = 1ULL << 30;
    return (bytes + kGiB - 1) / kGiB * kGiB;
}

std::uint64_t part_of(std::uint64_t bytes, double part) {
    return static_cast<std::uint64_t>(static_cast<double>(bytes) * part);
}

}  // namespace

Machines::Machines(ProfileTable& profiles) : profiles_(profiles) {}

std::optional<Index> Machines::find(const std::string& id) const {
    const auto found = by_id_.find(id);
    return found == by_id_.end() ? std::nullopt : std::optional<Index>(found->second);
}

Index Machines::kind_index(const WorkerState& state, Index type) {
    std::string name = state.abilities.empty() ? "=" + state.id : "~" + state.abilities;
    name += '\0';
    const std::uint64_t ram = whole_gigabytes(state.ram_bytes);
    name += std::to_string(type) + "/" + std::to_string(state.vram_bytes) + "/" +
            std::to_string(ram) + "/" + state.region;
    const auto [found, is_new] = kind_names_.emplace(name, static_cast<Index>(kinds_.size()));
    if (is_new) {
        kinds_.emplace_back();
        kinds_.back().type = type;
        kinds_.back().vram_bytes = state.vram_bytes;
        kinds_.back().ram_bytes = ram;
        kinds_.back().region = state.region;
    }
    if (state.abilities.empty()) {
        kinds_[found->second].can.clear();
    }
    return found->second;
}

// REQUIRES: the worker is listed among those of its GPU.
void Machines::count_member(Index worker, bool is_added) {
    const Machine& machine = machines_[worker];
    if (!machine.state.available) {
        return;
    }
    Gpu& gpu = gpus_[machine.gpu];
    const auto count_capacity = [&](double sign) {
        for (const Index other : gpu.workers) {
            const bool counts = other != worker || is_added == (sign > 0);
            if (counts && machines_[other].state.available) {
                kinds_[machines_[other].kind].capacity += sign * capacity_of(machines_[other]);
            }
        }
    };
    count_capacity(-1);
    gpu.available += is_added ? 1 : std::size_t(-1);
    kinds_[machine.kind].members += is_added ? 1 : std::size_t(-1);
    count_capacity(1);
}

double Machines::capacity_of(const Machine& machine) const {
    const std::size_t on_gpu = std::max<std::size_t>(1, gpus_[machine.gpu].available);
    return static_cast<double>(machine.state.slots) / static_cast<double>(on_gpu);
}

void Machines::choose_usual_type() {
    std::size_t most = 0;
    largest_vram_ = 0;
    std::vector<std::size_t> members;
    for (const Kind& kind : kinds_) {
        largest_vram_ = std::max(largest_vram_, kind.members > 0 ? kind.vram_bytes : 0);
        members.resize(std::max<std::size_t>(members.size(), kind.type + 1));
        members[kind.type] += kind.members;
        if (members[kind.type] > most) {
            most = members[kind.type];
            profiles_.set_usual_type(kind.type);
        }
    }
}

Index Machines::set(WorkerState state) {
    state.slots = std::max(1, state.slots);
    Index index = 0;
    if (const auto known = by_id_.find(state.id); known != by_id_.end()) {
        index = known->second;
        unlist(index);
        count_member(index, false);
        std::erase(gpus_[machines_[index].gpu].workers, index);
    } else {
        index = static_cast<Index>(machines_.size());
        if (free_places_.empty()) {
            machines_.emplace_back();
        } else {
            index = free_places_.back();
            free_places_.pop_back();
        }
        machines_[index] = Machine{};
        by_id_.emplace(state.id, index);
        machines_[index].free_since = ++tick_;
    }
    Machine& machine = machines_[index];
    machine.live = true;
    machine.type = profiles_.intern_type(state.gpu_type);
    machine.kind = kind_index(state, machine.type);
    const std::string gpu = state.gpu.empty() ? "=" + state.id : "~" + state.gpu;
    const auto [found, is_new] = gpu_names_.emplace(gpu, static_cast<Index>(gpus_.size()));
    if (is_new) {
        gpus_.emplace_back();
    }
    if (found->second != machine.gpu && !machine.runs.empty()) {
        Gpu& before = gpus_[machine.gpu];
        Gpu& after = gpus_[found->second];
        for (Run& run : machine.runs) {
            before.used -= run.vram_bytes;
            after.used += run.vram_bytes;
            run.began_s += after.served_s - before.served_s;
        }
        change_busy(before, -1);
        change_busy(after, 1);
    }
    machine.gpu = found->second;
    gpus_[machine.gpu].workers.push_back(index);
    machine.state = std::move(state);
    count_member(index, true);
    choose_usual_type();
    list(index);
    return index;
}

void Machines::remove(Index worker) {
    Machine& machine = machines_[worker];
    unlist(worker);
    forget_results(worker);
    count_member(worker, false);
    Gpu& gpu = gpus_[machine.gpu];
    std::erase(gpu.workers, worker);
    for (const Run& run : machine.runs) {
        gpu.used -= run.vram_bytes;
    }
    if (!machine.runs.empty()) {
        change_busy(gpu, -1);
    }
    by_id_.erase(machine.state.id);
    machine = Machine{};
    free_places_.push_back(worker);
    choose_usual_type();
}

void Machines::list(Index worker) {
    Machine& machine = machines_[worker];
    if (!machine.live || !machine.state.available) {
        return;
    }
    machine.listed = true;
    machine.listed_free = machine.has_room();
    if (machine.listed_free) {
        machine.free_key = FreeKey{machine.runs.size(), machine.free_since, worker};
        kinds_[machine.kind].free.insert(machine.free_key);
        ++free_count_;
    } else {
        machine.busy_key = BusyKey{expected_end(machine), worker};
    }
    for (const Loaded& loaded : machine.loaded) {
        if (loaded.model < anchors_.size() && anchors_[loaded.model].in_use) {
            Anchor& anchor = anchors_[loaded.model];
            if (machine.listed_free) {
                anchor.free.insert(machine.free_key);
            } else {
                anchor.busy.insert(machine.busy_key);
            }
        }
    }
}

void Machines::unlist(Index worker) {
    Machine& machine = machines_[worker];
    if (!machine.listed) {
        return;
    }
    machine.listed = false;
    if (machine.listed_free) {
        kinds_[machine.kind].free.erase(machine.free_key);
        --free_count_;
    }
    for (const Loaded& loaded : machine.loaded) {
        if (loaded.model < anchors_.size()) {
            Anchor& anchor = anchors_[loaded.model];
            if (machine.listed_free) {
                anchor.free.erase(machine.free_key);
            } else {
                anchor.busy.erase(machine.busy_key);
            }
        }
    }
}

void Machines::make_anchor(Index model) {
    if (anchors_.size() <= model) {
        anchors_.resize(model + 1);
    }
    if (anchors_[model].in_use) {
        return;
    }
    anchors_[model].in_use = true;
    for (Index worker = 0; worker < machines_.size(); ++worker) {
        if (machines_[worker].listed && has_model(machines_[worker], model)) {
            unlist(worker);
            list(worker);
        }
    }
}

Machines::Can Machines::can(Index kind_at, Index requirement_at) const {
    Kind& kind = kinds_[kind_at];
    if (kind.members == 0) {
        return Can::no;
    }
    if (kind.can.size() <= requirement_at) {
        kind.can.resize(requirement_at + 1, kUnknown);
    }
    if (kind.can[requirement_at] == kUnknown) {
        const Requirement& requirement = profiles_.requirement(requirement_at);
        const auto member =
            std::find_if(machines_.begin(), machines_.end(), [kind_at](const Machine& machine) {
                return machine.live && machine.kind == kind_at && machine.state.available;
            });
        const auto& can_run = member->state.can_run;
        const bool can = requirement.missing_of(facts_of(member->state)).empty() &&
                         (!can_run || can_run(requirement));
        const bool is_exact = is_exact_gpu(requirement.machine().gpu, member->state.gpu_type);
        kind.can[requirement_at] = !can ? Can::no : is_exact ? Can::exact : Can::yes;
    }
    return static_cast<Can>(kind.can[requirement_at]);
}

bool Machines::can_run(const Machine& machine, Index profile) const {
    return can_run(machine.kind, profiles_[profile].requirement) &&
           is_large_enough(kinds_[machine.kind], profile);
}

bool Machines::has_large_gpu(const Kind& kind, Index profile) const {
    const double part = profiles_[profile].memory_part;
    const auto is_enough = [&](const Kind& of) {
        const auto needed = profiles_.expected(profile, of.type).vram_bytes;
        return needed <= (part > 0 ? part_of(of.vram_bytes, part) : of.vram_bytes);
    };
    if (kind.vram_bytes == 0 || is_enough(kind)) {
        return true;
    }
    for (Index other = 0; other < kinds_.size(); ++other) {
        const Kind& rival = kinds_[other];
        if (rival.members == 0 || !can_run(other, profiles_[profile].requirement)) {
            continue;
        }
        if (rival.vram_bytes == 0 || rival.vram_bytes > kind.vram_bytes || is_enough(rival)) {
            return false;
        }
    }
    return true;
}

std::uint64_t Machines::model_bytes(Index profile) const {
    std::uint64_t bytes = 0;
    for (const Index model : profiles_[profile].models) {
        bytes += profiles_.model(model).bytes;
    }
    return bytes;
}

bool Machines::has_memory(const Kind& kind, Index profile) const {
    if (kind.ram_bytes == 0) {
        return true;
    }
    const std::uint64_t needed = model_bytes(profile);
    if (needed <= kind.ram_bytes) {
        return true;
    }
    for (Index other = 0; other < kinds_.size(); ++other) {
        const Kind& rival = kinds_[other];
        const bool has_more = rival.ram_bytes == 0 || rival.ram_bytes > kind.ram_bytes;
        if (rival.members > 0 && has_more && can_run(other, profiles_[profile].requirement) &&
            has_large_gpu(rival, profile)) {
            return false;
        }
    }
    return true;
}

std::uint64_t Machines::vram_free(const Machine& machine) const {
    const std::uint64_t used = gpus_[machine.gpu].used;
    return machine.state.vram_bytes > used ? machine.state.vram_bytes - used : 0;
}

std::uint64_t Machines::claim(const Machine& machine, Index profile) const {
    const ProfileTable::Entry& entry = profiles_[profile];
    const std::uint64_t asked = entry.memory_part > 0
                                    ? part_of(machine.state.vram_bytes, entry.memory_part)
                                    : entry.memory_min;
    return std::max(asked, profiles_.expected(profile, machine.type).vram_bytes);
}

bool Machines::fits_now(const Machine& machine, Index profile) const {
    if (machine.state.vram_bytes == 0 || gpus_[machine.gpu].used == 0) {
        return true;  // alone on its GPU: is_large_enough() has decided
    }
    return claim(machine, profile) <= vram_free(machine);
}

bool Machines::has_model(const Machine& machine, Index model) const {
    return std::any_of(machine.loaded.begin(), machine.loaded.end(), [model](const Loaded& loaded) {
        return loaded.model == model;
    });
}

double Machines::load_s(const Machine& machine, Index profile) const {
    double seconds = 0;
    for (const Index model : profiles_[profile].models) {
        if (!has_model(machine, model)) {
            seconds += profiles_.load_s(model, machine.type, machine.state.id);
        }
    }
    return seconds;
}

double Machines::cached(const Machine& machine, Index profile) const {
    double all = 0;
    double here = 0;
    for (const Index model : profiles_[profile].models) {
        const double bytes =
            static_cast<double>(std::max<std::uint64_t>(1, profiles_.model(model).bytes));
        all += bytes;
        here += has_model(machine, model) ? bytes : 0;
    }
    return all > 0 ? here / all : 1;
}

double Machines::most_cached(Index profile, int looks) const {
    const Index anchor = profiles_[profile].anchor;
    double most = 0;
    int looked = 0;
    for (const FreeKey& key : free_with(anchor)) {
        if (looked++ == looks || most >= 1) {
            break;
        }
        most = std::max(most, cached(machines_[std::get<Index>(key)], profile));
    }
    looked = 0;
    for (const BusyKey& key : busy_with(anchor)) {
        if (looked++ == looks || most >= 1) {
            break;
        }
        most = std::max(most, cached(machines_[key.second], profile));
    }
    return most;
}

void Machines::set_models(Index worker, const std::vector<Index>& models) {
    unlist(worker);
    Machine& machine = machines_[worker];
    machine.loaded.clear();
    ++tick_;
    for (const Index model : models) {
        machine.loaded.push_back(Loaded{model, tick_});
    }
    list(worker);
}

const std::set<Machines::FreeKey>& Machines::free_with(Index anchor) const {
    static const std::set<FreeKey> kNone;
    return anchor < anchors_.size() ? anchors_[anchor].free : kNone;
}

const std::set<Machines::BusyKey>& Machines::busy_with(Index anchor) const {
    static const std::set<BusyKey> kNone;
    return anchor < anchors_.size() ? anchors_[anchor].busy : kNone;
}

std::pair<double, std::size_t> Machines::capable(Index profile) const {
    double capacity = 0;
    std::size_t workers = 0;
    for (Index kind = 0; kind < kinds_.size(); ++kind) {
        if (kinds_[kind].members > 0 && can_run(kind, profiles_[profile].requirement) &&
            is_large_enough(kinds_[kind], profile)) {
            capacity += kinds_[kind].capacity;
            workers += kinds_[kind].members;
        }
    }
    return {capacity, workers};
}

}  // namespace comfyd::scheduler
