// Tells by short message. Gateways know no repetition: one whose answer was lost is sent once more
// at most. Belongs to the Notifier's executor.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/lru_map.hpp"
#include "base/task.hpp"
#include "net/client.hpp"
#include "notify/channel.hpp"
#include "notify/restraint.hpp"
#include "notify/sms/gateway.hpp"
#include "notify/story.hpp"

namespace comfyd::notify::sms {

struct SmsOptions {
    Gateway gateway{};
    std::size_t segments_max = 2;
    Restraint::Limits limits{};
    std::string ca_file{};
    Millis timeout{15'000};
};

class SmsChannel final : public Channel {
public:
    // By the names of the channels. Both clocks outlive it: the time of day, and what limits and
    // pauses are measured by.
    SmsChannel(
        Executor executor,
        Clock& clock,
        const Clock& pace,
        std::map<std::string, SmsOptions> senders
    );
    ~SmsChannel() override;

    Result<std::string> lane_of(const Target& target) const override;
    RetryWish retry_wish(const Target& target) const override;
    Task<Outcome> deliver(Message message) override;
    std::vector<Server> servers() const override;
    void close() override;

private:
    class Sender;
    Executor executor_;
    std::map<std::string, std::unique_ptr<Sender>> senders_;
};

// What is said of an event.
std::string text_of(const Story& story);

}  // namespace comfyd::notify::sms
