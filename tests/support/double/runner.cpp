#include "support/double/runner.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "support/double/dummy.hpp"
#include "support/double/outputs.hpp"
#include "support/double/pictures.hpp"

namespace comfyd::support {

namespace {

constexpr int kStepsReportedMax = 50;
constexpr Millis kSleepSlice{100};

const char* const kOutOfMemory =
    "Allocation on device 0 would exceed allowed memory. (out of memory)\n"
    "Currently allocated     : 22.17 GiB\nRequested               : 2.00 GiB\n"
    "Device limit            : 23.65 GiB\nFree (according to CUDA): 17.19 MiB\n";

const char* const kCudaFault =
    "CUDA error: an illegal memory access was encountered\nCUDA kernel errors might be "
    "asynchronously reported at some other API call, so the stacktrace below might be "
    "incorrect.\n";

std::int64_t int_input(const json::object& inputs, std::string_view name, std::int64_t otherwise) {
    const auto found = json::find_int(inputs, name);
    return found && *found ? **found : otherwise;
}

}  // namespace

struct Runner::Run {
    Run(PromptPtr of, RunFaults with) : prompt(std::move(of)), faults(with), progress(prompt->id) {
        entry.prompt = prompt;
    }
    PromptPtr prompt;
    RunFaults faults;
    std::vector<std::string> order;
    std::vector<std::string> executed;
    ProgressState progress;
    HistoryEntry entry;
    std::string held_executing;              // out_of_order: goes after the next message
    std::vector<std::string> held_executed;  // out_of_order: go after execution_success
    std::int64_t messages = 0;
    bool socket_dropped = false;
};

Task<> Runner::run() {
    while (true) {
        const bool stop = co_await is_cancelled();
        if (stop || core_.crashed) {
            co_return;
        }
        auto prompt = next();
        if (!prompt) {
            co_await core_.wake.wait();
            continue;
        }
        RunFaults faults = prompt->faults;
        if (core_.faults.run_prompts != 0) {
            faults = faults.combined_with(core_.faults.run);
            if (core_.faults.run_prompts > 0 && core_.faults.run != RunFaults{}) {
                --core_.faults.run_prompts;
            }
        }
        if (faults.lose_prompt) {
            core_.queue.finish();
            continue;
        }
        Run run(std::move(prompt), faults);
        co_await execute(run);
        core_.current_node.clear();
        // Requests and sockets get their turns also when prompts take no time; a client that does
        // not read holds the worker up only for a moment.
        constexpr int kTurnsMax = 1000;
        for (int turn = 0; turn == 0 || (turn < kTurnsMax && core_.hub.is_behind()); ++turn) {
            co_await resume_on(core_.executor);
        }
    }
}

PromptPtr Runner::next() {
    return core_.faults.dead_worker || core_.thread_ended ? nullptr : core_.queue.take();
}

Task<> Runner::execute(Run& run) {
    start(run);
    if (core_.options.cache) {
        const auto cached =
            std::find_if(core_.cache.begin(), core_.cache.end(), [&run](const auto& result) {
                return result.content == run.prompt->content;
            });
        if (cached != core_.cache.end()) {
            answer_from_cache(run, cached->outputs);
            co_return;
        }
    }
    ++core_.executions.total;
    ++core_.executions.by_prompt_id[run.prompt->id];
    ++core_.executions.by_content[run.prompt->content];
    core_.journal("start " + run.prompt->id + " " + run.prompt->content);
    event(run, "execution_cached", {{"nodes", json::array{}}});
    for (const auto& node : run.order) {
        core_.current_node = node;
        run.progress.start(node);
        send_progress(run);
        emit(run, executing_message(run.prompt->id, node), Kind::executing);
        const auto outcome = co_await work(run, node, &node == &run.order.back());
        if (outcome == Outcome::interrupted) {
            stop_interrupted(run, node);
        }
        if (outcome != Outcome::done) {
            co_return;
        }
        json::object ui = produce(run, node);
        if (!ui.empty()) {
            emit(run, executed_message(run.prompt->id, node, ui), Kind::executed);
            run.entry.outputs[node] = std::move(ui);
        }
        run.executed.push_back(node);
        run.progress.finish();
        send_progress(run);
    }
    succeed(run);
}

void Runner::start(Run& run) {
    core_.interrupt = false;
    run.order = execution_order(run.prompt->graph, run.prompt->outputs, core_.catalogue);
    core_.send_status();
    event(run, "execution_start", {});
}

void Runner::answer_from_cache(Run& run, const json::object& outputs) {
    json::array nodes;
    for (const auto& [id, node] : run.prompt->graph) {
        nodes.emplace_back(id);
    }
    event(run, "execution_cached", {{"nodes", std::move(nodes)}});
    for (const auto& [node, ui] : outputs) {
        emit(run, executed_message(run.prompt->id, node, ui), Kind::executed);
        run.progress.add_cached(node);
        send_progress(run);
    }
    if (run.prompt->has_client || !core_.behaviour.cached_needs_client) {
        run.entry.outputs = outputs;
    }
    succeed(run);
}

Task<Runner::Outcome> Runner::work(Run& run, const std::string& node, bool last) {
    const auto name = class_of(run.prompt->graph, node);
    const auto& inputs = inputs_of(run.prompt->graph, node);
    const Millis share = core_.options.delay / static_cast<int>(run.order.size());
    auto outcome = co_await pause(Millis(0));
    if (outcome != Outcome::done) {
        co_return outcome;
    }
    const auto steps = int_input(inputs, "steps", 0);
    if (name == "TestSleep") {
        outcome = co_await sleep_node(run, node);
    } else if (name.starts_with("KSampler") && steps >= 1 && steps <= kStepsReportedMax) {
        outcome = co_await work_in_steps(run, node, static_cast<int>(steps), share);
    } else if (name == "CheckpointLoaderSimple" && core_.options.load > Millis(0)) {
        outcome = co_await load_checkpoint(inputs, share);
    } else if (name == "SaveImageWebsocket") {
        outcome =
            co_await work_in_steps(run, node, batch_size_above(run.prompt->graph, node), share);
    } else {
        outcome = co_await pause(share);
    }
    if (outcome == Outcome::done) {
        outcome = join(run, node);
    }
    if (outcome == Outcome::done && last) {
        outcome = co_await misbehave(run, node);
    }
    co_return outcome;
}

Task<Runner::Outcome> Runner::load_checkpoint(const json::object& inputs, Millis share) {
    const auto* name = json::find(inputs, "ckpt_name");
    std::string wanted = name != nullptr ? json::serialize(*name) : std::string();
    if (wanted != loaded_) {
        ++core_.executions.loads;
        share += core_.options.load;
        loaded_ = std::move(wanted);
    }
    const auto outcome = co_await pause(share);
    co_return outcome;
}

Task<Runner::Outcome> Runner::work_in_steps(
    Run& run, const std::string& node, int steps, Millis total
) {
    const bool pictures = class_of(run.prompt->graph, node) == "SaveImageWebsocket";
    const auto* method = json::find(run.prompt->extra_data, "preview_method");
    const bool previews = pictures || core_.options.previews || run.faults.big_preview > 0 ||
                          (method && *method != json::value("none"));
    // A sampler reports after a step, a saver before each picture.
    const int first = pictures ? 0 : 1;
    for (int i = first; i < first + steps; ++i) {
        const auto outcome = co_await pause(total / steps);
        if (outcome != Outcome::done) {
            co_return outcome;
        }
        const std::string value = std::to_string(i);
        const std::string max = std::to_string(steps);
        run.progress.step(value, max);
        send_progress(run);
        if (previews) {
            send_preview(run, node, static_cast<unsigned>(i));
        }
        emit(run, progress_message(run.prompt->id, node, value, max), Kind::plain, true);
    }
    co_return Outcome::done;
}

Task<Runner::Outcome> Runner::sleep_node(Run& run, const std::string& node) {
    const auto seconds = json::find_number(inputs_of(run.prompt->graph, node), "seconds");
    const double total = seconds && *seconds ? **seconds : 0.0;
    const std::string max = json::serialize_python(json::value(total));
    double passed = 0;
    while (true) {
        const std::string value = json::serialize_python(json::value(std::min(passed, total)));
        run.progress.step(value, max);
        send_progress(run);
        emit(run, progress_message(run.prompt->id, node, value, max), Kind::plain, true);
        if (passed >= total) {
            co_return Outcome::done;
        }
        const double slice =
            std::min(total - passed, static_cast<double>(kSleepSlice.count()) / 1000.0);
        const auto outcome = co_await pause(Millis(static_cast<std::int64_t>(slice * 1000.0) + 1));
        if (outcome != Outcome::done) {
            co_return outcome;
        }
        passed += slice;
    }
}

Task<Runner::Outcome> Runner::misbehave(Run& run, const std::string& node) {
    const auto& faults = run.faults;
    const auto slowed = co_await pause(Millis(faults.slow));
    if (slowed != Outcome::done) {
        co_return slowed;
    }
    while (faults.held && !core_.is_let_go()) {
        const auto held = co_await pause(kSleepSlice);
        if (held != Outcome::done) {
            co_return held;
        }
    }
    if (faults.crash_mid_job) {
        core_.on_crash();
        co_return Outcome::stopped;
    }
    // The fault of the whole double may be switched off meanwhile; a prompt's own stays.
    while (run.prompt->faults.hang || (faults.hang && core_.faults.run.hang)) {
        const bool woken = co_await core_.wake.wait();
        if (!woken || core_.crashed) {
            co_return Outcome::stopped;
        }
    }
    while (run.prompt->faults.hang_interruptible ||
           (faults.hang_interruptible && core_.faults.run.hang_interruptible)) {
        if (core_.interrupt) {
            co_return Outcome::interrupted;
        }
        const bool woken = co_await core_.wake.wait();
        if (!woken || core_.crashed) {
            co_return Outcome::stopped;
        }
    }
    if (faults.interrupted) {
        co_return Outcome::interrupted;
    }
    if (faults.oom) {
        fail_with(run, node, "torch.OutOfMemoryError", kOutOfMemory);
        co_return Outcome::failed;
    }
    if (faults.cuda_fault) {
        core_.gpu_lost = true;
        fail_with(run, node, "torch.AcceleratorError", kCudaFault);
        co_return Outcome::failed;
    }
    if (faults.node_error) {
        fail_with(run, node, "RuntimeError", "The node failed as it was told to\n");
        co_return Outcome::failed;
    }
    co_return Outcome::done;
}

Task<Runner::Outcome> Runner::pause(Millis duration) {
    const auto end = std::chrono::steady_clock::now() + duration;
    while (true) {
        if (core_.crashed) {
            co_return Outcome::stopped;
        }
        if (core_.interrupt) {
            co_return Outcome::interrupted;
        }
        if (duration == Millis(0)) {
            co_return Outcome::done;
        }
        const auto left = end - std::chrono::steady_clock::now();
        if (left <= left.zero()) {
            co_return Outcome::done;
        }
        const bool stop = co_await is_cancelled();
        if (stop) {
            co_return Outcome::stopped;
        }
        co_await core_.wake.wait_for(std::chrono::ceil<Millis>(left));
    }
}

// The joining nodes of the pack raise where what they are given does not fit together.
Runner::Outcome Runner::join(Run& run, const std::string& node) {
    const auto name = class_of(run.prompt->graph, node);
    if (name != "ComfydLatentBatch" && name != "ComfydConditioningBatch") {
        return Outcome::done;
    }
    try {
        if (run.faults.merge_error) {
            throw std::runtime_error("the pictures of the jobs do not have the same size");
        }
        DummyTensors(run.prompt->graph).get(node, 0);
    } catch (const std::exception& exception) {
        fail_with(run, node, "ValueError", exception.what() + std::string("\n"));
        return Outcome::failed;
    }
    return Outcome::done;
}

json::object Runner::produce(const Run& run, const std::string& node) {
    return make_outputs(
        *run.prompt,
        node,
        core_.catalogue,
        core_.files,
        core_.options.output_bytes,
        core_.options.batch_pack
    );
}

void Runner::succeed(Run& run) {
    run.entry.success = true;
    event(run, "execution_success", {});
    if (core_.options.cache) {
        constexpr std::size_t kCachedMax = 16;
        core_.cache.push_front({run.prompt->content, run.entry.outputs});
        core_.cache.resize(std::min(core_.cache.size(), kCachedMax));
    }
    finish(run);
}

void Runner::fail_with(Run& run, const std::string& node, std::string type, std::string message) {
    const std::string name(class_of(run.prompt->graph, node));
    json::object current_inputs;
    for (const auto& [input, value] : inputs_of(run.prompt->graph, node)) {
        current_inputs[input] = json::array{json::value(
            value.is_string() ? std::string(value.get_string()) : json::serialize_python(value)
        )};
    }
    const json::array executed(run.executed.begin(), run.executed.end());
    json::array all(run.order.begin(), run.order.end());
    event(
        run,
        "execution_error",
        {
            {"node_id", node},
            {"node_type", name},
            {"executed", executed},
            {"exception_message", std::move(message)},
            {"exception_type", std::move(type)},
            {"traceback",
             json::array{
                 "  File \"/srv/comfyui/execution.py\", line 525, in execute\n    output_data = "
                 "await get_output_data()\n",
                 "  File \"/srv/comfyui/nodes.py\", line 1, in " + name + "\n    raise\n",
             }},
            {"current_inputs", std::move(current_inputs)},
            {"current_outputs", std::move(all)},
        }
    );
    finish(run);
}

void Runner::stop_interrupted(Run& run, const std::string& node) {
    json::array executed(run.executed.begin(), run.executed.end());
    event(
        run,
        "execution_interrupted",
        {
            {"node_id", node},
            {"node_type", class_of(run.prompt->graph, node)},
            {"executed", std::move(executed)},
        }
    );
    finish(run);
}

void Runner::finish(Run& run) {
    flush_held(run);
    core_.journal("end " + run.prompt->id + (run.entry.success ? " success" : " error"));
    if (run.faults.bad_json) {
        core_.broken_history_id = run.prompt->id;
    }
    core_.history.add(std::move(run.entry));
    core_.queue.finish();
    core_.send_status();
    emit(run, finished_message(run.prompt->id));
}

void Runner::event(Run& run, const char* type, json::object data) {
    const bool interrupted = std::string_view(type) == "execution_interrupted";
    json::object full;
    if (std::string_view(type) == "execution_cached") {
        full = std::move(data);
        full["prompt_id"] = run.prompt->id;
    } else {
        full["prompt_id"] = run.prompt->id;
        for (auto& [name, value] : data) {
            full[name] = std::move(value);
        }
    }
    full["timestamp"] = unix_ms_now();
    if (anybody_listens(run, interrupted)) {
        emit(run, message_of(type, full), Kind::plain, interrupted);
    }
    run.entry.messages.push_back(json::array{type, std::move(full)});
}

void Runner::send_progress(Run& run) {
    if (anybody_listens(run, true)) {
        emit(run, run.progress.message(), Kind::plain, true);
    }
}

void Runner::send_preview(Run& run, const std::string& node, unsigned index) {
    const auto bytes = static_cast<std::size_t>(std::max<std::int64_t>(run.faults.big_preview, 0));
    const std::string png = make_png(run.prompt->id, index, bytes);
    const bool metadata = run.prompt->has_client && core_.hub.wants_metadata(run.prompt->client_id);
    deliver(
        run,
        metadata ? preview_frame_with_metadata(png, run.prompt->id, node) : preview_frame(png),
        true,
        true
    );
}

bool Runner::anybody_listens(const Run& run, bool also_without_client) const {
    if (core_.hub.empty()) {
        return false;
    }
    return run.prompt->has_client ? core_.hub.has(run.prompt->client_id) : also_without_client;
}

void Runner::emit(Run& run, std::string text, Kind kind, bool also_without_client) {
    if (!anybody_listens(run, also_without_client)) {
        return;
    }
    if (run.faults.out_of_order && kind == Kind::executing) {
        run.held_executing = std::move(text);
        return;
    }
    if (run.faults.out_of_order && kind == Kind::executed) {
        run.held_executed.push_back(std::move(text));
        return;
    }
    deliver(run, text, false, also_without_client);
    if (!run.held_executing.empty()) {
        deliver(run, std::exchange(run.held_executing, {}), false, false);
    }
}

void Runner::flush_held(Run& run) {
    if (!run.held_executing.empty()) {
        deliver(run, std::exchange(run.held_executing, {}), false, false);
    }
    for (const auto& text : std::exchange(run.held_executed, {})) {
        deliver(run, text, false, false);
    }
}

void Runner::deliver(Run& run, const std::string& text, bool binary, bool also_without_client) {
    if (run.faults.ws_silence || !anybody_listens(run, also_without_client)) {
        return;
    }
    const auto send = [this, &run](const std::string& data, bool is_binary) {
        if (run.prompt->has_client) {
            core_.hub.send(run.prompt->client_id, data, is_binary);
        } else {
            core_.hub.send_to_all(data, is_binary);
        }
    };
    send(text, binary);
    if (run.faults.duplicate) {
        send(text, binary);
    }
    if (run.faults.bad_json) {
        send(text.substr(0, text.size() / 2), false);
    }
    if (run.faults.garbage) {
        using namespace std::string_literals;
        send(R"({"type": "some.custom.node", "data": [1, {"x": null}]})", false);
        send(R"({"type": "other.custom.node", "data": {"x": [1, null]}})", false);
        send("[]", false);
        send(R"({"type": 7, "data": "text"})", false);
        send("\0\0\0\x63garbage"s, true);
        send("\0\0"s, true);
        send("\0\0\0\x04\xFF\xFF\xFF\xFF{"s, true);
    }
    ++run.messages;
    if (run.faults.ws_disconnect > 0 && run.messages >= run.faults.ws_disconnect &&
        !run.socket_dropped) {
        run.socket_dropped = true;
        core_.hub.drop_when_written(run.prompt->client_id);
    }
}

}  // namespace comfyd::support
