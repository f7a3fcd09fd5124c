#include "base/log.hpp"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <atomic>

#include "base/json.hpp"

namespace comfyd::log {
namespace {

struct Settings {
    std::atomic<Level> level{Level::warning};
    std::atomic<bool> json{false};
};

Settings& settings() {
    static Settings instance;
    return instance;
}

spdlog::logger& sink() {
    static const auto logger = [] {
        auto made = std::make_shared<spdlog::logger>(
            "comfyd", std::make_shared<spdlog::sinks::stderr_sink_mt>()
        );
        made->set_level(spdlog::level::trace);
        made->set_pattern("%v");
        made->flush_on(spdlog::level::trace);
        return made;
    }();
    return *logger;
}

std::string_view name(Level level) {
    switch (level) {
        case Level::debug:
            return "debug";
        case Level::info:
            return "info";
        case Level::warning:
            return "warning";
        case Level::error:
            return "error";
    }
    return "error";
}

std::string as_json(Level level, std::string_view message, Fields fields) {
    std::string line = "{\"time\":\"" + to_rfc3339(SystemClock().now()) + "\",\"level\":\"";
    line += name(level);
    line += "\",\"message\":" + json::quoted(message);
    for (const Field& field : fields) {
        line += ',';
        line += json::quoted(field.key());
        line += ':';
        line += field.quoted() ? json::quoted(field.text()) : std::string(field.text());
    }
    line += '}';
    return line;
}

std::string as_text(Level level, std::string_view message, Fields fields) {
    std::string line = to_rfc3339(SystemClock().now()).substr(11, 12);
    line += ' ';
    line += name(level);
    line.append(8 - name(level).size(), ' ');
    line += message;
    for (const Field& field : fields) {
        line += "  ";
        line += field.key();
        line += '=';
        line += field.text().find_first_of(" \n\t\"") == std::string_view::npos
                    ? std::string(field.text())
                    : json::quoted(field.text());
    }
    return line;
}

void write(Level level, std::string_view message, Fields fields) {
    if (!enabled(level)) {
        return;
    }
    sink().info(
        settings().json ? as_json(level, message, fields) : as_text(level, message, fields)
    );
}

}  // namespace

void configure(Level level, Format format) {
    settings().level = level;
    settings().json = format == Format::json || (format == Format::automatic && isatty(2) == 0);
}

bool enabled(Level level) {
    return level >= settings().level.load(std::memory_order_relaxed);
}

void debug(std::string_view message, Fields fields) {
    write(Level::debug, message, fields);
}
void info(std::string_view message, Fields fields) {
    write(Level::info, message, fields);
}
void warning(std::string_view message, Fields fields) {
    write(Level::warning, message, fields);
}
void error(std::string_view message, Fields fields) {
    write(Level::error, message, fields);
}

}  // namespace comfyd::log
