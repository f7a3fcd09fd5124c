// What became of deliveries, for people: lists, the details of one, and what to do with those that
// were given up (dead letters). Implemented by the ledger room.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/task.hpp"
#include "jobs/job.hpp"
#include "notify/outbox.hpp"

namespace comfyd::notify {

enum class DeliveryState { pending, delivered, dead };
std::string_view to_string(DeliveryState state);
std::optional<DeliveryState> parse_delivery_state(std::string_view text);

struct DeliveryKey {
    JobId job;
    std::string endpoint;
    std::uint64_t sequence = 0;

    // "JOB_SEQUENCE", and behind it "_ENDPOINT" unless it is the job's own webhook.
    std::string to_string() const;
    static std::optional<DeliveryKey> parse(std::string_view text);
    friend auto operator<=>(const DeliveryKey&, const DeliveryKey&) = default;
};

struct DeliveryView {
    Delivery delivery;
    std::string tenant;
    jobs::EventType event = jobs::EventType::queued;
    DeliveryState state = DeliveryState::pending;
    std::optional<Time> ended_at{};
    std::string error{};  // of the latest attempt, or why it was given up

    DeliveryKey key() const { return {delivery.job, delivery.endpoint, delivery.sequence}; }
};

struct DeliveryQuery {
    std::optional<std::string> tenant{};  // nullopt: of all
    std::optional<DeliveryState> state{};
    std::optional<std::string> endpoint{};
    std::optional<JobId> job{};
    std::optional<DeliveryKey> cursor{};  // the last of the page before
    int limit = 50;                       // at most 200
};
struct DeliveryPage {
    std::vector<DeliveryView> deliveries;  // of the newest jobs first
    std::optional<DeliveryKey> next_cursor{};
};

// Which dead letters.
struct DeadFilter {
    std::optional<std::string> tenant{};  // nullopt: of all
    std::optional<std::string> endpoint{};
    std::optional<JobId> job{};
    std::optional<DeliveryKey> one{};  // and none of the others
};

class Deliveries {
public:
    virtual ~Deliveries() = default;
    // A page may end early, with a cursor, when the filter matches very little of what there is.
    virtual Task<Result<DeliveryPage>> list_deliveries(DeliveryQuery query) = 0;
    virtual Task<Result<std::optional<DeliveryView>>> find_delivery(DeliveryKey key) = 0;
    // How many there are; no more than `limit` are looked at.
    virtual Task<Result<int>> count_dead(DeadFilter filter, int limit) = 0;
    // Makes them due again, with all attempts to go. How many; no more than `limit`.
    virtual Task<Result<int>> replay_dead(DeadFilter filter, Time now, int limit) = 0;
    virtual Task<Result<int>> purge_dead(DeadFilter filter, int limit) = 0;
};

}  // namespace comfyd::notify
