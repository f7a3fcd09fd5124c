#include "jobs/fleet.hpp"

namespace comfyd::jobs {

std::string_view to_string(WorkerStatus status) {
    switch (status) {
        case WorkerStatus::starting:
            return "starting";
        case WorkerStatus::idle:
            return "idle";
        case WorkerStatus::running:
            return "running";
        case WorkerStatus::draining:
            return "draining";
        case WorkerStatus::down:
            break;
    }
    return "down";
}

}  // namespace comfyd::jobs
