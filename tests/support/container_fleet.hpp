// The real binary with a pool whose machines are containers of a real engine: in each the real
// agent in front of the ComfyUI double. Beside them stand containers of others under names much
// like theirs. From one thread, which is in the engine's network meanwhile.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "support/comfyd.hpp"
#include "support/container_engine.hpp"

namespace comfyd::support {

struct ContainerFleetOptions {
    ContainerEngine::Kind engine = ContainerEngine::Kind::docker;
    std::string image = ContainerEngine::kComfyUiImage;
    int gpus = 0;
    int parked = 0;            // machines that may be stopped
    int warm_up_ms = 0;        // of the workflow that a machine begins with
    std::string scaling = {};  // what scales the pool; empty: its size
};

class ContainerFleet {
public:
    static constexpr const char* kName = "f";
    static constexpr std::chrono::seconds kLong{180};

    explicit ContainerFleet(ContainerFleetOptions options);
    // Removes all containers, whoever has left them.
    ~ContainerFleet();

    ContainerEngine& engine() { return engine_; }
    Comfyd& comfyd() { return *comfyd_; }

    void resize(int size);
    // The size in the configuration, which comfyd reads when it is started.
    void configure(int size);
    // Of the instances that are open, by the name of their states.
    std::map<std::string, int> states();
    // False at the deadline.
    bool wait_state(const std::string& state);
    // Whether one was seen in this state before so many were ready and there was no other.
    bool comes_into(const std::string& state, int size);
    // So many are ready and so many stopped, and there is no other.
    bool wait_settled(int size, int parked = 0);
    // What the command line says to these words.
    std::string cli(std::vector<std::string> words);

    // A job that takes so long.
    void submit(int milliseconds);
    // One that does not end before let_go(), which lets all of them go that were submitted before.
    void submit_held();
    void let_go();
    std::size_t submitted() const { return jobs_.size(); }
    const std::string& last_job() const { return jobs_.back(); }
    // How often executions of a job were begun, and how often one succeeded.
    struct Runs {
        int begun = 0;
        int done = 0;
    };
    // Of those that were begun, in no order.
    std::map<std::string, Runs> runs() const;
    // So many jobs have been begun.
    bool wait_begun(std::size_t count);
    std::set<std::string> begun() const;
    // Those whose execution has begun and not ended.
    std::set<std::string> running() const;
    // All jobs succeed.
    void wait_jobs_done();
    // The same, each once but for those that ran where a machine was lost.
    void expect_jobs_done(const std::set<std::string>& lost = {});

    std::set<std::string> containers() const;  // of ours, by name
    std::size_t running_containers() const;
    bool wait_no_containers();
    // Containers of others are the same ones as at the beginning, and do what they did.
    void expect_others_untouched(bool engine_has_died = false);

private:
    struct Stranger {
        std::string id;
        std::string state;
    };
    void make_strangers();
    void submit(const std::string& behaviour);
    std::string journal() const;
    std::string configuration(int size) const;
    std::vector<json::object> all_containers() const;
    std::map<std::string, Stranger> strangers() const;  // by name

    ContainerFleetOptions options_;
    ContainerEngine& engine_;
    ContainerEngine::Inside inside_;
    TempDir folder_;
    std::map<std::string, Stranger> others_;
    std::vector<std::string> jobs_;  // ids
    std::unique_ptr<Comfyd> comfyd_;
};

}  // namespace comfyd::support
