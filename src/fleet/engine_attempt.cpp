#include "fleet/engine_attempt.hpp"

#include <algorithm>
#include <fstream>
#include <new>
#include <system_error>
#include <utility>

#include <boost/asio/post.hpp>

#include "base/log.hpp"
#include "comfy/client.hpp"
#include "fleet/remarks.hpp"
#include "fleet/stopping.hpp"

namespace comfyd::fleet {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kKeptFilesMax = 4'096;

Error disk_error(const std::string& what, const std::error_code& error) {
    const bool full = error == std::errc::no_space_on_device;
    return {full ? Code::storage_full : Code::storage_unavailable, what + ": " + error.message()};
}

// A second name for the file where the file system can do that, else a copy.
std::error_code link_or_copy(const fs::path& from, const fs::path& to) {
    std::error_code error;
    fs::create_hard_link(from, to, error);
    if (error) {
        error.clear();
        fs::copy_file(from, to, fs::copy_options::overwrite_existing, error);
    }
    return error;
}

fs::path unique_beside(const fs::path& path) {
    return path.parent_path() / (".comfyd-" + Uuid::make(SystemClock().now()).to_string());
}

std::error_code put(const assets::Content& content, const fs::path& to) {
    if (const auto* file = std::get_if<fs::path>(&content)) {
        return link_or_copy(*file, to);
    }
    std::ofstream into(to, std::ios::binary);
    into << std::get<std::string>(content);
    into.close();
    return into ? std::error_code() : std::make_error_code(std::errc::io_error);
}

// Appears under its name whole or not at all; what is there already has the same content by its
// name, and is marked as used: old ones are removed.
Result<> place_file(const assets::Content& content, const fs::path& to) {
    std::error_code error;
    fs::last_write_time(to, fs::file_time_type::clock::now(), error);
    if (!error) {
        return {};
    }
    fs::create_directories(to.parent_path(), error);
    const fs::path temporary = unique_beside(to);
    error = put(content, temporary);
    if (!error) {
        std::error_code ignored;  // an older file lasts as long as its job all the same
        fs::last_write_time(temporary, fs::file_time_type::clock::now(), ignored);
        fs::rename(temporary, to, error);
    }
    if (error) {
        std::error_code ignored;
        fs::remove(temporary, ignored);
        return fail(disk_error("input file " + to.filename().string(), error));
    }
    return {};
}

// A name of our own for the engine's file, to be moved away.
Result<fs::path> second_name(const fs::path& file) {
    const fs::path name = unique_beside(file);
    const auto error = link_or_copy(file, name);
    if (error == std::errc::no_such_file_or_directory) {
        return fail(Code::output_unavailable, "output " + file.filename().string() + " is gone");
    }
    if (error) {
        return fail(disk_error("output " + file.filename().string(), error));
    }
    return name;
}

Error rejection(json::object error, json::object node_errors) {
    json::object answer;
    answer["error"] = std::move(error);
    answer["node_errors"] = std::move(node_errors);
    return comfy::rejection("the engine", std::move(answer));
}

Result<engine::RunResult> run_engine(
    engine::Core& engine,
    json::object prompt,
    json::object extra_data,
    const std::vector<std::string>& targets,
    engine::Listener& listener,
    std::stop_token stop,
    const engine::Owner& owner
) {
    try {
        auto validation = engine.validate(prompt, targets.empty() ? nullptr : &targets, &owner);
        if (!validation.ok) {
            return fail(rejection(std::move(validation.error), std::move(validation.node_errors)));
        }
        auto result = engine.run(
            std::move(prompt),
            std::move(extra_data),
            listener,
            std::move(stop),
            std::move(validation.outputs_to_execute),
            &owner
        );
        if (!result && result.error().code == Code::invalid_workflow) {
            result.error().code = Code::worker_rejected;
        }
        return result;
    } catch (const std::bad_alloc&) {
        return fail(Code::out_of_memory, "the engine ran out of memory");
    } catch (const std::exception& exception) {
        return fail(Code::internal, std::string("the engine failed: ") + exception.what());
    }
}

engine::Owner owner_of(const EngineLink& link, const std::string& tenant) {
    const std::string own = link.tenants.of_outputs(tenant);
    if (own.empty()) {
        return {{}, link.folders};
    }
    return {own, {link.folders.input, link.folders.output / own, link.folders.temp / own}};
}

}  // namespace

