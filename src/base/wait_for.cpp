#include "base/wait_for.hpp"

#include <exception>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>

namespace comfyd {

std::future<void> start_task(Executor executor, Task<> task) {
    return boost::asio::co_spawn(executor, std::move(task), boost::asio::use_future);
}

void wait_for(Executor executor, Task<> task) {
    start_task(std::move(executor), std::move(task)).get();
}

void run_task(boost::asio::io_context& context, Task<> task) {
    std::exception_ptr failure;
    boost::asio::co_spawn(
        context.get_executor(),
        std::move(task),
        [&failure](std::exception_ptr error) { failure = std::move(error); }
    );
    context.restart();
    context.run();
    if (failure) {
        std::rethrow_exception(failure);
    }
}

}  // namespace comfyd
