// A cloud in virtual time, with every fault that is known of real ones: answers that do not come
// though the machine does, machines that show up late or end by themselves, listings that fail,
// removals that are forgotten, machines of others under similar names. It outlives its users, and
// notes what none of them may do.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/virtual_time.hpp"
#include "fleet/callers.hpp"
#include "fleet/instances/instance.hpp"
#include "fleet/providers/machines.hpp"
#include "simulation/chance.hpp"

namespace comfyd::simulation {

struct Cloud {
    struct Thing {
        std::string name;
        Time comes_at{};   // from then on it is there
        Time listed_at{};  // and shown
        Time runs_at{};
        Time goes_at = Time::max();   // it is there no more
        Time stops_at = Time::max();  // it is stopped from then on
        bool is_broken = false;       // it never runs
        bool is_taken_back = false;
        bool is_foreign = false;

        bool is_stopped(Time now) const { return stops_at <= now; }
        bool is_there(Time now) const { return comes_at <= now && now < goes_at; }
    };

    // `is_near`: it lists at once what it made, as this computer does.
    Cloud(VirtualTime& of, Chance& by, bool is_near) : time(of), chance(by), local(is_near) {
        for (const char* name :
             {"comfyd-other-0123456789ab",
              "comfyd-main-b-0123456789ab",
              "comfyd-main-",
              "comfyd-main",
              "comfyd-main-0123456789abc",
              "comfyd-main-0123456789AB",
              "database"}) {
            Thing thing;
            thing.name = name;
            thing.is_foreign = true;
            things["f" + std::to_string(++made)] = thing;
        }
    }

    bool fails(int one_in) { return !is_healed && chance.one_in(one_in); }
    void note(bool holds, const std::string& rule) {
        if (!holds && wrong.empty()) {
            wrong = rule;
        }
    }
    // Those that cost money now or will, of the fleet `main`.
    std::vector<std::string> ours() const {
        std::vector<std::string> names;
        for (const auto& [id, thing] : things) {
            if (!thing.is_foreign && thing.goes_at > time.now()) {
                names.push_back(thing.name);
            }
        }
        return names;
    }
    // It is there, or will be.
    bool has_machine(const std::string& name) const {
        return std::ranges::any_of(things, [&](const auto& entry) {
            const Thing& thing = entry.second;
            return thing.name == name && thing.goes_at > std::max(time.now(), thing.comes_at);
        });
    }
    void check() {
        std::set<std::string> names;
        for (const auto& [id, thing] : things) {
            if (!thing.is_foreign && thing.is_there(time.now())) {
                note(names.insert(thing.name).second, "two machines for one instance");
            }
            note(!thing.is_foreign || thing.goes_at == Time::max(), "another's was removed");
        }
    }
    // Something happens to one of them by itself.
    void strike() {
        for (auto& [id, thing] : things) {
            if (!thing.is_foreign && thing.is_there(time.now()) && chance.one_in(3)) {
                switch (chance.below(3)) {
                    case 0:
                        thing.goes_at = time.now();
                        break;
                    case 1:
                        thing.is_broken = true;
                        break;
                    default:
                        thing.is_taken_back = true;
                        break;
                }
                return;
            }
        }
    }

    VirtualTime& time;
    Chance& chance;
    const bool local;
    bool is_healed = false;
    // Whether an instance is to keep this machine.
    std::function<bool(const std::string& id)> is_wanted;
    std::map<std::string, Thing> things;  // by id
    std::set<std::string> ordered;        // names that were not clearly refused
    int made = 0;
    std::string wrong;
};

// Lets in machines that have no address.
class Doorkeeper final : public fleet::Callers {
public:
    explicit Doorkeeper(Cloud& cloud) : cloud_(cloud) {}

