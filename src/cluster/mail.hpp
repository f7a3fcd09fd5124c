// Typed messages between nodes over the bus, with questions and answers. Letters are written and
// read on the bus's executor; everything else happens on the core executor, where all members are
// called.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/deadline.hpp"
#include "base/task.hpp"
#include "cluster/bus.hpp"
#include "cluster/letter.hpp"

namespace comfyd::cluster {

struct MailCounts {
    std::uint64_t garbled = 0;     // no letters at all
    std::uint64_t unknown = 0;     // of a later version
    std::uint64_t overflowed = 0;  // lost, because too many waited for the core
};

class Mail {
public:
    static constexpr std::size_t kWaitingMax = 10'000;
    static constexpr std::size_t kQuestionsMax = 256;  // that are being answered
    // A domain is poked no more often.
    static constexpr Millis kPokeEvery{5};

    // `bus` outlives it.
    Mail(Executor core, Bus& bus);
    ~Mail();
    Mail(const Mail&) = delete;
    Mail& operator=(const Mail&) = delete;

    // Who hears letters of a kind; one for each kind, told before start().
    template <class Kind>
    void on(std::function<void(NodeId from, Kind letter)> hear) {
        std::get<std::function<void(NodeId, Kind)>>(listeners_) = std::move(hear);
    }
    void on_turned(std::function<void(bool is_up)> call) { turned_ = std::move(call); }
    using Handler = std::function<Task<Result<json::value>>(NodeId from, json::value details)>;
    void on_question(std::string question, Handler handler);

    // From now on it is heard. Before the bus is started.
    void start();
    // Questions that are being answered are given up.
    Task<> stop();

    NodeId self() const { return bus_.self(); }
    bool is_up() const { return bus_.is_up(); }
    MailCounts counts() const;

    void send(NodeId to, Letter letter);
    void tell_all(Letter letter);
    // The same to each, with its own place.
    void tell(std::vector<std::pair<NodeId, Place>> to, Told told);
    // All nodes but this one. Those that come close together are sent as one.
    void poke(std::string domain);

    // What the other node's handler answers, or why it could not. Code::connection_failed: the bus
    // is down. Code::request_timeout: no answer came by then. Code::not_found: it does not know
    // the question. Code::cancelled.
    Task<Result<json::value>> ask(
        NodeId to, std::string question, json::value details, Deadline deadline
    );

private:
    struct State;
    struct Pending;

    void hear(const NodeId& from, Letter letter);
    void hear(const NodeId& from, Ask ask);
    void hear(const NodeId& from, Answer answer);
    template <class Kind>
    void hear(const NodeId& from, Kind letter);
    Task<Result<json::value>> answer_here(NodeId from, std::string question, json::value details);
    Task<> answer_to(NodeId from, Ask ask);
    Task<> rest_after_poke(std::string domain);

    const Executor core_;
    Bus& bus_;
    std::shared_ptr<State> state_;  // shared with what is on its way to the core
    std::tuple<
        std::function<void(NodeId, Poke)>,
        std::function<void(NodeId, Freed)>,
        std::function<void(NodeId, IdentitiesChanged)>,
        std::function<void(NodeId, Greeting)>,
        std::function<void(NodeId, Interest)>,
        std::function<void(NodeId, Told)>,
        std::function<void(NodeId, SoFar)>>
        listeners_;
    std::function<void(bool)> turned_;
    std::unordered_map<std::string, Handler> handlers_;
    std::unordered_map<std::uint64_t, std::shared_ptr<Pending>> asked_;
    std::uint64_t last_asked_ = 0;
    std::size_t being_answered_ = 0;
    std::unordered_map<std::string, bool> poked_;  // domains that rest; whether to poke again
    TaskGroup tasks_;
};

}  // namespace comfyd::cluster
