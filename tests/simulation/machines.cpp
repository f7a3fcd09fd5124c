#include "simulation/machines.hpp"

#include <algorithm>
#include <utility>

#include "simulation/worker.hpp"

namespace comfyd::simulation {

Machines::Machines(const Clock& time, Rules& all_rules, Chance& all_chance, Journal& what_was_done)
    : clock(time), rules(all_rules), chance(all_chance), journal(what_was_done) {
    const int count = 1 + chance.below(3);
    for (int i = 0; i < count; ++i) {
        Machine machine;
        machine.id = "w" + std::to_string(i);
        machine.classes = chance.one_in(3) ? "A" : "AB";
        machine.slots = chance.one_in(3) ? 2 : 1;
        machine.merges = chance.one_in(2);
        machine.has_agent = !chance.one_in(4);
        all.push_back(std::move(machine));
    }
}

void Machines::heal() {
    is_healed_ = true;
    for (Machine& machine : all) {
        machine.classes = "AB";
        machine.has_agent = true;
        machine.is_reachable = true;
        machine.is_broken = false;
        machine.is_leaving = false;
    }
}

void Machines::begin(Machine& machine, const std::string& prompt_id, std::set<JobId> jobs) {
    using jobs::Cause;
    constexpr Ending kFailures[] = {
        {Code::node_execution_error},
        {Code::node_execution_error, Cause::model_missing},
        {Code::out_of_memory},
        {Code::worker_lost},
        {Code::worker_lost, Cause::cuda_fault, true},
        {Code::worker_lost, Cause::hung, true},
        {Code::worker_lost, Cause::interrupted},
        {Code::output_unavailable},
        {Code::worker_rejected},
        {Code::storage_full},
        {.code = Code::worker_unavailable, .gives_back = true},
    };
    const Time now = clock.now();
    for (const Machine& other : all) {
        for (const auto& [id, prompt] : other.prompts) {
            const bool is_alive = prompt.ends_at > now && !prompt.is_given_up &&
                                  other.is_reachable && other.is_listed;
            for (const JobId& job : jobs) {
                if (is_alive && prompt.jobs.contains(job)) {
                    rules.break_one(
                        name_of(job) + " begins on " + machine.id + " while it runs on " + other.id
                    );
                }
            }
        }
    }
    const bool is_poisoned =
        std::ranges::any_of(jobs, [this](const JobId& job) { return poison.contains(job); });
    Prompt prompt{std::move(jobs), now + chance.millis(1, 3'000), std::nullopt};
    prompt.is_given_up = !machine.is_listed;
    if (!is_healed_) {
        if (chance.one_in(4)) {
            prompt.failure = kFailures[chance.below(std::size(kFailures))];
        }
        if (chance.one_in(10)) {
            prompt.ends_at = now + std::chrono::hours(24 * 365);  // it hangs
        }
    }
    if (std::ranges::any_of(prompt.jobs, [this](const JobId& job) {
            return failing.contains(job);
        })) {
        prompt.failure = Ending{Code::storage_full};
    }
    if (is_poisoned) {
        const auto cause = chance.one_in(2) ? Cause::cuda_fault : Cause::worker_lost;
        prompt.failure = Ending{Code::worker_lost, cause, true};
    }
    journal.add([&] {
        std::string text = machine.id + " begins";
        for (const JobId& job : prompt.jobs) {
            text += " " + name_of(job);
        }
        return text + " as " + prompt_id.substr(0, 4) + (prompt.failure ? ", will fail" : "");
    });
    machine.prompts[prompt_id] = std::move(prompt);
}

Fleet::Fleet(Machines& machines, Executor core) : machines_(machines), core_(core) {
    for (Machine& machine : machines.all) {
        workers_.push_back(std::make_shared<Worker>(machines, machine, *this, core));
    }
}
Fleet::~Fleet() = default;

std::vector<std::shared_ptr<jobs::Worker>> Fleet::workers() const {
    std::vector<std::shared_ptr<jobs::Worker>> listed;
    for (const auto& worker : workers_) {
        if (worker->machine().is_listed) {
            listed.push_back(worker);
        }
    }
    return listed;
}

std::shared_ptr<jobs::Worker> Fleet::find(const std::string& id) const {
    const auto found = std::ranges::find_if(workers_, [&id](const auto& worker) {
        return worker->id() == id && worker->machine().is_listed;
    });
    return found == workers_.end() ? nullptr : *found;
}

void Fleet::look_again() {
    for (const auto* workers : {&workers_, &retired_}) {
        for (const auto& worker : *workers) {
            worker->look_again();
        }
    }
}

void Fleet::list(Machine& machine, bool is_listed) {
    if (machine.is_listed == is_listed) {
        return;
    }
    machine.is_listed = is_listed;
    machine.is_leaving = false;
    if (is_listed) {
        auto& worker =
            *std::ranges::find(workers_, machine.id, [](const auto& known) { return known->id(); });
        worker->retire();
        retired_.push_back(worker);
        worker = std::make_shared<Worker>(machines_, machine, *this, core_);
    }
}

void Fleet::tell(const std::string& worker) {
    for (const auto& known : workers_) {
        if (known->machine().is_leaving && known->is_done()) {
            list(known->machine(), false);
        }
    }
    look_again();
    if (on_change_ && !is_cut_) {
        on_change_({worker});
    }
}

void Fleet::tell_all() {
    for (const Machine& machine : machines_.all) {
        tell(machine.id);
    }
}

void Fleet::cut() {
    is_cut_ = true;
    look_again();
}

}  // namespace comfyd::simulation
