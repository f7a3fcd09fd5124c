// One try of a job on one ComfyUI worker, from its inputs to its outputs. Owned by
// ComfyMachine::run for its length; the machine's executor only.
//
// A prompt whose messages have all come, from its start to its success, has ended as they say. Of
// any other they only say when to look: how it ended is read from the worker's history, and the
// queue and the history are also polled, so that a silent or broken WebSocket loses nothing. A
// prompt is never submitted while an earlier submission of it may have arrived.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "assets/store.hpp"
#include "base/pool.hpp"
#include "comfy/client.hpp"
#include "comfy/told_run.hpp"
#include "fleet/inputs.hpp"
#include "fleet/node_costs.hpp"
#include "fleet/options.hpp"
#include "fleet/outputs.hpp"
#include "fleet/progress.hpp"
#include "fleet/usage_meter.hpp"
#include "jobs/fleet.hpp"

namespace comfyd::fleet {

// What the attempts on one worker share with it. Owned by the worker, which outlives them.
struct ComfyLink {
    Executor executor;
    comfy::Client client;
    assets::Store& store;
    Pool& pool;
    const FleetOptions& options;
    std::string worker_id;
    std::string client_id;  // of the WebSocket
    // File name -> input value, of files that need not be sent again. Emptied when the worker may
    // have restarted.
    std::map<std::string, std::string> uploaded;
    std::function<void(PromptId prompt)> prompt_left;  // the worker can take another one
    NodeCosts& costs;
    std::string gpu_type{};  // once it is known
    double gpu_second_usd = 0;
    bool shares_gpu = false;
    bool is_engine = false;         // our own: it knows tenants and has no GPU
    std::uint64_t known_epoch = 0;  // that its fence has heard of since it came up; 0: none
    std::function<void()> look_at_machine{};                  // its memory is in use now
    std::chrono::steady_clock::time_point socket_heard_at{};  // anything at all
    std::uint64_t socket = 0;  // which WebSocket there is, counted from 1; 0: none
};

// Tells the worker's fence of the mandate's epoch. False: it has none, or there is no mandate.
// Code::lead_lost: it knows a higher one.
Task<Result<bool>> announce(ComfyLink& link, MandatePtr mandate);

// Asked after a file of a prompt was read: what lies under a name is the prompt's as long as the
// process lives that told of it, over the WebSocket `told_over`. A later one, whose disk is empty,
// gives the same names to others' files. Code::worker_lost: it is another process.
Task<Result<>> confirm_same_process(
    ComfyLink& link, std::string prompt_id, std::uint64_t told_over
);

// Why a worker cannot be given anything more although it answers.
struct Blockage {
    std::string reason;
    std::string prompt_id;  // that does not stop; empty: nothing is ever started
    // Only a prompt that runs shows that it is over. Set: the one that was sent for it.
    bool needs_probe = false;
    std::string probe_id{};
};

// Whose a node of a prompt is that several jobs share.
struct NodeOwner {
    std::string tenant;
    JobId job;
};
// nullopt: nobody wants what it makes.
using OwnerOf = std::function<std::optional<NodeOwner>(const std::string& node)>;

class ComfyAttempt {
public:
    ComfyAttempt(
        ComfyLink& link,
        jobs::Assignment assignment,
        jobs::AttemptListener& listener,
        jobs::StopRequest& stop,
        OwnerOf owner_of = {}  // empty: every node is the assignment's
    );

    Task<Result<jobs::AttemptResult>> run();

    // A message about this prompt, or one that names none while this is the only prompt; when it
    // came.
    void on_message(const comfy::Message& message, std::chrono::steady_clock::time_point came_at);
    // One came that cannot be read, and may have been about this prompt.
    void on_message_missed() { told_run_.miss(); }
    // Where nobody waits for it, progress is told when this is called.
    void tell_progress();
    void on_socket_lost();
    // Somebody waits for what it tells while it runs.
    bool has_audience() const {
        return listener_.wants_progress() || listener_.wants_worker_messages();
    }
    void on_machine(const comfy::SystemStats& stats);
    // After run(), with what it returned.
    void tell_usage(const Result<jobs::AttemptResult>& result);

    const jobs::Assignment& assignment() const { return assignment_; }
    const std::string& prompt_id() const { return prompt_id_; }
    // Where the worker has a file that the run has told of as the job's; nullopt: it has not.
    std::optional<comfy::FileName> find_made(const JobId& job, const jobs::WorkerFile& file) const;
    // The WebSocket that stood when the worker told of files.
    std::uint64_t told_over() const { return told_over_; }
    // The name under which the worker shows a file that it has told of.
    comfy::FileName on_worker(comfy::FileName file) const;
    // The worker is done with the prompt; its results are being fetched.
    bool has_left_worker() const { return left_worker_; }
    // The worker has told something of it.
    bool has_begun() const { return seen_message_ || reattached_; }
    // After run():
    const std::optional<Blockage>& blockage() const { return blockage_; }
    // It ended well and was submitted here, and yet no message told of it.
    bool was_silent() const { return accepted_ && !reattached_ && !seen_message_; }
    // The prompt may still be on the worker, and nobody waits for it any more.
    bool is_orphaned() const { return orphaned_; }

private:
    using Ticks = std::chrono::steady_clock;
    enum class Place { finished, running, pending, absent };
    // How long the worker has not been reached.
    struct Silence {
        Ticks::time_point since;
        Ticks::time_point refused_since;
        int refusals = 0;
    };

