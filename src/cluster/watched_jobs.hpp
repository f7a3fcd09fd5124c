// The jobs with listeners on this node, and how far these have heard. What nodes tell each other
// may be lost; so an event is only told when none can be missing before it, and otherwise the
// ledger is asked. Lives on the core executor; no I/O.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "cluster/letter.hpp"
#include "events/subscription.hpp"
#include "jobs/shared_ledger.hpp"

namespace comfyd::cluster {

class WatchedJobs {
public:
    // True when the job was not watched before. `is_all_ours`: whatever becomes of it is published
    // on this node, so that nothing can be missing.
    bool add(
        const JobId& job, const std::shared_ptr<events::Subscription>& listener, bool is_all_ours
    );
    void forget_the_gone();
    void clear() { jobs_.clear(); }
    // The lead is lost: from now on something may be missing.
    void doubt_all();

    enum class Verdict {
        tell,
        skip,  // it was told, or is worth nothing
        read,  // something may be missing before it: begin_reading(), and read the ledger
    };
    // Of an event that is to be told to the job's listeners.
    Verdict judge(const Told::Head& head, const jobs::Event& event);

    // nullopt: it is being read, and will be read once more; or it is not watched.
    std::optional<std::uint64_t> begin_reading(const JobId& job);
    struct Read {
        std::vector<events::EventPtr> news;  // to tell, in order
        bool again = false;                  // more has come meanwhile: read once more
    };
    // What the ledger has after what was heard.
    Read end_reading(const JobId& job, std::vector<jobs::Event> stored, bool is_all_ours);
    void fail_reading(const JobId& job);

    // Those of which something may be missing.
    std::vector<jobs::Heard> doubtful() const;
    // The ledger had no more of them than `heard`.
    void trust(const jobs::Heard& heard);

    bool empty() const { return jobs_.empty(); }
    std::size_t size() const { return jobs_.size(); }
    // For those who tell.
    std::vector<JobId> ids() const;
    bool want_previews() const;

private:
    struct Watched {
        std::vector<std::weak_ptr<events::Subscription>> listeners{};
        std::uint64_t sequence = 0;     // of the last stored event that was told
        std::optional<int> revision{};  // of the job with it; nullopt: not known
        bool is_trusted = false;        // nothing can be missing
        bool is_reading = false;
        bool has_more = false;             // since it is being read
        std::optional<Told::Head> last{};  // that made it be read
    };

    std::unordered_map<JobId, Watched> jobs_;
};

}  // namespace comfyd::cluster
