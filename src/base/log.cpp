#include "base/log.hpp"

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <exception>
#include <memory>

#include "base/json.hpp"
#include "base/log_writer.hpp"

namespace comfyd::log {
namespace {

constexpr std::size_t kWaitingBytesMax = 4 * 1024 * 1024;
constexpr Millis kFlushPatience{1000};

struct Settings {
    std::atomic<Level> level{Level::warning};
    std::atomic<bool> json{false};
};

Settings& settings() {
    static Settings instance;
    return instance;
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

std::string as_line(Level level, std::string_view message, Fields fields) {
    return settings().json ? as_json(level, message, fields) : as_text(level, message, fields);
}

// Made by configure(); goes, and is flushed, when the program ends.
std::unique_ptr<LogWriter>& writer() {
    static std::unique_ptr<LogWriter> instance;
    return instance;
}

void write(Level level, std::string_view message, Fields fields) {
    if (!enabled(level)) {
        return;
    }
    std::string line = as_line(level, message, fields);
    if (writer()) {
        writer()->write(std::move(line));
    } else {
        std::fprintf(stderr, "%s\n", line.c_str());
    }
}

}  // namespace

void configure(Level level, Format format) {
    settings().level = level;
    settings().json = format == Format::json || (format == Format::automatic && isatty(2) == 0);
    writer() =
        std::make_unique<LogWriter>(STDERR_FILENO, kWaitingBytesMax, [](std::uint64_t count) {
            return as_line(
                Level::warning, "log lines were dropped: nobody read them", {{"lines", count}}
            );
        });
    static const std::terminate_handler before = std::get_terminate();
    std::set_terminate([] {
        flush();
        before();
    });
}

bool flush() {
    return !writer() || writer()->flush(kFlushPatience);
}

std::uint64_t dropped() {
    return writer() ? writer()->dropped() : 0;
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