    void admit(const std::string& instance, const std::string& worker, const std::string& token)
        override {
        cloud_.note(worker == "gpu-" + instance && !token.empty(), "let in as somebody else");
        cloud_.note(tokens.emplace(instance, token).second, "let in twice: " + instance);
    }
    void dismiss(const std::string& instance) override {
        cloud_.note(tokens.erase(instance) == 1, "dismissed who was not let in: " + instance);
    }

    std::map<std::string, std::string> tokens;  // of those that may call, by instance

private:
    Cloud& cloud_;
};

class CloudProvider final : public fleet::MachineProvider {
public:
    // With `door` its machines have no address, and call.
    CloudProvider(Cloud& cloud, std::string name, const Doorkeeper* door = nullptr)
        : cloud_(cloud), name_(std::move(name)), door_(door) {}

    std::string_view name() const override { return name_; }
    fleet::MachineTraits traits() const override {
        return {.can_park = true, .is_local = cloud_.local, .dials_in = door_ != nullptr};
    }

    Task<Result<std::vector<fleet::Offer>>> offers(fleet::OfferWish wish) override {
        const bool waited = co_await wait();
        if (!waited || cloud_.fails(15)) {
            co_return fail(waited ? Code::connection_failed : Code::cancelled, "no answer");
        }
        std::vector<fleet::Offer> offers;
        if (!cloud_.fails(10)) {
            fleet::Offer dear;
            dear.id = "dear";
            dear.usd_per_hour = 9;
            fleet::Offer good;
            good.id = "good";
            good.usd_per_hour = 1;
            good.region = wish.region;
            offers = {dear, good};
        }
        co_return offers;
    }

