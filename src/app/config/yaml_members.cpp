#include "app/config/yaml_members.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>

#include "app/config/settings.hpp"
#include "base/text.hpp"

namespace comfyd::app {
namespace {

const std::string kMask = "********";
constexpr std::size_t kSecretBytesMax = 64 * 1024;

}  // namespace

YAML::Node Members::take(const std::string& name) {
    taken_.insert(name);
    const YAML::Node found = map_[name];
    if (found && found.IsNull()) {
        complain("has '" + name + "' without a value");
        return YAML::Node(YAML::NodeType::Undefined);
    }
    return found;
}

std::string Members::scalar(const std::string& name, const YAML::Node& node) {
    if (!node.IsScalar()) {
        complain("has '" + name + "', which is a single value");
        return {};
    }
    return node.Scalar();
}

std::string Members::text(const std::string& name, std::string otherwise) {
    const YAML::Node found = take(name);
    if (!found) {
        return otherwise;
    }
    std::string value = scalar(name, found);
    shown.emplace_back(name, value);
    return value;
}

std::vector<std::string> Members::texts(const std::string& name) {
    const YAML::Node found = take(name);
    std::vector<std::string> all;
    if (found && found.IsScalar()) {
        all.push_back(found.Scalar());
    } else if (found && found.IsSequence()) {
        for (const YAML::Node& item : found) {
            all.push_back(scalar(name, item));
        }
    } else if (found) {
        complain("has '" + name + "', which is a list of single values");
    }
    return all;
}

std::string Members::needed(const std::string& name) {
    std::string value = text(name);
    if (value.empty()) {
        complain("needs '" + name + "'");
    }
    return value;
}

std::string Members::secret(const std::string& name) {
    const YAML::Node found = hidden(name);
    const std::string file = text(name + "_file");
    if (file.empty()) {
        return found ? scalar(name, found) : "";
    }
    std::ifstream stream(file, std::ios::binary);
    std::string value(std::istreambuf_iterator<char>(stream), {});
    if (value.empty()) {
        complain("has '" + name + "_file', but '" + file + "' cannot be read or is empty");
    }
    value.resize(std::min(value.size(), kSecretBytesMax));
    return std::string(trim(value, " \t\r\n"));
}

std::string Members::needed_secret(const std::string& name) {
    std::string value = secret(name);
    if (value.empty()) {
        complain("needs '" + name + "' or '" + name + "_file'");
    }
    return value;
}

std::int64_t Members::number(
    const std::string& name, std::int64_t otherwise, std::int64_t min, std::int64_t max
) {
    const std::string value = text(name);
    if (value.empty()) {
        return otherwise;
    }
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    const bool is_whole = error == std::errc() && end == value.data() + value.size();
    if (!is_whole || number < min || number > max) {
        complain(
            "has '" + name + "', a whole number from " + std::to_string(min) + " to " +
            std::to_string(max) + ", not '" + value + "'"
        );
    }
    return number;
}

YAML::Node Members::hidden(const std::string& name) {
    YAML::Node found = take(name);
    if (found) {
        shown.emplace_back(name, kMask);
    }
    return found;
}

void Members::complain(const std::string& what) {
    if (complaint_.empty()) {
        complaint_ = whose_ + " " + what;
    }
}

Result<> Members::done() {
    for (const auto& member : map_) {
        const std::string name = member.first.as<std::string>();
        if (!taken_.contains(name)) {
            complain("has no '" + name + "'");
        }
    }
    return complaint_.empty() ? Result<>() : invalid(complaint_);
}

}  // namespace comfyd::app