    Task<> execute();
    Task<Result<jobs::AttemptResult>> attempt();
    Task<Result<json::object>> parse_workflow();

    Task<Result<>> place_inputs(json::object& prompt);
    Task<Result<std::string>> upload(const AssetUse& use);
    // Lets each node save in the folder of its tenant. True: something was changed.
    bool place_outputs(json::object& prompt) const;
    json::object extra_data() const;

    // Where the prompt is that was sent before; absent only when nobody will send it any more.
    Task<Result<Place>> find_again();
    Task<Result<>> submit(json::object prompt);
    Task<Result<>> submit_text(std::string text);
    // Looks where the prompt is after a submission without a clear answer. True: the worker has it.
    Task<Result<bool>> settle_submission();

    // Looks once; when finished, entry_ is set.
    Task<Result<Place>> look(bool history_first);
    Task<Result<bool>> look_in_history();
    // Looks until it is certain; Code::worker_lost when the worker cannot be reached.
    Task<Result<Place>> locate();
    Task<Result<>> follow();
    // True: its messages have told how it ended, so that nothing needs to be asked.
    bool take_told_end();
    Task<> hear_the_rest();
    Ticks::time_point next_look() const;
    Result<> judge(Place place);
    // Counts a failed look; set when the worker is to be given up.
    std::optional<Error> judge_silence(const Error& error);
    void heard();
    void leave_worker();
    std::optional<NodeOwner> owner_of(const std::string& node) const;
    std::string tenant_of(const std::string& node) const;
    void time_node(const std::string& node);
    void measure(const comfy::Message& message, Ticks::time_point came_at);
    double seconds_at(Ticks::time_point then) const;
    double seconds_now() const { return seconds_at(Ticks::now()); }
    void keep_picture(const comfy::Preview& preview, std::string node);
    void note_made(const comfy::Executed& message);
    void tell(const comfy::Message& message);

    Result<> read_ending() const;
    Task<Result<jobs::AttemptResult>> collect();
    Task<> collect_some(
        const std::vector<UiItem>& items, std::vector<std::optional<jobs::Output>>& outputs
    );
    // What a run that did not end well had finished by then, as far as it can be had.
    Task<> keep_finished();
    // Held and tried again while our own store does not take it.
    Task<Result<jobs::Output>> fetch(const UiItem& item);
    Task<Result<jobs::Output>> fetch_once(const UiItem& item);
    Task<Result<jobs::Output>> fetch_file(const UiItem& item);
    // Writes what has been received, once it is so much.
    Task<Result<>> put_away(assets::BlobWriter& writer, std::string& received, std::size_t bytes);
    assets::NewAsset new_asset(const UiItem& item, std::string content_type) const;

    Task<> withdraw();
    Task<> push_until_gone();
    Task<Result<Place>> push_out(Ticks::time_point& interrupted_at);
    Error stop_error(Code why) const;
    Result<> may_send() const { return fleet::may_send(options_.mandate, mandate_); }
    // What is told to whom by a Code::lead_lost.
    Error lose_lead(Error error) const;

    ComfyLink& link_;
    const FleetOptions& options_;
    jobs::Assignment assignment_;
    const std::string prompt_id_;  // as the worker writes it
    jobs::AttemptListener& listener_;
    jobs::StopRequest& stop_;
    OwnerOf owner_of_;
    const MandatePtr mandate_;
    Signal wake_;
    Signal gone_;  // withdrawn from the worker

    std::optional<ProgressTracker> tracker_;
    std::optional<NodeTimes> times_;
    std::optional<UsageMeter> meter_;
    std::optional<Result<jobs::AttemptResult>> result_;
    std::optional<comfy::HistoryEntry> entry_;
    std::optional<Blockage> blockage_;
    std::optional<Error> lead_lost_;           // before the prompt was taken back
    std::vector<std::string> reused_uploads_;  // names of inputs that were not sent again
    comfy::ToldRun told_run_;
    std::vector<UiItem> made_;           // results that were told of while it ran
    std::uint64_t told_over_ = 0;        // the WebSocket that stood when results were told of
    std::vector<UiItem> sent_pictures_;  // results that came as messages, not as files
    std::size_t sent_pictures_bytes_ = 0;

    bool sought_ = false;    // it may have been sent before, and no look for it has ended
    bool sent_ = false;      // the worker may have the prompt
    bool accepted_ = false;  // the worker has, or had, the prompt
    bool reattached_ = false;
    bool orphaned_ = false;
    bool seen_message_ = false;
    bool progress_untold_ = false;
    bool left_worker_ = false;
    bool gpu_failed_ = false;                     // by what the prompt ended with
    bool end_marked_ = false;                     // the end marker came
    std::optional<Ticks::time_point> ending_at_;  // a message about the end came
    bool look_now_ = false;
    int hasty_looks_ = 0;       // looks after the end that found no end
    int looks_in_silence_ = 0;  // that were answered, since the last message
    int absences_ = 0;
    bool queue_idle_ = false;  // at the last look nothing ran
    Ticks::time_point last_message_;
    Ticks::time_point last_look_;
    std::optional<Ticks::time_point> unstarted_since_;  // it waits, and nothing runs
    Silence silence_;
    std::size_t next_item_ = 0;
    std::optional<Error> collect_failure_;
    const Ticks::time_point made_at_;
};

}  // namespace comfyd::fleet
