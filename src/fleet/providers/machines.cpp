#include "fleet/providers/machines.hpp"

namespace comfyd::fleet {

std::string_view to_string(Market market) {
    return market == Market::spot ? "spot" : "on-demand";
}

std::string_view to_string(Machine::State state) {
    using State = Machine::State;
    switch (state) {
        case State::creating:
            return "creating";
        case State::pulling:
            return "pulling";
        case State::made:
            return "made";
        case State::starting:
            return "starting";
        case State::running:
            return "running";
        case State::stopping:
            return "stopping";
        case State::stopped:
            return "stopped";
        case State::failed:
            return "failed";
        case State::gone:
            break;
    }
    return "gone";
}

}  // namespace comfyd::fleet
