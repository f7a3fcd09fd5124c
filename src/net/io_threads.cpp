#include "net/io_threads.hpp"

#include <pthread.h>

#include <algorithm>

#include "base/assert.hpp"
#include "base/log.hpp"
#include "base/on_executor.hpp"

namespace comfyd::net {
namespace {

void run_until_stopped(boost::asio::io_context& context, const std::string& name) {
    this_thread_runs_an_executor = true;
    while (true) {
        try {
            context.run();
            return;
        } catch (const std::exception& exception) {
            log::error("handler failed", {{"thread", name}, {"error", exception.what()}});
        } catch (...) {
            log::error("handler failed", {{"thread", name}, {"error", "unknown exception"}});
        }
    }
}

}  // namespace

IoThread::IoThread(std::string name) : name_(std::move(name)), work_(context_.get_executor()) {
    COMFYD_ASSERT(name_.size() <= 15);
}

IoThread::~IoThread() {
    stop();
}

void IoThread::start() {
    COMFYD_ASSERT(!thread_.joinable());
    thread_ = std::thread([this] { run_until_stopped(context_, name_); });
    pthread_setname_np(thread_.native_handle(), name_.c_str());
}

void IoThread::stop() {
    if (thread_.joinable()) {
        context_.stop();
        thread_.join();
    }
}

IoThreads::IoThreads(unsigned count) {
    for (unsigned i = 0; i < std::max(count, 1U); ++i) {
        threads_.push_back(std::make_unique<IoThread>("io-" + std::to_string(i)));
    }
}

std::vector<boost::asio::io_context*> IoThreads::contexts() {
    std::vector<boost::asio::io_context*> contexts;
    for (const auto& thread : threads_) {
        contexts.push_back(&thread->context());
    }
    return contexts;
}

void IoThreads::start() {
    for (const auto& thread : threads_) {
        thread->start();
    }
}

void IoThreads::stop() {
    for (const auto& thread : threads_) {
        thread->stop();
    }
}

}  // namespace comfyd::net
