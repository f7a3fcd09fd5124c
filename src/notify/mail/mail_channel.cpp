#include "notify/mail/mail_channel.hpp"

#include <algorithm>
#include <utility>

#include "base/crypto.hpp"
#include "base/log.hpp"
#include "base/on_executor.hpp"
#include "notify/mail/address.hpp"
#include "notify/mail/letter.hpp"

namespace comfyd::notify::mail {
namespace {

// A server that wants no mail of us is asked again after this time, by one mail.
constexpr Millis kPause = std::chrono::minutes(5);
constexpr Millis kDigestRetry = std::chrono::minutes(1);
constexpr std::size_t kTogetherMax = 100;

const MailTarget& target_of(const Message& message) {
    return std::get<MailTarget>(message.to);
}

// The end of the span in which `at` lies. The same on every node.
Time end_of_span(Time at, Millis span) {
    return Time(at.time_since_epoch() / span * span + span);
}

// The same whenever the same events are told to the same recipient.
std::string message_id(const std::vector<Message>& messages) {
    std::vector<std::string> parts;
    for (const Message& message : messages) {
        const MailTarget& to = target_of(message);
        parts.push_back(
            message.job.id.to_string() + " " + std::to_string(message.event.sequence) + " " +
            to.channel + " " + to.address + "\n"
        );
    }
    std::ranges::sort(parts);
    std::string all;
    for (const std::string& part : parts) {
        all += part;
    }
    return "comfyd." + to_hex(sha256(all)).substr(0, 40);
}

}  // namespace

// What one configured channel sends by.
class MailChannel::Sender {
public:
    Sender(
        Executor executor,
        Clock& clock,
        const Clock& pace,
        std::string name,
        MailOptions options,
        const MailContent& content
    )
        : clock_(clock),
          name_(std::move(name)),
          options_(std::move(options)),
          content_(content),
          client_(executor, clock, options_.smtp),
          restraint_(pace, options_.limits) {}

    bool is_paused() const { return restraint_.is_paused(); }
    bool has_digest() const { return options_.digest > Millis(0); }
    Task<std::vector<Outcome>> send(std::vector<Message> messages);
    void close() { client_.close(); }

private:
    Task<Outcome> send_one(std::vector<Message> messages);
    Task<Verdict> hand_over(Mail mail, std::vector<Story> stories);
    Envelope envelope_of(Mail& mail, const std::vector<Story>& stories) const;
    Outcome judge(Verdict verdict, bool is_digest);

