// What a stored delivery tells of.
#pragma once

#include <optional>

#include "base/task.hpp"
#include "jobs/ledger.hpp"
#include "notify/channel.hpp"
#include "notify/outbox.hpp"

namespace comfyd::notify {

// Nullopt: the event is no longer stored.
Task<Result<std::optional<Message>>> find_message(
    jobs::Ledger& ledger, Delivery delivery, Target to
);

}  // namespace comfyd::notify
