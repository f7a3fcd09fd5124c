#include "support/mail_server.hpp"

#include <stdexcept>
#include <utility>

#include "support/wait.hpp"

namespace comfyd::support {
namespace {

// aiosmtpd is a package of the system's Python.
constexpr const char* kPython = "/usr/bin/python3";
constexpr std::int64_t kLineMax = 300;  // an address may need more than the usual 76

std::vector<std::string> lines_with(const Process& process, std::string_view word) {
    std::vector<std::string> found;
    const std::string output = process.output();
    std::size_t begin = 0;
    for (std::size_t end = output.find('\n'); end != std::string::npos;
         end = output.find('\n', begin)) {
        const std::string_view line(output.data() + begin, end - begin);
        if (line.starts_with(word)) {
            found.emplace_back(line.substr(word.size()));
        }
        begin = end + 1;
    }
    return found;
}

}  // namespace

std::string ReceivedMail::header(std::string_view name) const {
    for (const json::value& pair : all.at("headers").as_array()) {
        if (pair.at(0).as_string() == name) {
            return std::string(pair.at(1).as_string());
        }
    }
    return "";
}

std::string ReceivedMail::text(std::string_view member) const {
    const json::value& value = all.at(member);
    return value.is_string() ? std::string(value.get_string()) : "";
}

std::string ReceivedMail::to() const {
    return std::string(all.at("to").as_array().at(0).as_string());
}

bool ReceivedMail::is_well_formed() const {
    return all.at("is_ascii").as_bool() && !all.at("has_bare_breaks").as_bool() &&
           all.at("longest_line").as_int64() <= kLineMax && all.at("defects").as_array().empty();
}

MailServer::MailServer(json::object told) {
    if (told.contains("security")) {
        certificate_ = make_certificate(folder_);
        told["certificate"] = certificate_.certificate;
        told["key"] = certificate_.key;
    }
    process_ = std::make_unique<Process>(
        std::vector<std::string>{kPython, "-B", MAIL_SERVER, json::serialize(told)}
    );
    const auto port = process_->wait_for_line("port ");
    if (!port) {
        throw std::runtime_error("no mail server comes up: " + process_->errors());
    }
    port_ = static_cast<std::uint16_t>(std::stoi(*port));
}

std::vector<ReceivedMail> MailServer::mails() const {
    std::vector<ReceivedMail> mails;
    for (const std::string& line : lines_with(*process_, "mail ")) {
        mails.push_back({json::parse_object(line).value()});
    }
    return mails;
}

std::size_t MailServer::sessions() const {
    return lines_with(*process_, "session ").size();
}

std::vector<ReceivedMail> MailServer::wait_for(std::size_t count) const {
    wait_until([&] { return lines_with(*process_, "mail ").size() >= count; });
    return mails();
}

bool MailServer::wait_for_sessions(std::size_t count) const {
    return wait_until([&] { return sessions() >= count; });
}

}  // namespace comfyd::support
