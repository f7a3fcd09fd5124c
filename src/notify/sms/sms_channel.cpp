#include "notify/sms/sms_channel.hpp"

#include <utility>

#include "base/log.hpp"
#include "base/on_executor.hpp"
#include "notify/sms/segments.hpp"

namespace comfyd::notify::sms {
namespace {

constexpr Millis kPause = std::chrono::minutes(5);
constexpr std::uint64_t kAnswerBytesMax = 64 * 1024;
constexpr std::size_t kLostMax = 4096;

std::string key_of(const Message& message, const SmsTarget& to) {
    return message.job.id.to_string() + " " + std::to_string(message.event.sequence) + " " +
           to.number;
}

std::string fact(const Story& story, std::string_view name) {
    for (const auto& [known, value] : story.facts) {
        if (known == name) {
            return value;
        }
    }
    return "";
}

}  // namespace

std::string text_of(const Story& story) {
    std::string text = "comfyd: " + story.title + ".";
    const std::string reason = fact(story, "Reason");
    text += reason.empty() ? "" : " " + reason;
    text += " (job " + fact(story, "Job") + ")";
    // One character that the GSM alphabet has not would make the message twice as long.
    for (std::size_t at = text.find("…"); at != std::string::npos; at = text.find("…", at)) {
        text.replace(at, std::string_view("…").size(), "...");
    }
    return text;
}

// What one configured channel sends by.
class SmsChannel::Sender {
public:
    Sender(Executor executor, Clock& clock, const Clock& pace, std::string name, SmsOptions options)
        : clock_(clock),
          name_(std::move(name)),
          options_(std::move(options)),
          client_(executor, client_options(options_)),
          restraint_(pace, options_.limits) {}

    bool is_paused() const { return restraint_.is_paused(); }
    Task<Outcome> send(Message message);
    void close() { client_.close_idle(); }

private:
    static net::ClientOptions client_options(const SmsOptions& options) {
        net::ClientOptions client;
        client.ca_file = options.ca_file;
        return client;
    }
    Task<Outcome> post(std::string key, net::ClientRequest request);
    Outcome judge_lost(const std::string& key, const std::string& why);

    Clock& clock_;
    const std::string name_;
    const SmsOptions options_;
    net::Client client_;
    Restraint restraint_;
    LruMap<bool> lost_{kLostMax};  // messages that were sent and not answered
};

Task<Outcome> SmsChannel::Sender::send(Message message) {
    const SmsTarget& to = std::get<SmsTarget>(message.to);
    if (const auto wait = restraint_.take(to.number)) {
        co_return Outcome{
            .kind = Outcome::Kind::put_aside,
            .error = restraint_.is_paused() ? "the channel is paused" : "the rate limit is reached",
            .next_at = clock_.now() + *wait
        };
    }
    const Story story = tell(message.job, message.event);
    const Sms sms{to.number, cut(text_of(story), options_.segments_max)};
    auto outcome = co_await post(key_of(message, to), make_request(options_.gateway, sms));
    if (outcome.kind == Outcome::Kind::put_aside) {
        outcome.next_at = clock_.now() + kPause;
        if (restraint_.pause(kPause)) {
            log::error(
                "a channel is paused: nothing can be sent by it until its settings or its gateway "
                "change",
                {{"channel", name_}, {"error", outcome.error}}
            );
        }
    }
    co_return outcome;
}

Task<Outcome> SmsChannel::Sender::post(std::string key, net::ClientRequest request) {
    bool was_sent = false;
    request.was_sent = &was_sent;
    request.timeout = options_.timeout;
    request.response_bytes_max = kAnswerBytesMax;
    auto answer = co_await client_.send(std::move(request));
    if (answer) {
        co_return judge(options_.gateway, *answer, clock_.now());
    }
    if (was_sent) {
        // Also when we are to end: after the next start it is sent once more and never again.
        auto outcome = judge_lost(key, answer.error().message);
        co_return answer.error().code == Code::cancelled ? Outcome{.kind = Outcome::Kind::cancelled}
                                                         : outcome;
    }
    const bool is_cancelled = answer.error().code == Code::cancelled;
    co_return Outcome{
        .kind = is_cancelled ? Outcome::Kind::cancelled : Outcome::Kind::retry,
        .error = std::move(answer.error().message)
    };
}

Outcome SmsChannel::Sender::judge_lost(const std::string& key, const std::string& why) {
    const bool was_lost_before = lost_.find(key) != nullptr;
    lost_.use(key) = true;
    if (was_lost_before) {
        return {
            .kind = Outcome::Kind::give_up,
            .error = "sent twice, and the gateway's answer was lost both times: " + why
        };
    }
    return {
        .kind = Outcome::Kind::retry, .error = "sent, but the gateway's answer was lost: " + why
    };
}

SmsChannel::SmsChannel(
    Executor executor, Clock& clock, const Clock& pace, std::map<std::string, SmsOptions> senders
)
    : executor_(executor) {
    for (auto& [name, options] : senders) {
        senders_[name] = std::make_unique<Sender>(executor, clock, pace, name, std::move(options));
    }
}

SmsChannel::~SmsChannel() = default;

Result<std::string> SmsChannel::lane_of(const Target& target) const {
    const SmsTarget& to = std::get<SmsTarget>(target);
    if (!senders_.contains(to.channel)) {
        return fail(Code::not_found, "the channel '" + to.channel + "' is no longer configured");
    }
    if (auto checked = check_number(to.number); !checked) {
        return fail(std::move(checked.error()));
    }
    return "sms:" + to.channel;
}

RetryWish SmsChannel::retry_wish(const Target&) const {
    return {};
}

Task<Outcome> SmsChannel::deliver(Message message) {
    COMFYD_ON(executor_);
    const auto found = senders_.find(std::get<SmsTarget>(message.to).channel);
    if (found == senders_.end()) {
        co_return Outcome{
            .kind = Outcome::Kind::give_up, .error = "the channel is no longer configured"
        };
    }
    auto outcome = co_await found->second->send(std::move(message));
    co_return outcome;
}

std::vector<Channel::Server> SmsChannel::servers() const {
    std::vector<Server> servers;
    for (const auto& [name, sender] : senders_) {
        servers.push_back({"sms:" + name, sender->is_paused()});
    }
    return servers;
}

void SmsChannel::close() {
    COMFYD_ON(executor_);
    for (const auto& [name, sender] : senders_) {
        sender->close();
    }
}

}  // namespace comfyd::notify::sms