void KeptFiles::add(std::string path) {
    const auto [entry, is_new] = known_.insert(std::move(path));
    if (is_new) {
        by_age_.push_back(*entry);
    }
}

std::vector<std::string> KeptFiles::take_excess() {
    std::vector<std::string> excess;
    while (by_age_.size() > kKeptFilesMax) {
        known_.erase(by_age_.front());
        excess.push_back(std::move(by_age_.front()));
        by_age_.pop_front();
    }
    return excess;
}

// Carries the engine's calls from its threads to the core executor. Shared by the attempt and the
// posted calls.
class EngineAttempt::Relay final : public engine::Listener,
                                   public std::enable_shared_from_this<Relay> {
public:
    Relay(
        Executor core,
        const json::object& prompt,
        std::string prompt_id,
        jobs::AttemptListener& listener
    )
        : core_(core),
          tracker_(prompt),
          narrator_(std::move(prompt_id), clock_),
          listener_(&listener) {}

    void cached(const std::vector<std::string>& nodes) override {
        tell(
            [nodes](ProgressTracker& tracker) { return tracker.cached(nodes); },
            [nodes](Narrator& narrator) { return narrator.cached(nodes); }
        );
    }
    void executing(const std::string& node) override {
        tell(
            [node](ProgressTracker& tracker) { return tracker.executing(node); },
            [node](Narrator& narrator) { return narrator.executing(node); }
        );
    }
    void progress(const std::string& node, double value, double max) override {
        tell(
            [node, value, max](ProgressTracker& tracker) {
                return tracker.stepped(node, value, max);
            },
            [node, value, max](Narrator& narrator) { return narrator.progress(node, value, max); }
        );
    }
    void executed(const std::string& node, const json::object& ui) override {
        boost::asio::post(core_, [self = shared_from_this(), outputs = json::object{{node, ui}}] {
            for (UiItem& item : list_results(outputs)) {
                self->made_.push_back(std::move(item));
            }
        });
        tell(
            [node](ProgressTracker& tracker) { return tracker.finished(node); },
            [node, ui](Narrator& narrator) { return narrator.executed(node, ui); }
        );
    }
    void finished(const std::string& node) override {
        tell(
            [](ProgressTracker&) { return false; },
            [node](Narrator& narrator) { return narrator.finished(node); }
        );
    }
    void preview(const std::string& node, engine::ImageFormat format, std::string_view bytes)
        override {
        const char* type = format == engine::ImageFormat::png ? "image/png" : "image/jpeg";
        boost::asio::post(
            core_,
            [self = shared_from_this(), node, type, bytes = std::string(bytes)]() mutable {
                if (self->listener_ != nullptr) {
                    self->listener_->on_preview(bytes, type);
                    self->remark([&](Narrator& narrator) {
                        return narrator.preview(node, std::move(bytes), type);
                    });
                }
            }
        );
    }
    void text(const std::string& node, std::string_view text) override {
        tell(
            [](ProgressTracker&) { return false; },
            [node, text = std::string(text)](Narrator& narrator) {
                return narrator.text(node, text);
            }
        );
    }
    // Core executor: where the run was when it was stopped.
    void interrupted() {
        remark([this](Narrator& narrator) {
            return narrator.interrupted([this](const std::string& node) {
                return tracker_.class_of(node);
            });
        });
    }
    // The listener is not called any more.
    void close() { listener_ = nullptr; }
    // Core executor: the results that were told of.
    const std::vector<UiItem>& made() const { return made_; }

private:
    template <class Step, class Words>
    void tell(Step step, Words words) {
        boost::asio::post(
            core_,
            [self = shared_from_this(), step = std::move(step), words = std::move(words)] {
                if (self->listener_ == nullptr) {
                    return;
                }
                if (step(self->tracker_)) {
                    self->listener_->on_progress(self->tracker_.snapshot());
                }
                self->remark(words);
            }
        );
    }

    template <class Words>
    void remark(const Words& words) {
        auto remarks = words(narrator_);  // also when nobody listens: somebody may, later
        if (listener_->wants_remarks()) {
            for (jobs::Remark& one : remarks) {
                listener_->on_remark(std::move(one));
            }
        }
    }

    Executor core_;
    SystemClock clock_;
    ProgressTracker tracker_;  // this and what follows: core executor
    Narrator narrator_;
    jobs::AttemptListener* listener_;
    std::vector<UiItem> made_;
};

