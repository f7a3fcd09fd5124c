// The words of one store of the configuration, read one by one. What is left unread is a mistake.
#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.hpp"

namespace comfyd::assets {

class StoreOptionReader {
public:
    explicit StoreOptionReader(std::map<std::string, std::string> options)
        : left_(std::move(options)) {}

    // Empty when it is not given.
    std::string take(const std::string& name);
    // One of `choices`; the first when it is not given.
    std::string take_one_of(
        const std::string& name, std::initializer_list<std::string_view> choices
    );
    std::string take_required(const std::string& name);

    // The first mistake, if there was one. Code::config_invalid. Values are not repeated: they may
    // be secrets.
    Result<> finish() const;

private:
    void refuse(std::string message);

    std::map<std::string, std::string> left_;
    std::string mistake_;
};

}  // namespace comfyd::assets
