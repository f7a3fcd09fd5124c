// Structured logging: a message and fields. Text on a terminal, JSON lines otherwise. Secrets are
// never passed in; job ids go into the field "job". Any thread, and none ever waits for whoever
// reads the log: lines that nobody takes are dropped and counted.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "base/id.hpp"

namespace comfyd::log {

enum class Level { debug, info, warning, error };
enum class Format { automatic, text, json };

class Field {
public:
    Field(std::string_view key, std::string_view value) : key_(key), text_(value), quoted_(true) {}
    Field(std::string_view key, const char* value) : Field(key, std::string_view(value)) {}
    Field(std::string_view key, const std::string& value) : Field(key, std::string_view(value)) {}
    Field(std::string_view key, bool value) : key_(key), text_(value ? "true" : "false") {}
    template <std::integral T>
        requires(!std::same_as<T, bool>)
    Field(std::string_view key, T value) : key_(key), text_(std::to_string(value)) {}
    Field(std::string_view key, double value) : key_(key), text_(std::to_string(value)) {}
    template <class Tag>
    Field(std::string_view key, const Id<Tag>& id)
        : key_(key), text_(id.to_string()), quoted_(true) {}

    std::string_view key() const { return key_; }
    std::string_view text() const { return text_; }
    bool quoted() const { return quoted_; }

private:
    std::string_view key_;
    std::string text_;
    bool quoted_ = false;
};

using Fields = std::initializer_list<Field>;

// Called once at start-up, before threads; until then warnings and errors go to stderr as text.
void configure(Level level, Format format);
bool enabled(Level level);
// Waits for a moment until what was logged is written: before an end that runs no destructors.
// False when nobody reads it.
bool flush();
std::uint64_t dropped();  // lines, since the start

void debug(std::string_view message, Fields fields = {});
void info(std::string_view message, Fields fields = {});
void warning(std::string_view message, Fields fields = {});
void error(std::string_view message, Fields fields = {});

}  // namespace comfyd::log
