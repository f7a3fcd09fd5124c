#include "support/double/core.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <utility>

#include "support/double/messages.hpp"

namespace comfyd::support {

Core::Core(Executor core_executor, DoubleOptions core_options)
    : executor(core_executor),
      options(std::move(core_options)),
      behaviour(options.version),
      catalogue(options.models, options.nodes_json, options.batch_pack),
      files(options.files_max),
      hub(core_executor, options.message_pause),
      faults(options.faults),
      wake(core_executor) {}

void Core::look_at_models() {
    if (!options.models_folder.empty()) {
        catalogue.look_at_models(options.models_folder);
    }
}

void Core::send_status() {
    if (!hub.empty() && !faults.run.ws_silence) {
        hub.send_to_all(status_message(queue.remaining()));
    }
}

bool Core::interrupt_running(std::string_view id) {
    if (!queue.running() || (!id.empty() && queue.running()->id != id)) {
        return false;
    }
    interrupt = true;
    wake.notify();
    return true;
}

void Core::forget() {
    queue = {};
    history.clear();
    cache.clear();
    files.clear_temp();
    counter = 0;
    interrupt = false;
    crashed = false;
    gpu_lost = thread_ended = false;
    current_node.clear();
    broken_history_id.clear();
    epochs.clear();
    fenced_prompts.clear();
}

bool Core::is_let_go() const {
    std::error_code ignored;
    return std::filesystem::exists(
        std::filesystem::path(options.journal).parent_path() / "let-go", ignored
    );
}

void Core::journal(std::string_view line) {
    if (options.journal.empty()) {
        return;
    }
    // Opened each time: several processes may append, and a line must be there when one is killed
    // next.
    const int file =
        ::open(options.journal.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (file < 0) {
        return;
    }
    const std::string text = std::string(line) + " " + std::to_string(::getpid()) + "\n";
    [[maybe_unused]] const auto written = ::write(file, text.data(), text.size());
    ::close(file);
}

}  // namespace comfyd::support
