#include "fleet/providers/local_machines.hpp"

#include <signal.h>

#include <algorithm>
#include <system_error>
#include <thread>
#include <utility>

#include "base/cgroup.hpp"
#include "base/daemon.hpp"
#include "base/deadline.hpp"
#include "base/disk.hpp"
#include "base/log.hpp"
#include "base/sandbox.hpp"
#include "fleet/providers/agent_command.hpp"
#include "fleet/providers/log_tail.hpp"
#include "fleet/providers/machine_folder.hpp"
#include "fleet/providers/machine_names.hpp"
#include "fleet/providers/node_pack.hpp"

namespace comfyd::fleet {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMachinesMax = 1'000;
constexpr Millis kKillTime{10'000};

ProcessOptions completed(ProcessOptions options) {
    options.folder = fs::absolute(options.folder).lexically_normal();
    if (options.program.empty()) {
        options.program = own_program();
    }
    return options;
}

Result<> check_order(const MachineOrder& order) {
    if (!is_machine_name(order.name)) {
        return fail(Code::invalid_argument, "'" + order.name + "' cannot be the name of a machine");
    }
    if (order.made_from.gpus > 1) {
        return fail(
            Code::invalid_argument, "a process of ComfyUI uses one GPU: 'gpus' must be 1 or 0"
        );
    }
    for (const auto* variables : {&order.secrets, &order.made_from.environment}) {
        for (const auto& [name, value] : *variables) {
            if (name.empty() || name.find('=') != std::string::npos ||
                (name + value).find('\0') != std::string::npos) {
                return fail(
                    Code::invalid_argument, "'" + name + "' cannot stand in an environment"
                );
            }
        }
    }
    return {};
}

// Lets the system forget an agent of ours that has ended.
void reap(const ProcessMark& agent) {
    if (agent.pid > 0 && process_start(agent.pid) == agent.started) {
        forget_daemon(agent.pid);
    }
}

}  // namespace

LocalMachines::LocalMachines(ProcessOptions options)
    : options_(completed(std::move(options))), places_(options_) {}

std::optional<ProcessRecord> LocalMachines::find(const std::string& id) const {
    auto record = is_machine_name(id) ? read_record(options_.folder / id)
                                      : Result<ProcessRecord>(fail(Code::not_found, ""));
    return record ? std::optional(std::move(*record)) : std::nullopt;
}

std::vector<ProcessRecord> LocalMachines::records() const {
    std::vector<ProcessRecord> found;
    std::error_code error;
    for (fs::directory_iterator entry(options_.folder, error), end; !error && entry != end;
         entry.increment(error)) {
        if (!is_machine_name(entry->path().filename().string()) || found.size() == kMachinesMax) {
            continue;
        }
        auto record = read_record(entry->path());
        if (record) {
            found.push_back(std::move(*record));
        } else if (record.error().code != Code::not_found) {
            log::warning(
                "the record of a machine cannot be read: look whether its processes run, and "
                "remove its folder",
                {{"folder", entry->path().string()}, {"error", record.error().message}}
            );
        }
    }
    std::ranges::sort(found, {}, &ProcessRecord::name);
    return found;
}

ProcessMark LocalMachines::agent_of(const ProcessRecord& record) const {
    if (record.agent.pid != 0) {
        return record.boot == this_boot() ? record.agent : ProcessMark{};
    }
    // We were ended between its start and writing that down. It is the first that leads a session.
    const fs::path folder = options_.folder / record.name;
    ProcessMark first;
    for (const ProcessMark& process : find_family({kMachineVariable, folder})) {
        const auto facts = find_process(process.pid);
        if (facts && facts->mark == process && facts->session == process.pid &&
            (first.pid == 0 || process.started < first.started)) {
            first = process;
        }
    }
    return first;
}

ProcessFamily LocalMachines::family_of(const ProcessRecord& record) const {
    return {kMachineVariable, options_.folder / record.name, agent_of(record), record.cgroup};
}

Result<std::vector<Offer>> LocalMachines::offers(const OfferWish& wish) {
    return places_.offers(wish, records());
}

Result<ProcessRecord> LocalMachines::write_down(const MachineOrder& order) {
    const std::vector<ProcessRecord> all = records();
    if (all.size() >= kMachinesMax) {
        return fail(Code::out_of_stock, "there are too many machines on this computer");
    }
    ProcessRecord record;
    record.name = order.name;
    record.fleet = order.fleet;
    record.instance = order.instance;
    record.pool = order.pool;
    record.arguments = order.made_from.command;
    record.environment = order.made_from.environment;
    record.per_gpu = order.made_from.per_gpu;
    record.hides_gpus = order.made_from.gpus == 0;
    record.made_at = SystemClock().now();
    auto done = places_.reserve(record, order.offer.id, all);
    // The record last: where there is one, there is a machine with all that it needs.
    const fs::path folder = options_.folder / order.name;
    done = done ? make_private_folder(folder) : std::move(done);
    done = done ? write_secrets(folder, order.secrets) : std::move(done);
    done = done ? write_record(folder, record) : std::move(done);
    if (!done) {
        drop_folder(folder);
        return fail(std::move(done.error()));
    }
    return record;
}

Result<std::optional<ProcessRecord>> LocalMachines::reserve(const MachineOrder& order) {
    if (auto good = check_order(order); !good) {
        return fail(std::move(good.error()));
    }
    const Lock lock(mutex_);
    if (in_making_.contains(order.name)) {
        return std::nullopt;
    }
    if (const auto there = find(order.name)) {
        if (there->agent.pid != 0 || agent_of(*there).pid != 0) {
            return std::nullopt;
        }
        drop_folder(options_.folder / order.name);
    }
    auto record = write_down(order);
    if (!record) {
        return fail(std::move(record.error()));
    }
    in_making_.insert(order.name);
    return std::optional(std::move(*record));
}

Result<> LocalMachines::furnish(const ProcessRecord& record) const {
    const fs::path work = options_.folder / record.name / "work";
    const fs::path kept = packs_folder(options_);
    auto done = make_private_folder(work);
    done = done ? write_node_pack(work / "nodes" / "comfyd") : std::move(done);
    done = done ? agent::lay_out_packs(options_.packs, options_.pack_rules, kept, work / "nodes")
                : std::move(done);
    // Relative to the file: so there is no path that would have to be quoted.
    return done ? write_file(work / "nodes.yaml", "comfyd:\n  custom_nodes: nodes\n")
                : std::move(done);
}

Result<> LocalMachines::begin(const ProcessRecord& record, Result<> furnished) {
    const Lock lock(mutex_);
    in_making_.erase(record.name);
    if (furnished && !find(record.name)) {
        furnished = fail(Code::not_found, "the machine was removed before it was started");
    }
    auto begun = furnished ? spawn(record) : std::move(furnished);
    if (!begun) {
        drop_folder(options_.folder / record.name);
    }
    return begun;
}

Result<> LocalMachines::spawn(ProcessRecord record) {
    const fs::path folder = options_.folder / record.name;
    const auto secrets = read_secrets(folder);
    if (!secrets) {
        return fail(secrets.error());
    }
    // What an earlier one left there is not of this one.
    std::error_code ignored;
    fs::remove(folder / "work" / "worker.json", ignored);
    fs::remove(folder / "agent.sock", ignored);
    const auto agent =
        start_daemon(agent_command(options_, record, *secrets), {folder, folder / "agent.log"});
    if (!agent) {
        return fail(agent.error());
    }
    record.agent = *agent;
    record.boot = this_boot();
    record.cgroup = put_into_cgroup(record.name, agent->pid, options_.cgroups);
    record.is_stopped = false;
    auto written = write_record(folder, record);
    if (!written) {
        // Nobody would know of it.
        kill(record.name, {*agent});
    }
    return written;
}

Result<> LocalMachines::start(const std::string& id) {
    const Lock lock(mutex_);
    auto record = find(id);
    if (!record) {
        return fail(Code::not_found, "there is no machine '" + id + "'");
    }
    if (in_making_.contains(id) || is_running(agent_of(*record))) {
        return {};
    }
    return spawn(std::move(*record));
}

Machine LocalMachines::describe(const ProcessRecord& record) const {
    using State = Machine::State;
    const fs::path folder = options_.folder / record.name;
    Machine machine;
    machine.id = machine.name = record.name;
    machine.made_at = record.made_at;
    ProcessRecord known = record;
    known.agent = agent_of(record);
    reap(known.agent);
    const auto facts = find_process(known.agent.pid);
    if (!facts || facts->mark != known.agent) {
        machine.state = record.is_stopped       ? State::stopped
                        : record.agent.pid == 0 ? State::made
                                                : State::failed;
        const std::string words = last_line(folder / "agent.log");
        machine.reason = record.is_stopped       ? ""
                         : record.agent.pid == 0 ? "it was never started"
                         : words.empty()         ? "its agent has ended"
                                                 : "its agent has ended: " + words;
        return machine;
    }
    cut_log(folder / "agent.log", options_.log_bytes_max);
    if (record.is_stopped) {
        machine.state = State::stopping;
    } else if (agent_is_up(folder, known)) {
        machine.state = State::running;
        machine.url = agent_url(folder, record);
    } else {
        machine.state = State::starting;
    }
    if (facts->is_held()) {
        machine.reason =
            "its agent is held by a signal: kill -CONT " + std::to_string(known.agent.pid);
    }
    return machine;
}

// Somebody was ended between the making of a folder and the writing of its record. Not at once: it
// may be about to be written.
void LocalMachines::drop_remains(const std::string& fleet) {
    constexpr auto kAge = std::chrono::minutes(1);
    const auto now = fs::file_time_type::clock::now();
    std::error_code error;
    for (fs::directory_iterator entry(options_.folder, error), end; !error && entry != end;
         entry.increment(error)) {
        const fs::path& folder = entry->path();
        std::error_code unknown;
        if (is_of_fleet(folder.filename().string(), fleet) && entry->is_directory(unknown) &&
            !fs::exists(folder / "machine.json", unknown) && !unknown &&
            now - fs::last_write_time(folder, unknown) > kAge && !unknown) {
            drop_folder(folder);
        }
    }
}

std::vector<Machine> LocalMachines::list(const std::string& fleet) {
    const Lock lock(mutex_);
    drop_remains(fleet);
    std::vector<Machine> machines;
    for (const ProcessRecord& record : records()) {
        if (record.fleet != fleet) {
            continue;
        }
        if (!in_making_.contains(record.name)) {
            machines.push_back(describe(record));
            continue;
        }
        Machine machine;
        machine.id = machine.name = record.name;
        machine.made_at = record.made_at;
        machines.push_back(std::move(machine));
    }
    return machines;
}

std::map<std::string, ProcessMark> LocalMachines::running() {
    std::map<std::string, ProcessMark> running;
    for (const ProcessRecord& record : records()) {
        const ProcessMark agent = agent_of(record);
        if (is_running(agent)) {
            running.emplace(record.name, agent);
        }
    }
    return running;
}

Result<std::string> LocalMachines::logs(const std::string& id, int lines) {
    if (!find(id)) {
        return fail(Code::not_found, "there is no machine '" + id + "'");
    }
    std::string text;
    for (const fs::path name : {"agent.log", "work/comfyui.log"}) {
        const std::string tail = last_lines(options_.folder / id / name, lines);
        if (!tail.empty()) {
            text += "== " + name.filename().string() + "\n" + tail;
        }
    }
    return text;
}

std::vector<ProcessMark> LocalMachines::ask_to_end(const std::string& id) {
    const Lock lock(mutex_);
    auto record = find(id);
    if (!record) {
        return {};
    }
    const ProcessMark agent = agent_of(*record);
    if (agent.pid != 0) {
        record->agent = agent;
    }
    record->is_stopped = true;
    if (auto written = write_record(options_.folder / id, *record); !written) {
        log::warning(
            "that a machine ends cannot be written down",
            {{"machine", id}, {"error", written.error().message}}
        );
    }
    auto known = find_family(family_of(*record));
    if (send_signal(agent, SIGTERM)) {
        send_signal(agent, SIGCONT);  // one that is held would not hear it
    }
    return known;
}

bool LocalMachines::agent_runs(const std::string& id) {
    const auto record = find(id);
    if (!record) {
        return false;
    }
    const ProcessMark agent = agent_of(*record);
    reap(agent);
    return is_running(agent);
}

Result<> LocalMachines::kill(const std::string& id, const std::vector<ProcessMark>& known) {
    if (!is_machine_name(id)) {
        return {};
    }
    ProcessRecord record;
    record.name = id;
    record = find(id).value_or(std::move(record));
    const ProcessFamily family = family_of(record);
    const Deadline deadline = Deadline::in(kKillTime);
    // Until there are none: they may start others before they hear of it.
    for (;;) {
        auto left = find_family(family);
        std::ranges::copy_if(known, std::back_inserter(left), is_running);
        reap(family.leader);
        if (left.empty()) {
            remove_cgroup(family.cgroup);
            return {};
        }
        if (deadline.has_passed()) {
            return fail(
                Code::execution_timeout,
                "the process " + std::to_string(left.front().pid) + " of '" + id +
                    "' does not end though it was killed: the GPU driver or a disk may hang"
            );
        }
        for (const ProcessMark& process : left) {
            send_signal(process, SIGKILL);
        }
        std::this_thread::sleep_for(Millis(10));
    }
}

Result<> LocalMachines::forget(const std::string& id) {
    if (!is_machine_name(id)) {
        return {};
    }
    const fs::path folder = options_.folder / id;
    Lock lock(mutex_);
    if (in_making_.contains(id)) {
        return remove_record(folder);  // begin() sees that, and removes the rest
    }
    lock.unlock();  // there may be much in it
    return remove_machine_folder(folder);
}

}  // namespace comfyd::fleet
