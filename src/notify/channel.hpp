// The port of a way to tell somebody of a job: by HTTP, by mail, by short message. A channel sends
// one message once and says what came of it; order, repetition and patience are the Notifier's, the
// same for all.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/task.hpp"
#include "jobs/job.hpp"
#include "notify/target.hpp"

namespace comfyd::notify {

struct Message {
    Target to;
    jobs::Job job;  // as it was when the event happened, as far as it is told
    jobs::Event event;
};

// What came of an attempt.
struct Outcome {
    enum class Kind {
        delivered,
        retry,
        give_up,    // no later attempt would fare better
        put_aside,  // until next_at: none was made, or it failed for no fault of the message
        cancelled,
    };
    Kind kind = Kind::retry;
    std::string error{};
    std::optional<Millis> retry_after{};  // the receiver's wish
    std::optional<Time> next_at{};        // instead of the usual time
    bool is_of_one = false;               // retry: others of its lane may fare better
    int status = 0;                       // of HTTP; 0: no answer came, or the channel has none
    bool is_gone = false;                 // give_up: the receiver wants no message at all any more
};

// What a receiver is sent, for people to look at.
struct Letter {
    std::string method;
    std::string url;
    std::vector<std::pair<std::string, std::string>> headers;
    std::string body;
};

// What a target asks of the repetition; nullopt: as the server is set.
struct RetryWish {
    std::optional<int> retries_max{};
    std::optional<Millis> first_retry{};
};

// Belongs to the Notifier's executor, which outlives it.
class Channel {
public:
    virtual ~Channel() = default;
    // Targets of the same lane share what one receiver is given at a time, so that a slow or dead
    // one delays nobody else. A failure says why the target can never be told anything.
    virtual Result<std::string> lane_of(const Target& target) const = 0;
    virtual RetryWish retry_wish(const Target& target) const = 0;
    // The same message has the same content each time.
    virtual Task<Outcome> deliver(Message message) = 0;
    // What the next attempt would send, without what is secret in it; nullopt: it shows nothing, or
    // there is no such receiver any more.
    virtual Task<std::optional<Letter>> show(Message message);
    // How many messages of one lane it can tell in one go, where so many wait.
    virtual std::size_t together_max(const Target& target) const;
    // Of each what came of it. By default one after the other.
    virtual Task<std::vector<Outcome>> deliver_together(std::vector<Message> messages);
    // Servers of the operator's by which it tells others; none where it goes to them itself.
    struct Server {
        std::string lane;        // of what goes by it; or what its lanes begin with, before a colon
        bool is_paused = false;  // it wants nothing of us
    };
    virtual std::vector<Server> servers() const { return {}; }
    // Lets go of connections that nothing uses. It may be used again.
    virtual void close() = 0;
};

// For each kind of target its channel; several kinds may share one.
using Channels = std::array<std::shared_ptr<Channel>, std::variant_size_v<Target>>;

}  // namespace comfyd::notify
