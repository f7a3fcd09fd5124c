// Tells by mail. Each message has one recipient, so that what becomes of it is theirs alone; with a
// digest the events of a span of time go to a recipient as one mail. Belongs to the Notifier's
// executor.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/task.hpp"
#include "notify/channel.hpp"
#include "notify/mail/smtp_client.hpp"
#include "notify/restraint.hpp"
#include "notify/story.hpp"

namespace comfyd::notify::mail {

struct MailOptions {
    SmtpOptions smtp{};
    std::string from{};
    std::string from_name{};
    std::string unsubscribe{};  // where recipients ask for no more; empty: nowhere
    Millis digest{0};           // above 0: what happens in each such span is one mail
    Restraint::Limits limits{};
};

// A small JPEG of what the job made; empty: there is none.
using FindPicture = std::function<Task<std::string>(jobs::Job, jobs::Event)>;

struct MailContent {
    FindLinks links{};      // empty: no links
    FindPicture picture{};  // empty: no pictures
};

class MailChannel final : public Channel {
public:
    // By the names of the channels. Both clocks outlive it: the time of day, and what limits and
    // pauses are measured by.
    MailChannel(
        Executor executor,
        Clock& clock,
        const Clock& pace,
        std::map<std::string, MailOptions> senders,
        MailContent content
    );
    ~MailChannel() override;

    // Of a digest's recipient; else of the sender.
    Result<std::string> lane_of(const Target& target) const override;
    RetryWish retry_wish(const Target& target) const override;
    std::size_t together_max(const Target& target) const override;
    Task<Outcome> deliver(Message message) override;
    Task<std::vector<Outcome>> deliver_together(std::vector<Message> messages) override;
    std::vector<Server> servers() const override;
    void close() override;

private:
    class Sender;
    Sender* find_sender(const Target& target) const;

    Executor executor_;
    std::map<std::string, std::unique_ptr<Sender>> senders_;
};

}  // namespace comfyd::notify::mail
