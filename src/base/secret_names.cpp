#include "base/secret_names.hpp"

namespace comfyd {
namespace {

// Shorter ones would hide half of every text.
constexpr std::size_t kSecretBytesMin = 6;

void hide(std::string& text, std::string_view secret) {
    if (secret.size() < kSecretBytesMin) {
        return;
    }
    for (std::size_t at = text.find(secret); at != std::string::npos; at = text.find(secret, at)) {
        text.replace(at, secret.size(), "***");
    }
}

}  // namespace

std::vector<std::string> secrets_in(const std::vector<std::string>& environment) {
    std::vector<std::string> secrets;
    for (const std::string& line : environment) {
        const std::size_t equals = line.find('=');
        if (equals != std::string::npos && names_secret(line.substr(0, equals))) {
            secrets.push_back(line.substr(equals + 1));
        }
    }
    return secrets;
}

std::string without_secrets(std::string text, const std::vector<std::string>& secrets) {
    for (const std::string& secret : secrets) {
        hide(text, secret);
    }
    return text;
}

}  // namespace comfyd