    Clock& clock_;
    const std::string name_;
    const MailOptions options_;
    const MailContent content_;
    SmtpClient client_;
    Restraint restraint_;
};

// Those whose span is not over wait for its end; the others are one mail.
Task<std::vector<Outcome>> MailChannel::Sender::send(std::vector<Message> messages) {
    std::vector<Outcome> outcomes(messages.size());
    std::vector<Message> ripe;
    std::vector<std::size_t> places;
    const Time now = clock_.now();
    for (std::size_t i = 0; i < messages.size(); ++i) {
        const Time ripe_at =
            has_digest() ? end_of_span(messages[i].event.at, options_.digest) : now;
        if (ripe_at > now) {
            outcomes[i] = {
                .kind = Outcome::Kind::put_aside,
                .error = "waits for the digest",
                .next_at = ripe_at
            };
        } else {
            ripe.push_back(std::move(messages[i]));
            places.push_back(i);
        }
    }
    if (!ripe.empty()) {
        auto outcome = co_await send_one(std::move(ripe));
        for (const std::size_t place : places) {
            outcomes[place] = outcome;
        }
    }
    co_return outcomes;
}

Task<Outcome> MailChannel::Sender::send_one(std::vector<Message> messages) {
    const std::string to = target_of(messages.front()).address;
    if (const auto wait = restraint_.take(to)) {
        co_return Outcome{
            .kind = Outcome::Kind::put_aside,
            .error = restraint_.is_paused() ? "the channel is paused" : "the rate limit is reached",
            .next_at = clock_.now() + *wait
        };
    }
    std::ranges::sort(messages, {}, [](const Message& message) { return message.event.at; });
    auto from_address = address_for_servers(options_.from);
    auto to_address = address_for_servers(to);
    if (!from_address || !to_address) {
        const Error& error = from_address ? to_address.error() : from_address.error();
        co_return Outcome{.kind = Outcome::Kind::give_up, .error = error.message};
    }
    Mail mail;
    mail.from = std::move(*from_address);
    mail.from_name = options_.from_name;
    mail.to = std::move(*to_address);
    mail.date = messages.back().event.at;
    mail.id = message_id(messages);
    mail.unsubscribe = options_.unsubscribe;
    std::vector<Story> stories;
    for (const Message& message : messages) {
        stories.push_back(tell(
            message.job,
            message.event,
            content_.links ? content_.links(message.job, message.event) : std::vector<Link>()
        ));
    }
    if (content_.picture) {
        mail.jpeg = co_await content_.picture(messages.front().job, messages.front().event);
    }
    const bool is_digest = has_digest();
    auto verdict = co_await hand_over(std::move(mail), std::move(stories));
    co_return judge(std::move(verdict), is_digest);
}

Envelope MailChannel::Sender::envelope_of(Mail& mail, const std::vector<Story>& stories) const {
    write_letter(mail, stories);
    return {mail.from, mail.to, write_mail(mail)};
}

Task<Verdict> MailChannel::Sender::hand_over(Mail mail, std::vector<Story> stories) {
    auto verdict = co_await client_.send(envelope_of(mail, stories));
    if (verdict.kind == Verdict::Kind::too_big && !mail.jpeg.empty()) {
        mail.jpeg.clear();
        verdict = co_await client_.send(envelope_of(mail, stories));
    }
    co_return verdict;
}

Outcome MailChannel::Sender::judge(Verdict verdict, bool is_digest) {
    switch (verdict.kind) {
        case Verdict::Kind::accepted:
            return {.kind = Outcome::Kind::delivered};
        case Verdict::Kind::refused:
        case Verdict::Kind::too_big:
            return {.kind = Outcome::Kind::give_up, .error = std::move(verdict.reason)};
        case Verdict::Kind::cancelled:
            return {.kind = Outcome::Kind::cancelled};
        case Verdict::Kind::not_admitted:
            if (restraint_.pause(kPause)) {
                log::error(
                    "a channel is paused: nothing can be sent by it until its settings or its "
                    "server change",
                    {{"channel", name_}, {"error", verdict.reason}}
                );
            }
            return {
                .kind = Outcome::Kind::put_aside,
                .error = std::move(verdict.reason),
                .next_at = clock_.now() + kPause
            };
        case Verdict::Kind::later:
            break;
    }
    Outcome outcome{.kind = Outcome::Kind::retry, .error = std::move(verdict.reason)};
    outcome.is_of_one = verdict.is_of_recipient;
    if (is_digest) {
        // Those of a digest come back together, and are the same mail again.
        outcome.next_at = end_of_span(clock_.now(), kDigestRetry);
    }
    return outcome;
}

MailChannel::MailChannel(
    Executor executor,
    Clock& clock,
    const Clock& pace,
    std::map<std::string, MailOptions> senders,
    MailContent content
)
    : executor_(executor) {
    for (auto& [name, options] : senders) {
        senders_[name] =
            std::make_unique<Sender>(executor, clock, pace, name, std::move(options), content);
    }
}

MailChannel::~MailChannel() = default;

MailChannel::Sender* MailChannel::find_sender(const Target& target) const {
    const auto found = senders_.find(std::get<MailTarget>(target).channel);
    return found == senders_.end() ? nullptr : found->second.get();
}

Result<std::string> MailChannel::lane_of(const Target& target) const {
    const MailTarget& to = std::get<MailTarget>(target);
    const Sender* sender = find_sender(target);
    if (sender == nullptr) {
        return fail(Code::not_found, "the channel '" + to.channel + "' is no longer configured");
    }
    if (auto checked = check_address(to.address); !checked) {
        return fail(std::move(checked.error()));
    }
    return "mail:" + to.channel + (sender->has_digest() ? ":" + to.address : "");
}

RetryWish MailChannel::retry_wish(const Target&) const {
    return {};
}

std::size_t MailChannel::together_max(const Target& target) const {
    const Sender* sender = find_sender(target);
    return sender != nullptr && sender->has_digest() ? kTogetherMax : 1;
}

Task<Outcome> MailChannel::deliver(Message message) {
    std::vector<Message> messages;
    messages.push_back(std::move(message));
    auto outcomes = co_await deliver_together(std::move(messages));
    co_return std::move(outcomes.front());
}

Task<std::vector<Outcome>> MailChannel::deliver_together(std::vector<Message> messages) {
    COMFYD_ON(executor_);
    Sender* sender = find_sender(messages.front().to);
    if (sender == nullptr) {
        co_return std::vector<Outcome>(
            messages.size(),
            {.kind = Outcome::Kind::give_up, .error = "the channel is no longer configured"}
        );
    }
    auto outcomes = co_await sender->send(std::move(messages));
    co_return outcomes;
}

std::vector<Channel::Server> MailChannel::servers() const {
    std::vector<Server> servers;
    for (const auto& [name, sender] : senders_) {
        servers.push_back({"mail:" + name, sender->is_paused()});
    }
    return servers;
}

void MailChannel::close() {
    COMFYD_ON(executor_);
    for (const auto& [name, sender] : senders_) {
        sender->close();
    }
}

}  // namespace comfyd::notify::mail