EngineAttempt::EngineAttempt(
    EngineLink& link,
    jobs::Assignment assignment,
    jobs::AttemptListener& listener,
    jobs::StopRequest& stop
)
    : link_(link),
      assignment_(std::move(assignment)),
      listener_(listener),
      stop_(stop),
      owner_(owner_of(link, assignment_.tenant)) {}

Task<Result<jobs::AttemptResult>> EngineAttempt::run() {
    TaskGroup work(link_.core);
    work.spawn("engine attempt", execute());
    std::optional<Code> why = co_await wait_for_end(result_, stop_, assignment_.timeout);
    if (why) {
        engine_stop_.request_stop();
        work.cancel();
    }
    // A join that is itself cancelled returns early; the task ends all the same.
    while (work.size() > 0) {
        co_await work.join();
    }
    if (!why && stop_.reason == Code::cancelled) {
        why = Code::cancelled;
    }
    if (why) {
        co_return fail(stop_error(*why));
    }
    co_return std::move(*result_);
}

// The engine needs no GPU and loads no models.
void EngineAttempt::tell_usage(const Result<jobs::AttemptResult>& result) {
    jobs::Usage usage;
    usage.inference = std::chrono::floor<Millis>(std::chrono::steady_clock::now() - made_at_);
    usage.images = result ? count_images(result->outputs) : 0;
    listener_.on_usage(usage);
}

Task<> EngineAttempt::execute() {
    auto result = co_await attempt();
    result_ = std::move(result);
    stop_.requested.notify();
}

Task<Result<jobs::AttemptResult>> EngineAttempt::attempt() {
    auto prompt = json::parse_object(assignment_.workflow);
    if (!prompt) {
        co_return fail(
            Code::invalid_workflow, "the stored workflow cannot be read: " + prompt.error().message
        );
    }
    if (may_use_assets(assignment_.workflow)) {
        auto placed = co_await place_inputs(*prompt);
        if (!placed) {
            co_return fail(std::move(placed.error()));
        }
    }
    relay_ = std::make_shared<Relay>(link_.core, *prompt, assignment_.prompt_id, listener_);
    auto result = co_await link_.threads.run([&engine = link_.engine,
                                              prompt = std::move(*prompt),
                                              extra_data = assignment_.extra_data,
                                              targets = assignment_.targets,
                                              relay = relay_,
                                              owner = owner_,
                                              stop = engine_stop_.get_token()]() mutable {
        return run_engine(
            engine,
            std::move(prompt),
            std::move(extra_data),
            targets,
            *relay,
            std::move(stop),
            owner
        );
    });
    if (!result && result.error().code == Code::cancelled) {
        relay_->interrupted();
    }
    relay_->close();
    if (result && listener_.wants_remarks()) {
        listener_.on_remark(jobs::Remark{"execution_success", {}, {}, {}});
    }
    if (!result) {
        co_return fail(std::move(result.error()));
    }
    auto collected = co_await collect(std::move(result->outputs));
    co_return collected;
}

