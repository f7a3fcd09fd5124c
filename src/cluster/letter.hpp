// What nodes say to each other over the bus, and its form on the wire: a version, a kind, a JSON
// object, and bytes that are not text. Members that a reader does not know are passed over, so that
// nodes of two versions understand each other; what they could not read rightly gets a new version
// or a new kind, and is left alone by the older ones.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/error.hpp"
#include "base/id.hpp"
#include "base/json.hpp"
#include "base/time.hpp"
#include "events/notice.hpp"

namespace comfyd::cluster {

// There is something new in the ledger for the leader of the domain.
struct Poke {
    std::string domain;
};

// A node has let the lead of the domain go: others may ask for it at once.
struct Freed {
    std::string domain;
};

// A tenant or a key was changed in the ledger.
struct IdentitiesChanged {};

// A node that is new here, or was cut off: it does not know what others are interested in.
struct Greeting {};

// A feed as those need to know it who fill it.
struct FeedInterest {
    std::optional<std::string> tenant{};  // nullopt: all
    bool progress = false;
    bool previews = false;
    std::string messages_of{};

    friend bool operator==(const FeedInterest&, const FeedInterest&) = default;
};

// What a node wants to hear of.
struct Interest {
    bool is_all = true;  // false: in addition to what it said before
    std::vector<FeedInterest> feeds{};
    bool previews = false;         // of the jobs
    std::vector<JobId> watched{};  // jobs with listeners
};

// How far a node has told another of stored changes. It begins anew, with another stream, whenever
// the one who tells has forgotten the other.
struct Place {
    std::uint64_t stream = 0;
    std::uint64_t number = 0;

    friend bool operator==(const Place&, const Place&) = default;
};

// Something that was published about a job. Arrived and Changed have their job only where a feed
// may want it.
struct Told {
    // What listeners are chosen by; all of it as it is after the notice.
    struct Head {
        JobId id;
        std::string tenant;
        std::string dialect;
        std::uint64_t sequence = 0;
        int revision = 0;
    };
    Head head;
    events::Notice notice;
    Place place{};
};

// All that was told to the receiver until now.
struct SoFar {
    Place place;
};

struct Ask {
    std::uint64_t id = 0;
    std::string question;
    json::value details;
    Millis patience{0};  // nobody waits for an answer longer
};

struct Answer {
    std::uint64_t id = 0;
    Result<json::value> value;
};

using Letter =
    std::variant<Poke, Freed, IdentitiesChanged, Greeting, Interest, Told, SoFar, Ask, Answer>;

std::string encode(const Letter& letter);
// The same letter for another place: one is encoded for all who get it.
void set_place(std::string& encoded, const Place& place);

// nullopt: of a kind or version that came later. Code::protocol_error: no letter at all.
Result<std::optional<Letter>> decode(std::string_view message);

}  // namespace comfyd::cluster
