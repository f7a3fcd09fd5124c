#include "app/uploads.hpp"

#include <utility>

#include "base/log.hpp"

namespace comfyd::app {
namespace {

constexpr Millis kPause{250};
constexpr Millis kPauseAlone{10'000};  // only what came too late for a sweep is to be done

}  // namespace

Uploads::Uploads(Executor executor, assets::Store& assets, Options options)
    : assets_(assets), options_(std::move(options)), tasks_(executor) {}

void Uploads::start() {
    tasks_.spawn("uploads", keep_uploading());
}

Task<> Uploads::stop() {
    tasks_.cancel();
    co_await tasks_.join();
}

Task<> Uploads::keep_uploading() {
    while (true) {
        const bool goes_on = co_await sleep_for(options_.has_stores ? kPause : kPauseAlone);
        if (!goes_on) {
            co_return;
        }
        if (options_.is_ours && !options_.is_ours()) {
            continue;
        }
        auto done = co_await assets_.upload();
        if (!done && done.error().code != Code::cancelled) {
            log::warning(
                "what waits for its store could not be looked at", {{"error", done.error().message}}
            );
        }
    }
}

}  // namespace comfyd::app