Task<Result<>> EngineAttempt::place_inputs(json::object& prompt) {
    auto uses = find_asset_uses(prompt);
    for (const AssetUse& use : uses) {
        auto asset = co_await find_asset(link_.store, assignment_.tenant, use);
        if (!asset) {
            co_return fail(std::move(asset.error()));
        }
        const std::string name =
            link_.tenants.of_inputs(assignment_.tenant) + "/" + input_name(*asset);
        const fs::path target = link_.folders.input / name;
        auto content = co_await link_.store.content(std::move(*asset));
        if (!content) {
            co_return fail(std::move(content.error()));
        }
        auto placed = co_await link_.disk.run([from = std::move(*content), target] {
            return place_file(from, target);
        });
        if (!placed) {
            co_return placed;
        }
        *use.place = name;  // stays valid: replacing one value moves no other
    }
    co_return Result<>();
}

Task<Result<jobs::AttemptResult>> EngineAttempt::collect(json::object outputs) {
    jobs::AttemptResult result;
    const auto items = list_results(outputs);
    result.ui_outputs = std::move(outputs);
    for (const UiItem& item : items) {
        auto output = co_await store_item(item);
        if (!output) {
            co_return fail(std::move(output.error()));
        }
        listener_.on_output(*output);
        result.outputs.push_back(std::move(*output));
    }
    co_await forget_old_files();
    co_return result;
}

Task<Result<jobs::Output>> EngineAttempt::store_item(const UiItem& item) {
    if (item.content) {
        auto added = co_await link_.store.add(*item.content, new_asset(item));
        if (!added) {
            co_return fail(std::move(added.error()));
        }
        co_return make_output(item, added->asset);
    }
    const fs::path file = path_of(item.file);
    auto name = co_await link_.disk.run([file] { return second_name(file); });
    if (!name) {
        co_return fail(std::move(name.error()));
    }
    auto added = co_await link_.store.add_file(*name, new_asset(item));
    if (!added) {
        std::error_code ignored;
        fs::remove(*name, ignored);
        co_return fail(std::move(added.error()));
    }
    if (item.file.type != "input") {
        link_.kept_files.add(file.string());
    }
    co_return make_output(item, added->asset);
}

fs::path EngineAttempt::path_of(const comfy::FileName& file) const {
    const auto& folders = owner_.folders;
    const fs::path& folder = file.type == "temp"    ? folders.temp
                             : file.type == "input" ? folders.input
                                                    : folders.output;
    return folder / file.subfolder / file.filename;
}

std::optional<fs::path> EngineAttempt::find_made(const jobs::WorkerFile& file) const {
    if (!relay_) {
        return std::nullopt;
    }
    for (const UiItem& item : relay_->made()) {
        if (!item.content && item.file.filename == file.name &&
            item.file.subfolder == file.subfolder && item.file.type == file.folder) {
            return path_of(item.file);
        }
    }
    return std::nullopt;
}

Task<> EngineAttempt::forget_old_files() {
    auto old = link_.kept_files.take_excess();
    if (old.empty()) {
        co_return;
    }
    co_await link_.disk.run([old = std::move(old)] {
        std::error_code ignored;
        for (const std::string& file : old) {
            fs::remove(file, ignored);
        }
        return true;
    });
}

assets::NewAsset EngineAttempt::new_asset(const UiItem& item) const {
    assets::NewAsset asset;
    asset.tenant = assignment_.tenant;
    asset.content_type = content_type_for("", item.file.filename);
    asset.file_path = item.file.filename;
    asset.job = assignment_.job;
    return asset;
}

Error EngineAttempt::stop_error(Code why) const {
    switch (why) {
        case Code::execution_timeout:
            return {why, "the run did not end in its time and was stopped"};
        case Code::deadline_exceeded:
            return {why, "the job's deadline passed while it ran"};
        case Code::shutting_down:
            return {why, "comfyd shuts down; the run was stopped"};
        default:
            return {why, "the job was cancelled while it ran"};
    }
}

}  // namespace comfyd::fleet
