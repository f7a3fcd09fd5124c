#include "media/helpers.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/deadline.hpp"
#include "base/log.hpp"

namespace comfyd::media {
namespace {

// From the time at which a helper gives up by itself to that at which it is ended.
constexpr Millis kGrace{2'000};

Descriptor open_source(const std::filesystem::path& path) {
    return Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
}

// Bytes that are in memory become a file that has no name.
Descriptor open_source(const std::shared_ptr<const std::string>& bytes) {
    Descriptor file(::memfd_create("output", MFD_CLOEXEC));
    std::string_view left(*bytes);
    while (file && !left.empty()) {
        const ssize_t count = ::write(file.number(), left.data(), left.size());
        if (count < 0 && errno != EINTR) {
            file.close();
        }
        left.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    }
    return file;
}

}  // namespace

Helpers::Helpers(HelpersOptions options)
    : options_(std::move(options)), pool_(options_.processes_max) {}

Helpers::~Helpers() = default;

Task<Result<Answer>> Helpers::ask(Order order, Source source, std::stop_token stop) {
    if (files_.fetch_add(1) >= options_.waiting_max + options_.processes_max) {
        --files_;
        co_return fail(Code::queue_full, "too many files wait for the processes that read them");
    }
    auto answer =
        co_await pool_.run([this, &order, &source, &stop] { return ask_one(order, source, stop); });
    --files_;
    co_return answer;
}

Result<Answer> Helpers::ask_one(
    const Order& order, const Source& source, const std::stop_token& stop
) {
    const Deadline end = Deadline::in(options_.time_max + kGrace);
    const GoesOn goes_on = [&]() -> Result<> {
        if (stop.stop_requested()) {
            return fail(Code::cancelled, "the job was stopped");
        }
        if (end.has_passed()) {
            return fail(Code::execution_timeout, "it takes longer than a file may");
        }
        return {};
    };
    if (auto may = goes_on(); !may) {
        return fail(std::move(may.error()));
    }
    const Descriptor file =
        std::visit([](const auto& where) { return open_source(where); }, source);
    if (!file) {
        return fail(Code::output_unavailable, "the file cannot be opened");
    }
    auto helper = take();
    if (!helper) {
        return fail(std::move(helper.error()));
    }
    const pid_t pid = (*helper)->pid();
    auto answer = (*helper)->ask(order, file.number(), goes_on);
    const Lock lock(mutex_);
    std::erase(busy_, pid);
    if (answer && !answer->is_last) {
        idle_.push_back(std::move(*helper));
    } else if (!answer && answer.error().code != Code::cancelled) {
        log::warning(
            "a file could not be looked at",
            {{"file", order.name}, {"error", answer.error().message}}
        );
    }
    return answer;
}

// One that waits, or a new one.
Result<std::unique_ptr<HelperProcess>> Helpers::take() {
    const Lock lock(mutex_);
    std::unique_ptr<HelperProcess> helper;
    while (!helper && !idle_.empty()) {
        helper = std::move(idle_.back());
        idle_.pop_back();
        if (helper->has_ended()) {
            helper.reset();
        }
    }
    if (!helper) {
        auto started = HelperProcess::start(options_.command);
        if (!started) {
            return started;
        }
        helper = std::move(*started);
    }
    busy_.push_back(helper->pid());
    return helper;
}

std::vector<pid_t> Helpers::pids() const {
    const Lock lock(mutex_);
    std::vector<pid_t> pids = busy_;
    for (const auto& helper : idle_) {
        pids.push_back(helper->pid());
    }
    return pids;
}

}  // namespace comfyd::media
