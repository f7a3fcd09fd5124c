// The whole program behind `comfyd serve`: makes every part, hands each its collaborators, starts
// and stops them in order. The only place that knows all rooms.
#pragma once

#include <memory>
#include <string>

#include "app/config/config.hpp"
#include "base/error.hpp"

namespace comfyd::app {

class Application {
public:
    // Everything is up and the port is open when this returns.
    static Result<std::unique_ptr<Application>> start(Config config);
    ~Application();  // stop()

    std::string url() const;  // "http://127.0.0.1:8080"
    // Stops accepting, answers what is in progress, lets running jobs finish within the grace or
    // leaves them on their workers for the next start, then closes the ledger.
    void stop();

private:
    class Impl;
    explicit Application(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace comfyd::app
