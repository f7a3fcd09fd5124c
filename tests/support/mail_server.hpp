// A real SMTP server of a test: Debian's aiosmtpd, with answers and breaks as the test wants them
// (mail_server.py says which). It ends with its owner.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "support/certificate.hpp"
#include "support/process.hpp"
#include "support/temp_dir.hpp"

namespace comfyd::support {

// A mail as Python's email package reads it.
struct ReceivedMail {
    json::object all;

    // Of the first header of this name; empty: there is none.
    std::string header(std::string_view name) const;
    std::string text(std::string_view member) const;  // empty where it is null
    std::string to() const;
    bool is_well_formed() const;  // ASCII, short lines, no bare CR or LF, no defects
};

class MailServer {
public:
    // `told`: as mail_server.py says. Where "security" is set it has a certificate for localhost.
    // Throws std::runtime_error when it does not come up.
    explicit MailServer(json::object told = {});

    std::uint16_t port() const { return port_; }
    std::string ca_file() const { return certificate_.certificate; }

    std::vector<ReceivedMail> mails() const;
    std::size_t sessions() const;
    // What came, once there are at least `count`; fewer after the deadline.
    std::vector<ReceivedMail> wait_for(std::size_t count) const;
    bool wait_for_sessions(std::size_t count) const;

private:
    TempDir folder_;
    Certificate certificate_;
    std::unique_ptr<Process> process_;
    std::uint16_t port_ = 0;
};

}  // namespace comfyd::support
