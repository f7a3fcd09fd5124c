#include "cluster/mail.hpp"

#include <optional>
#include <variant>

#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>

#include "base/log.hpp"
#include "base/on_executor.hpp"

namespace comfyd::cluster {

struct Mail::State {
    Mail* mail = nullptr;  // of the core: null when it has stopped
    std::atomic<std::size_t> waiting = 0;
    std::atomic<std::uint64_t> garbled = 0;
    std::atomic<std::uint64_t> unknown = 0;
    std::atomic<std::uint64_t> overflowed = 0;
};

struct Mail::Pending {
    Pending(Executor core, NodeId asked) : node(asked), answered(core) {}
    NodeId node;
    std::optional<Result<json::value>> answer;
    Signal answered;
};

Mail::Mail(Executor core, Bus& bus)
    : core_(core), bus_(bus), state_(std::make_shared<State>()), tasks_(core) {}

Mail::~Mail() {
    state_->mail = nullptr;
}

void Mail::on_question(std::string question, Handler handler) {
    handlers_.insert_or_assign(std::move(question), std::move(handler));
}

void Mail::start() {
    COMFYD_ON(core_);
    state_->mail = this;
    const auto read = [state = state_, core = core_](NodeId from, std::string message) {
        auto letter = decode(message);
        if (!letter) {
            ++state->garbled;
            log::debug("what a node sent cannot be read", {{"node", from}});
            return;
        }
        if (!*letter) {
            ++state->unknown;
            return;
        }
        if (state->waiting >= kWaitingMax) {
            ++state->overflowed;
            return;
        }
        ++state->waiting;
        boost::asio::post(core, [state, from, letter = std::move(**letter)]() mutable {
            --state->waiting;
            if (state->mail != nullptr) {
                state->mail->hear(from, std::move(letter));
            }
        });
    };
    const auto turn = [state = state_, core = core_](bool is_up) {
        boost::asio::post(core, [state, is_up] {
            if (state->mail != nullptr && state->mail->turned_) {
                state->mail->turned_(is_up);
            }
        });
    };
    bus_.listen({.heard = read, .turned = turn});
}

Task<> Mail::stop() {
    COMFYD_ON(core_);
    state_->mail = nullptr;
    tasks_.cancel();
    co_await tasks_.join();
}

MailCounts Mail::counts() const {
    return {state_->garbled, state_->unknown, state_->overflowed};
}

void Mail::send(NodeId to, Letter letter) {
    COMFYD_ON(core_);
    boost::asio::dispatch(bus_.executor(), [bus = &bus_, to, letter = std::move(letter)] {
        bus->send(to, encode(letter));
    });
}

void Mail::tell_all(Letter letter) {
    COMFYD_ON(core_);
    boost::asio::dispatch(bus_.executor(), [bus = &bus_, letter = std::move(letter)] {
        bus->tell_all(encode(letter));
    });
}

void Mail::tell(std::vector<std::pair<NodeId, Place>> to, Told told) {
    COMFYD_ON(core_);
    boost::asio::dispatch(
        bus_.executor(),
        [bus = &bus_, to = std::move(to), letter = Letter(std::move(told))] {
            std::string message = encode(letter);
            for (const auto& [node, place] : to) {
                set_place(message, place);
                bus->send(node, message);
            }
        }
    );
}

void Mail::poke(std::string domain) {
    COMFYD_ON(core_);
    const auto [rests, is_new] = poked_.try_emplace(domain, false);
    if (!is_new) {
        rests->second = true;
        return;
    }
    tell_all(Poke{domain});
    tasks_.spawn("poke", rest_after_poke(std::move(domain)));
}

Task<> Mail::rest_after_poke(std::string domain) {
    for (;;) {
        const bool goes_on = co_await sleep_for(kPokeEvery);
        const auto rests = poked_.find(domain);
        if (!goes_on || !rests->second) {
            poked_.erase(rests);
            co_return;
        }
        rests->second = false;
        tell_all(Poke{domain});
    }
}

void Mail::hear(const NodeId& from, Letter letter) {
    std::visit([&](auto& one) { hear(from, std::move(one)); }, letter);
}

template <class Kind>
void Mail::hear(const NodeId& from, Kind letter) {
    if (const auto& listener = std::get<std::function<void(NodeId, Kind)>>(listeners_)) {
        listener(from, std::move(letter));
    }
}

void Mail::hear(const NodeId& from, Ask ask) {
    if (being_answered_ >= kQuestionsMax) {
        send(from, Answer{ask.id, fail(Code::queue_full, "too many questions at a time")});
        return;
    }
    ++being_answered_;
    tasks_.spawn("question", answer_to(from, std::move(ask)));
}

void Mail::hear(const NodeId& from, Answer answer) {
    const auto asked = asked_.find(answer.id);
    if (asked == asked_.end() || asked->second->node != from) {
        return;  // it comes too late
    }
    asked->second->answer = std::move(answer.value);
    asked->second->answered.notify();
}

Task<> Mail::answer_to(NodeId from, Ask ask) {
    // Also where a handler throws.
    const std::shared_ptr<std::size_t> leaving(&being_answered_, [](std::size_t* count) {
        --*count;
    });
    auto value = co_await answer_here(from, std::move(ask.question), std::move(ask.details));
    send(from, Answer{ask.id, std::move(value)});
}

Task<Result<json::value>> Mail::answer_here(
    NodeId from, std::string question, json::value details
) {
    const auto handler = handlers_.find(question);
    if (handler == handlers_.end()) {
        co_return fail(Code::not_found, "the node does not know the question '" + question + "'");
    }
    auto value = co_await handler->second(from, std::move(details));
    co_return value;
}

Task<Result<json::value>> Mail::ask(
    NodeId to, std::string question, json::value details, Deadline deadline
) {
    COMFYD_ON(core_);
    if (to == self()) {
        auto own = co_await answer_here(to, std::move(question), std::move(details));
        co_return own;
    }
    if (!is_up()) {
        co_return fail(Code::connection_failed, "the bus between nodes is down: " + bus_.problem());
    }
    const std::uint64_t id = ++last_asked_;
    const auto pending = std::make_shared<Pending>(core_, to);
    asked_.emplace(id, pending);
    send(to, Ask{id, question, std::move(details), deadline.left()});
    co_await pending->answered.wait_for(deadline.left());
    asked_.erase(id);
    if (!pending->answer) {
        const bool stop = co_await is_cancelled();
        co_return stop ? fail(Code::cancelled, "the question was given up")
                       : fail(
                             Code::request_timeout,
                             "node " + to.to_string() + " did not answer '" + question + "' in time"
                         );
    }
    co_return std::move(*pending->answer);
}

}  // namespace comfyd::cluster
