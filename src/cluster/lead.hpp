// The lead of one domain as one node sees it: asks for it while another has it, keeps it while it
// can, and tells when it begins and ends. What is decided is in LeadMachine; here it is done.
//
// On one executor. All requests to the table end within a time of their own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/task.hpp"
#include "cluster/boot_clock.hpp"
#include "cluster/lead_machine.hpp"
#include "cluster/leases.hpp"
#include "cluster/trust.hpp"

namespace comfyd::cluster {

// Called one after the other: a term's end is told when its beginning has returned, and the next
// beginning when the end has. The lease is renewed meanwhile.
struct LeadHooks {
    // `trust` goes to all who act under this term. What takes long here looks at it, too.
    std::function<Task<>(Taken taken, std::shared_ptr<const Trust> trust)> on_taken;
    // Returns when nothing is sent under the term any more: then others are told, where it was
    // resigned.
    std::function<Task<>(LeadEnd why)> on_lost;
    // How many jobs wait, for those who look at the cluster.
    std::function<std::uint64_t()> queued;
};

struct LeadCounts {
    std::uint64_t taken = 0;
    std::uint64_t epoch = 0;  // of the latest term of this node
    // Ends, by why.
    std::uint64_t taken_over = 0;
    std::uint64_t unconfirmed = 0;
    std::uint64_t session_lost = 0;
    std::uint64_t resigned = 0;
};

class Lead {
public:
    // `leases` and `clock` outlive it.
    Lead(
        Executor executor,
        Leases& leases,
        const BootClock& clock,
        std::string domain,
        NodeId node,
        LeadHooks hooks
    );
    ~Lead();  // REQUIRES: never started, or resign() has returned
    Lead(const Lead&) = delete;
    Lead& operator=(const Lead&) = delete;

    void start();
    // Lets the lead go, where it has it, and does not ask again. Returns when the term's end is
    // told and the table says so, or cannot be told.
    Task<> resign();

    // This node cannot do what a leader does: others may have the lead, and only then this one
    // again. Nothing happens where it does not lead.
    void let_go();
    // Another node says that it has resigned: the lead is asked for at once, not at the next turn.
    void may_be_free();
    // The session with the database, in which leases are asked for, is gone. Trust ends at once,
    // and with it the term: others may have the lead already.
    void session_lost();
    // Somebody who was sent something under this epoch said that there is a higher one.
    void refused(std::uint64_t epoch);

    bool leads() const { return machine_.leads(); }
    bool trusts() const { return trust_ && trust_->holds(); }
    const LeadCounts& counts() const { return counts_; }

private:
    Task<> run();
    void act(const LeadMachine::Action& action);
    Task<> take();
    Task<> renew(jobs::Term term);
    Task<> give_back(jobs::Term term);
    Task<> live_through(Taken taken, std::shared_ptr<const Trust> trust);
    void count(LeadEnd why);
    // Something came: the machine is asked what to do.
    void look();

    Executor executor_;
    Leases& leases_;
    const BootClock& clock_;
    std::string domain_;
    NodeId node_;
    LeadHooks hooks_;

    LeadMachine machine_;
    std::shared_ptr<Trust> trust_;  // of the term; null: it does not lead
    std::optional<LeadEnd> ended_;  // the term, and nobody was told yet
    LeadCounts counts_;
    Signal came_;
    Signal has_ended_;
    TaskGroup tasks_;
};

}  // namespace comfyd::cluster
