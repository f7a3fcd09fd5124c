// radosgw-server: the S3 service of the tests as a process of its own, for tests that are not in
// C++. Says where it listens, and ends with SIGTERM.
#include <csignal>
#include <iostream>

#include "support/radosgw.hpp"

int main() {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    try {
        comfyd::support::Radosgw server;
        std::cout << "listening on " << server.url() << std::endl;
        int signal = 0;
        sigwait(&signals, &signal);
    } catch (const std::exception& error) {
        std::cerr << error.what() << "\n";
        return 1;
    }
    return 0;
}