    Task<Result<std::string>> create(fleet::MachineOrder order) override {
        cloud_.note(order.offer.id == "good", "too dear");
        cloud_.note(!cloud_.ordered.contains(order.name), "ordered twice: " + order.name);
        if (door_ != nullptr) {
            const auto token = door_->tokens.find(order.instance);
            cloud_.note(
                token != door_->tokens.end() &&
                    token->second == order.secrets.at("COMFYD_WORKER_TOKEN"),
                "ordered before it may call"
            );
        }
        const Code no = refusal();
        if (no != Code::internal) {
            const bool waited = co_await wait();
            co_return fail(waited ? no : Code::cancelled, "no");
        }
        cloud_.ordered.insert(order.name);
        std::string id;
        const bool is_made = !cloud_.fails(10);
        const Millis takes = cloud_.chance.millis(1, 4'000);
        if (is_made) {
            id = "m" + std::to_string(++cloud_.made);
            Cloud::Thing thing;
            thing.name = order.name;
            const bool is_late = !cloud_.local;
            thing.comes_at =
                cloud_.time.now() + (is_late ? cloud_.chance.millis(0, 20'000) : takes);
            thing.listed_at =
                thing.comes_at + (is_late ? cloud_.chance.millis(0, 30'000) : Millis(0));
            thing.runs_at = thing.comes_at + cloud_.chance.millis(0, 90'000);
            thing.is_broken = cloud_.fails(8);
            if (cloud_.fails(12)) {
                thing.runs_at += std::chrono::hours(2);
            }
            cloud_.things[id] = thing;
        }
        const bool waited = co_await sleep_for(takes);
        if (!waited || !is_made || cloud_.fails(6)) {
            co_return fail(waited ? Code::upstream_error : Code::cancelled, "500");
        }
        co_return id;
    }

    // Others' too: whoever asks must not rely on the contract alone.
    Task<Result<std::vector<fleet::Machine>>> list(std::string) override {
        std::vector<fleet::Machine> machines;
        const Time now = cloud_.time.now();
        for (const auto& [id, thing] : cloud_.things) {
            if (!thing.is_there(now) || thing.listed_at > now) {
                continue;
            }
            fleet::Machine machine;
            machine.id = id;
            machine.name = thing.name;
            using State = fleet::Machine::State;
            machine.state = thing.is_broken         ? State::failed
                            : thing.stops_at <= now ? State::stopped
                            : thing.runs_at <= now  ? State::running
                                                    : State::pulling;
            if (machine.state == State::running && door_ == nullptr) {
                machine.url = "http://" + id;
            }
            if (thing.is_taken_back) {
                machine.reclaimed_at = now + std::chrono::seconds(30);
            }
            if (id.size() % 2 == 0) {
                machine.made_at = thing.comes_at;
            }
            machines.push_back(std::move(machine));
        }
        const bool waited = co_await wait();
        if (!waited || cloud_.fails(8)) {
            co_return fail(waited ? Code::protocol_error : Code::cancelled, "<html>");
        }
        co_return machines;
    }

    Task<Result<>> start(std::string id) override {
        const auto found = cloud_.things.find(id);
        const Code no = cloud_.fails(8) ? Code::out_of_stock : refusal();
        const bool is_done = no == Code::internal && !cloud_.fails(5);
        if (found != cloud_.things.end() && is_done) {
            Cloud::Thing& thing = found->second;
            cloud_.note(!thing.is_foreign, "another's is started: " + thing.name);
            thing.stops_at = Time::max();
            thing.runs_at =
                std::max(thing.runs_at, cloud_.time.now()) + cloud_.chance.millis(0, 20'000);
        }
        const bool waited = co_await wait();
        if (waited && no != Code::internal) {
            co_return fail(no, "no");
        }
        if (!waited || cloud_.fails(5)) {
            co_return fail(waited ? Code::request_timeout : Code::cancelled, "no answer");
        }
        co_return Result<>();
    }
    Task<Result<>> stop(std::string id) override {
        const auto found = cloud_.things.find(id);
        if (found != cloud_.things.end() && !cloud_.fails(5)) {
            Cloud::Thing& thing = found->second;
            cloud_.note(!thing.is_foreign, "another's is stopped: " + thing.name);
            cloud_.note(!cloud_.is_wanted(id), "one that serves is stopped: " + id);
            thing.stops_at =
                std::min(thing.stops_at, cloud_.time.now() + cloud_.chance.millis(0, 20'000));
        }
        const bool waited = co_await wait();
        if (!waited || cloud_.fails(5)) {
            co_return fail(waited ? Code::request_timeout : Code::cancelled, "no answer");
        }
        co_return Result<>();
    }

    Task<Result<>> remove(std::string id) override {
        const auto found = cloud_.things.find(id);
        const bool is_done = !cloud_.fails(5);
        if (found != cloud_.things.end()) {
            cloud_.note(!found->second.is_foreign, "another's is removed: " + found->second.name);
            cloud_.note(!cloud_.is_wanted(id), "one that serves is removed: " + id);
            if (is_done && found->second.goes_at == Time::max()) {
                found->second.goes_at = cloud_.time.now() + cloud_.chance.millis(0, 40'000);
            }
        }
        const bool waited = co_await wait();
        if (!waited || cloud_.fails(5)) {
            co_return fail(waited ? Code::request_timeout : Code::cancelled, "no answer");
        }
        co_return Result<>();
    }
    Task<Result<std::string>> logs(std::string, int) override { co_return std::string(); }
    void on_change(std::function<void()> changed) override { changed_ = std::move(changed); }
    Task<> end() override { co_return; }

private:
    Task<bool> wait() {
        const bool waited = co_await sleep_for(cloud_.chance.millis(1, 4'000));
        co_return waited;
    }
    // Code::internal: none.
    Code refusal() {
        constexpr std::array kRefusals{
            Code::out_of_stock, Code::out_of_stock, Code::rate_limited, Code::balance_empty
        };
        return cloud_.fails(5) ? cloud_.chance.pick(kRefusals) : Code::internal;
    }

    Cloud& cloud_;
    const std::string name_;
    const Doorkeeper* door_;
    std::function<void()> changed_;
};

}  // namespace comfyd::simulation
