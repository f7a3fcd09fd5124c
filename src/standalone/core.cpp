#include "standalone/core.hpp"

#include <utility>

namespace comfyd::standalone {

Core::Core(Executor on, Options with, engine::EngineOptions engine_options)
    : executor(on),
      options(std::move(with)),
      folders(engine_options.folders),
      engine(std::move(engine_options)),
      users(options.data / "user" / "default"),
      hub(options.sockets_max, options.socket_bytes_max),
      logs(hub, clock),
      queue(options.pending_max, options.pending_bytes_max),
      history(options.history_max, options.history_bytes_max),
      wake(on) {}

void Core::tell_status() {
    comfy::Status status;
    status.queue_remaining = static_cast<std::int64_t>(remaining());
    hub.broadcast(comfy::encode_text(status));
}

bool Core::interrupt(std::string_view id) {
    if (!running || (!id.empty() && running->prompt->id != id)) {
        return false;
    }
    running->stop.request_stop();
    return true;
}

bool Core::cancel(std::string_view id) {
    if (id.empty()) {
        return false;
    }
    if (interrupt(id)) {
        return true;
    }
    if (queue.erase(id) == 0) {
        return false;
    }
    tell_status();
    return true;
}

}  // namespace comfyd::standalone
