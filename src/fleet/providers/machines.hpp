// The port of a place that machines are had from: processes of this computer, Docker, a cloud. It
// knows nothing of jobs and keeps no state of its own: what there is, it asks the other side.
// Which machines there shall be, and what became of each, is the keeper's (fleet/instances).
//
// No place has an idempotency key for its create call, so a machine's name is all there is to find
// it again: comfyd-{fleet}-{instance}. A call that may have arrived (connection_failed,
// request_timeout, upstream_error, protocol_error) is followed by list(), never by a second
// create().
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/task.hpp"
#include "base/time.hpp"

namespace comfyd::fleet {

enum class Market { on_demand, spot };
std::string_view to_string(Market market);

// One line of a pool's offers: what may be rented, and for how much.
struct OfferWish {
    std::string provider;             // its name in the configuration
    std::vector<std::string> gpus{};  // kinds, in order; empty: any
    std::string region{};             // empty: any
    Market market = Market::on_demand;
    std::optional<double> usd_per_hour_max{};
    int gpus_each = 1;  // of one machine
    int per_gpu = 0;    // machines that may share one; 0: as the provider has it
};

// What a provider would give for a wish now. It reserves nothing.
struct Offer {
    std::string id;  // the provider's own word for it, handed back in the order
    std::string gpu{};
    std::uint64_t gpu_memory_bytes = 0;  // 0: not told
    std::string region{};
    Market market = Market::on_demand;
    std::optional<double> usd_per_hour{};  // of a machine with all its GPUs; nullopt: not told
    int available = -1;                    // machines; 0: none now, -1: not told
};

// What every machine of a pool is made from.
struct MachineTemplate {
    std::string image{};
    std::vector<std::string> command{};  // empty: as the image has it
    std::map<std::string, std::string> environment{};
    int disk_gb = 0;
    std::uint64_t memory_bytes_max = 0;  // 0: no limit, likewise the next
    double cpus_max = 0;
    int gpus = 1;  // of one machine; 0: none
    // Machines that may share one GPU, where its provider lets them; 0: as that has it.
    int per_gpu = 0;
    std::vector<std::string> packs{};  // as agent/packs.hpp reads them
    std::string registry_user{};
    std::string registry_password{};
};

struct MachineOrder {
    std::string name;  // comfyd-{fleet}-{instance}
    std::string fleet;
    std::string instance;
    std::string pool;
    MachineTemplate made_from{};
    Offer offer{};
    // What the agent in it is told beside the template's environment: its tokens and whom to call.
    std::map<std::string, std::string> secrets{};
    int port = 18188;  // that the agent listens on
};

// A machine as its provider shows it.
struct Machine {
    enum class State {
        creating,
        pulling,
        made,  // and never started: who made it ended before that
        starting,
        running,
        stopping,
        stopped,
        failed,
        gone,
    };

    std::string id;    // the provider's
    std::string name;  // that it was ordered under
    State state = State::creating;
    std::string reason{};  // why it failed, or what it waits for, in the provider's words
    std::optional<std::string> url{};  // of its agent; nullopt: not yet, or it dials in
    std::optional<int> percent{};      // of the pull, where it is told
    std::optional<Time> made_at{};
    std::optional<double> usd_per_hour{};
    std::optional<Time> reclaimed_at{};  // a spot machine's end was announced
};
std::string_view to_string(Machine::State state);

// What a provider can do beside the least.
struct MachineTraits {
    bool can_park = false;      // stop() keeps its disk, and start() is quicker than create()
    bool bills_parked = false;  // which still costs
    // Its machines share the life of this computer, and are listed as soon as they are made.
    bool is_local = false;
    bool dials_in = false;  // it has no address that could be called
    // The kinds of GPU that it can ever give, "cpu" for none; empty: nobody knows.
    std::vector<std::string> gpus{};
    std::string region{};  // where local ones are; empty: nowhere that has a name
};

// Failures of all calls, beside those of a connection: out_of_stock (the next offer may have some),
// balance_empty (nothing will be had until somebody pays), unauthorized and forbidden (the key),
// rate_limited (details: retry_after seconds), invalid_argument (the order cannot be), not_found.
//
// Core executor only. Nothing outlives end().
class MachineProvider {
public:
    virtual ~MachineProvider() = default;

    virtual std::string_view name() const = 0;
    virtual MachineTraits traits() const = 0;

    // What there is for the wish now, the best first.
    virtual Task<Result<std::vector<Offer>>> offers(OfferWish wish) = 0;
    // Returns the machine's id. Where the name is taken, it is that machine.
    virtual Task<Result<std::string>> create(MachineOrder order) = 0;
    // All of the fleet, whoever created them; of other fleets none.
    virtual Task<Result<std::vector<Machine>>> list(std::string fleet) = 0;
    virtual Task<Result<>> start(std::string id) = 0;
    virtual Task<Result<>> stop(std::string id) = 0;
    // Also what does not run. One that is not there is removed: no failure.
    virtual Task<Result<>> remove(std::string id) = 0;
    // The latest lines of what it printed, the newest last.
    virtual Task<Result<std::string>> logs(std::string id, int lines) = 0;

    // Something has changed and is worth a list() now. Empty: nobody wants to know.
    virtual void on_change(std::function<void()> changed) = 0;
    // Ends what it does in the background. Machines stay.
    virtual Task<> end() = 0;
};

}  // namespace comfyd::fleet
