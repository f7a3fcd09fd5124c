// Threads that run io_contexts, one each. The owner makes them first and destroys them last:
// whatever runs on the contexts must be gone before stop().
//
// An exception that leaves a handler is logged and the loop goes on: one broken callback must not
// take a thread, and with it thousands of connections, down.
#pragma once

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>

#include "base/task.hpp"

namespace comfyd::net {

class IoThread {
public:
    explicit IoThread(std::string name);  // at most 15 characters, as the kernel shows it
    ~IoThread();                          // stop()
    IoThread(const IoThread&) = delete;
    IoThread& operator=(const IoThread&) = delete;

    boost::asio::io_context& context() { return context_; }
    Executor executor() { return context_.get_executor(); }
    void start();
    // Returns when the thread has ended; what is still queued is not run. Not from the thread
    // itself.
    void stop();

private:
    std::string name_;
    boost::asio::io_context context_{1};
    boost::asio::executor_work_guard<Executor> work_;
    std::thread thread_;
};

class IoThreads {
public:
    explicit IoThreads(unsigned count);

    std::vector<boost::asio::io_context*> contexts();
    void start();
    void stop();

private:
    std::vector<std::unique_ptr<IoThread>> threads_;
};

}  // namespace comfyd::net
