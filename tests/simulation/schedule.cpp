#include "simulation/schedule.hpp"

#include <algorithm>
#include <utility>

#include "jobs/preparing.hpp"

namespace comfyd::simulation {
namespace {

constexpr Millis kGrace{1'000};
constexpr int kStepsMin = 15;
constexpr int kStepsMax = 50;
// What is left of any job takes less, once everything is well.
constexpr Millis kLongEnough = std::chrono::hours(2);

}  // namespace

Schedule::Schedule(std::uint64_t seed, bool keeps_journal) : world_(seed, keeps_journal) {
    using scheduler::PolicyName;
    constexpr PolicyName kPolicies[] = {
        PolicyName::finish_time, PolicyName::score, PolicyName::fifo
    };
    Chance& chance = world_.chance;
    jobs::ServiceOptions& options = world_.options;
    options.scheduling.policy = kPolicies[chance.below(std::size(kPolicies))];
    options.scheduling.merge_max = chance.one_in(2) ? 4 : 1;
    options.scheduling.gather = chance.one_in(3) ? Millis(50) : Millis(0);
    options.classify = chance.one_in(2);
    options.queue_max = chance.one_in(8) ? 6 : 1'000;
    if (chance.one_in(4)) {
        options.failures.budget = {.part = 0.2, .per_minute = 2};
    }
    if (chance.one_in(3)) {
        options.tenants["a"].terms.running_max = 1;
        options.tenants["b"].gpu_seconds_per_day = 5;
    }
}

Schedule::~Schedule() = default;

std::optional<std::string> Schedule::run() {
    const int steps = kStepsMin + world_.chance.below(kStepsMax - kStepsMin);
    start_process();
    for (int step = 0; step < steps && !world_.rules.broken(); ++step) {
        act();
        go_on();
        check();
    }
    if (!world_.rules.broken()) {
        finish();
    }
    const auto broken = world_.rules.broken();
    if (process_) {
        kill_process();
    }
    return broken;
}

void Schedule::act() {
    const int what = world_.chance.below(100);
    if (what < 45 && is_up()) {
        act_as_client();
    } else if (what < 57) {
        act_on_machine();
    } else if (what < 65) {
        act_on_storage();
    } else if (what < 70 || (!process_ && what < 85)) {
        act_on_process();
    } else {
        pass_time();
    }
}

void Schedule::act_as_client() {
    Chance& chance = world_.chance;
    const int what = chance.below(20);
    if (what < 10 || jobs_.empty()) {
        jobs::Spec spec = make_spec();
        world_.journal.add([&] {
            return "submit " + name_of(*spec.id) + ", priority " + std::to_string(spec.priority) +
                   ", attempts " + std::to_string(spec.max_attempts) +
                   (spec.deadline
                        ? ", deadline " + std::to_string((*spec.deadline - World::kStart).count()) +
                              " ms"
                        : "") +
                   (spec.reuse_key.empty() ? "" : ", reuse") +
                   (spec.idempotency_key.empty() ? "" : ", key " + spec.idempotency_key);
        });
        process_->submit(std::move(spec));
        return;
    }
    const JobId id = chance.pick(jobs_);
    if (!world_.stored.entries().contains(id) || process_->is_on_its_way(id)) {
        return;
    }
    if (what < 15) {
        const bool only_waiting = chance.one_in(4);
        world_.journal.add([&] {
            return "cancel " + name_of(id) + (only_waiting ? ", if it waits" : "");
        });
        process_->cancel(id, only_waiting);
    } else if (what < 17) {
        world_.journal.add([&] { return "retry " + name_of(id); });
        process_->retry(id);
    } else if (what < 18) {
        process_->look_at(id);
    } else {
        const auto& events = world_.stored.entries().at(id).events;
        process_->watch(id, chance.one_in(2) ? 0 : chance.pick(events).sequence);
    }
}

jobs::Spec Schedule::make_spec() {
    Chance& chance = world_.chance;
    jobs::Spec spec;
    JobId id;
    const auto number = jobs_.size() + 1;
    const auto ms = static_cast<std::uint64_t>(to_unix_ms(world_.time.now()));
    for (std::size_t i = 0; i < 6; ++i) {
        id.uuid.bytes[i] = static_cast<std::uint8_t>(ms >> (40 - 8 * i));
    }
    id.uuid.bytes[14] = static_cast<std::uint8_t>(number >> 8);
    id.uuid.bytes[15] = static_cast<std::uint8_t>(number);
    jobs_.push_back(id);
    spec.id = id;
    spec.tenant = std::string(1, static_cast<char>('a' + chance.below(3)));
    spec.workflow = "w" + std::to_string(chance.below(3));
    spec.priority = 1 + chance.below(10);
    spec.batch = chance.one_in(8);
    spec.timeout = chance.one_in(2) ? Millis(2'000) : Millis(60'000);
    spec.max_attempts = 1 + chance.below(4);
    if (chance.one_in(3)) {
        spec.deadline = world_.time.now() + chance.millis(1, chance.one_in(2) ? 3'000 : 60'000);
    }
    if (chance.one_in(5)) {
        spec.idempotency_key = "key " + std::to_string(chance.below(3));
        spec.request_hash = std::to_string(chance.below(2));
    }
    if (chance.one_in(3)) {
        spec.reuse_key = "same " + std::to_string(chance.below(2));
    }
    if (chance.one_in(8)) {
        spec.webhook.emplace();
        spec.webhook->events = {"execution.queued", "execution.completed"};
    }
    if (chance.one_in(8)) {
        spec.warnings.emplace_back("not as asked");
    }
    spec.with_estimates = chance.one_in(8);
    if (chance.one_in(12)) {
        world_.machines.poison.insert(id);
    }
    const std::string class_type = chance.one_in(3) ? "B" : "A";
    spec.requirement = Requirement::of({{class_type}});
    if (chance.one_in(4)) {
        const std::string model = "m" + std::to_string(chance.below(3));
        spec.requirement = Requirement::of({{class_type, "file", model}});
        spec.dialect_data[jobs::kModelsMember] = json::array{json::object{
            {"folder", "checkpoints"},
            {"name", model},
            {"sources", json::array{"https://example.com/" + model}}
        }};
    }
    if (chance.one_in(2)) {
        auto profile = std::make_shared<scheduler::Profile>();
        profile->requirement = spec.requirement;
        profile->shape = "shape " + spec.requirement.encoded();
        profile->heuristic_seconds = 1;
        profile->can_be_merged = true;
        profile->models = {{"checkpoint/" + std::to_string(chance.below(2)), 1'000'000'000}};
        spec.profile = std::move(profile);
    }
    return spec;
}

void Schedule::act_on_machine() {
    Machine& machine = world_.chance.pick(world_.machines.all);
    const int what = world_.chance.below(9);
    if (what < 3) {
        machine.is_reachable = !machine.is_reachable;
        world_.journal.add([&] {
            return machine.id + (machine.is_reachable ? " is back" : " cannot be reached");
        });
    } else if (what == 3) {
        world_.journal.add([&] { return machine.id + " restarts and forgets its prompts"; });
        machine.prompts.clear();
        machine.is_broken = false;
    } else if (what == 4) {
        const bool is_listed = !machine.is_listed;
        world_.journal.add([&] {
            return machine.id + (is_listed ? " joins the fleet" : " leaves the fleet");
        });
        if (process_) {
            process_->fleet().list(machine, is_listed);
        } else {
            machine.is_listed = is_listed;
        }
        for (auto& [id, prompt] : machine.prompts) {
            prompt.is_given_up = true;
        }
    } else if (what == 5) {
        machine.classes = machine.classes == "A" ? "AB" : "A";
        world_.journal.add([&] { return machine.id + " has the classes " + machine.classes; });
    } else if (what == 8) {
        machine.files.clear();
        world_.journal.add([&] { return machine.id + " has lost its models"; });
    } else if (what == 6 && machine.is_listed) {
        machine.is_leaving = true;
        world_.journal.add([&] { return machine.id + " is to leave the fleet"; });
    }  // else: nothing has changed, and it says so all the same
    if (process_) {
        process_->fleet().tell(machine.id);
    }
}

void Schedule::act_on_storage() {
    StorageTrouble& trouble = world_.trouble;
    const int what = world_.chance.below(7);
    if (what == 0 || trouble.is_down) {
        trouble.is_down = !trouble.is_down;
        world_.journal.add([&] { return trouble.is_down ? "the disk is away" : "the disk is back"; }
        );
    } else if (what == 1 || trouble.hides_events) {
        trouble.hides_events = !trouble.hides_events;
        world_.journal.add([&] {
            return trouble.hides_events ? "events cannot be read" : "events can be read again";
        });
    } else if (what < 4) {
        trouble.failures = 1 + world_.chance.below(3);
        world_.journal.add([&] {
            return "the next operations on the disk fail: " + std::to_string(trouble.failures);
        });
    } else {
        trouble.conflicts = 1 + world_.chance.below(4);
        world_.journal.add([&] {
            return "another writer is faster, times: " + std::to_string(trouble.conflicts);
        });
    }
}

void Schedule::act_on_process() {
    if (!process_) {
        start_process();
    } else if (is_up() && world_.chance.one_in(3)) {
        world_.journal.add([] { return "stop"; });
        process_->stop(world_.chance.one_in(2) ? Millis(0) : kGrace);
    } else {
        world_.journal.add([] { return "crash"; });
        kill_process();
    }
}

void Schedule::pass_time() {
    VirtualTime& time = world_.time;
    Time then = time.now();
    const int what = world_.chance.below(20);
    if (what < 9 && time.next()) {
        then = *time.next();
    } else if (what < 16) {
        then += world_.chance.millis(1, 2'000);
    } else if (what < 19) {
        then += world_.chance.millis(2'000, 60'000);
    } else {
        then += std::chrono::hours(1 + world_.chance.below(30));
    }
    world_.journal.add([&] {
        return "time passes: " + std::to_string((then - time.now()).count()) + " ms";
    });
    time.advance_to(then);
}

void Schedule::start_process() {
    world_.journal.add([] { return "start"; });
    process_ = std::make_unique<Process>(world_);
}

void Schedule::kill_process() {
    process_->die();
    world_.io.poll();
    // An orderly stop, overtaken by its end, waits for its attempts still.
    const Time latest = world_.time.now() + kGrace;
    while (!process_->has_ended() && world_.time.next() <= latest && world_.time.next()) {
        world_.time.advance_to(*world_.time.next());
        world_.io.poll();
    }
    if (!process_->has_ended()) {
        world_.rules.break_one("the process cannot end");
        process_.release();  // something still hangs on it
        return;
    }
    process_.reset();
}

void Schedule::go_on() {
    for (int round = world_.chance.below(6); round > 0; --round) {
        if (world_.chance.one_in(3)) {
            for (int i = world_.chance.below(8); i > 0; --i) {
                world_.io.poll_one();
            }
        } else {
            world_.io.poll();
        }
        if (process_) {
            process_->storage().let_one_through();
        }
    }
    if (world_.chance.one_in(2)) {
        go_on_until_idle();
    }
}

void Schedule::go_on_until_idle() {
    world_.io.poll();
    while (process_ && !process_->storage().is_idle() && !world_.rules.broken()) {
        process_->storage().let_one_through();
        world_.io.poll();
    }
}

void Schedule::check() {
    if (!process_) {
        return;
    }
    if (process_->has_ended()) {
        world_.io.poll();  // what it has left there
        process_.reset();
        return;
    }
    if (!process_->is_up() || !process_->is_quiet() || world_.io.poll() > 0) {
        return;
    }
    process_->count();
    world_.io.poll();
    world_.rules.check_all_told();
}

bool Schedule::have_all_ended() const {
    return std::ranges::all_of(world_.stored.entries(), [](const auto& entry) {
        return is_terminal(entry.second.job.state);
    });
}

void Schedule::finish() {
    world_.journal.add([] { return "from here on all is well"; });
    world_.trouble = {};
    world_.machines.heal();
    for (Machine& machine : world_.machines.all) {
        if (process_) {
            process_->fleet().list(machine, true);
        }
        machine.is_listed = true;
    }
    if (process_) {
        process_->fleet().tell_all();
    }
    const Time begin = world_.time.now();
    while (!world_.rules.broken()) {
        if (!process_) {
            start_process();
        }
        go_on_until_idle();
        check();
        if (is_up() && process_->is_quiet() && have_all_ended()) {
            break;
        }
        const auto next = world_.time.next();
        if (!process_ || !next) {
            continue;
        }
        if (*next - begin > kLongEnough) {
            break;
        }
        world_.time.advance_to(*next);
    }
    for (const auto& [id, entry] : world_.stored.entries()) {
        if (is_up() && !is_terminal(entry.job.state)) {
            process_->look_at(id);  // the journal says why it waits
            go_on_until_idle();
        }
    }
    world_.rules.check_all_ended();
    if (process_ && !process_->is_quiet()) {
        world_.rules.break_one("a client was never answered");
    }
    if (process_ && !world_.rules.broken()) {
        process_->stop(Millis(0));
        go_on_until_idle();
        if (!process_->has_ended()) {
            world_.rules.break_one("the process does not stop");
        }
    }
}

}  // namespace comfyd::simulation
