// What of a job is stored as text, made once on the thread of whoever asks, so that a writer's
// thread only binds it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "jobs/ledger.hpp"
#include "ledger/mentioned_assets.hpp"

namespace comfyd::ledger {

struct SpecTexts {
    explicit SpecTexts(const jobs::NewJob& job);
    std::size_t bytes() const;

    std::string spec;
    std::optional<std::string> extra_data;
    std::optional<std::string> metadata;
    std::optional<std::string> dialect_data;
    std::optional<std::string> profile;
    std::optional<std::string> queued_data;
    std::optional<std::string> webhook;  // as a delivery's target; it is not in `spec`
    std::optional<std::string> webhook_events;
    MentionedAssets used_assets;
    bool announces = false;  // the webhook wants to hear of "queued"
};

struct ResultTexts {
    explicit ResultTexts(const jobs::Change& change);
    std::size_t bytes() const;  // also of small outputs
    bool any() const { return failure || outputs || ui_outputs || usage; }

    std::optional<std::string> failure;
    std::optional<std::string> outputs;
    std::optional<std::string> ui_outputs;
    std::optional<std::string> usage;
    std::optional<std::string> event_data;

private:
    std::size_t output_bytes_ = 0;
};

}  // namespace comfyd::ledger
