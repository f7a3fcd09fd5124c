#include "net/static_files.hpp"

#include <sys/stat.h>

#include <array>
#include <cstdio>
#include <ctime>
#include <utility>

#include "base/text.hpp"

namespace comfyd::net {
namespace {

namespace fs = std::filesystem;

std::string to_hex(std::uint64_t number) {
    std::array<char, 17> text{};
    const int length =
        std::snprintf(text.data(), text.size(), "%llx", static_cast<unsigned long long>(number));
    return {text.data(), static_cast<std::size_t>(length)};
}

std::string etag_of(const struct stat& about) {
    const auto nanoseconds = static_cast<std::uint64_t>(about.st_mtim.tv_sec) * 1'000'000'000ULL +
                             static_cast<std::uint64_t>(about.st_mtim.tv_nsec);
    return '"' + to_hex(nanoseconds) + '-' + to_hex(static_cast<std::uint64_t>(about.st_size)) +
           '"';
}

bool is_unchanged(const Headers& asked, const Headers& told) {
    if (asked.contains("If-None-Match")) {
        return told.contains("ETag") && matches_etag(asked.get("If-None-Match"), told.get("ETag"));
    }
    return told.contains("Last-Modified") &&
           asked.get("If-Modified-Since") == told.get("Last-Modified");
}

bool holds(std::string_view condition, const Headers& told) {
    return condition.empty() || condition == told.get("ETag") ||
           condition == told.get("Last-Modified");
}

// Which part of the content is to be sent, and the head of that answer. nullopt: the head alone is
// the answer.
std::optional<ByteRange> choose_part(const Headers& asked, Response& head, std::uint64_t bytes) {
    head.headers.set("Accept-Ranges", "bytes");
    if (is_unchanged(asked, head.headers)) {
        head.status = 304;
        return std::nullopt;
    }
    const bool wants_part = holds(asked.get("If-Range"), head.headers);
    const auto range = parse_range(wants_part ? asked.get("Range") : "", bytes);
    if (!range) {
        head = {};
        head.status = 416;
        head.headers.set("Content-Range", "bytes */" + std::to_string(bytes));
        return std::nullopt;
    }
    if (*range) {
        tell_part(head, **range, bytes);
    }
    return range->value_or(ByteRange{0, bytes});
}

}  // namespace

bool matches_etag(std::string_view header, std::string_view etag) {
    while (!header.empty()) {
        const auto comma = std::min(header.find(','), header.size());
        std::string_view one = trim(header.substr(0, comma));
        header.remove_prefix(std::min(comma + 1, header.size()));
        if (one.starts_with("W/")) {
            one.remove_prefix(2);
        }
        if (one == "*" || one == etag) {
            return true;
        }
    }
    return false;
}

// Not strftime: names must not depend on a locale.
std::string http_date(std::int64_t unix_seconds) {
    constexpr std::array<const char*, 7> kDays{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    constexpr std::array<const char*, 12> kMonths{
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"
    };
    const std::time_t time = unix_seconds;
    std::tm parts{};
    gmtime_r(&time, &parts);
    std::array<char, 64> text{};
    const int length = std::snprintf(
        text.data(),
        text.size(),
        "%s, %02d %s %04d %02d:%02d:%02d GMT",
        kDays[static_cast<std::size_t>(parts.tm_wday)],
        parts.tm_mday,
        kMonths[static_cast<std::size_t>(parts.tm_mon)],
        parts.tm_year + 1900,
        parts.tm_hour,
        parts.tm_min,
        parts.tm_sec
    );
    return {text.data(), static_cast<std::size_t>(length)};
}

void tell_part(Response& head, const ByteRange& part, std::uint64_t size) {
    head.status = 206;
    head.headers.set(
        "Content-Range",
        "bytes " + std::to_string(part.first) + "-" + std::to_string(part.first + part.length - 1) +
            "/" + std::to_string(size)
    );
}

std::optional<fs::path> find_static(const fs::path& root, std::string_view path) {
    auto decoded = percent_decode(path);
    if (!decoded || !decoded->starts_with('/') || decoded->find('\\') != std::string::npos) {
        return std::nullopt;
    }
    decoded->erase(0, decoded->find_first_not_of('/'));
    const fs::path inner(*decoded);
    for (const fs::path& part : inner) {
        if (part == "..") {
            return std::nullopt;
        }
    }
    fs::path file = inner.empty() ? root / "index.html" : root / inner;
    std::error_code error;
    if (!fs::is_regular_file(file, error)) {
        return std::nullopt;
    }
    // A link may lead out too.
    const fs::path real = fs::canonical(file, error);
    const fs::path base = error ? fs::path() : fs::canonical(root, error);
    const bool outside = error || real.lexically_relative(base).string().starts_with("..");
    return outside ? std::nullopt : std::optional(std::move(file));
}

Task<Result<>> send_disk_file(Exchange& exchange, Response head, fs::path path) {
    struct stat about{};
    if (::stat(path.c_str(), &about) != 0 || !S_ISREG(about.st_mode)) {
        co_return fail(Code::not_found, "there is no such file");
    }
    const auto bytes = static_cast<std::uint64_t>(about.st_size);
    if (!head.headers.contains("Content-Type")) {
        head.headers.set("Content-Type", std::string(content_type_of(path.filename().string())));
    }
    if (!head.headers.contains("ETag")) {
        head.headers.set("ETag", etag_of(about));
    }
    head.headers.set("Last-Modified", http_date(about.st_mtim.tv_sec));
    const auto part = choose_part(exchange.request().headers, head, bytes);
    if (!part) {
        auto told = co_await exchange.send(std::move(head));
        co_return told;
    }
    FileBody file{path.string(), part->first, part->length};
    auto sent = co_await exchange.send_file(std::move(head), std::move(file));
    if (!sent && !exchange.answered()) {
        co_return fail(Code::not_found, "the file cannot be read");
    }
    co_return sent;
}

Task<Result<>> send_bytes(Exchange& exchange, Response head, std::string bytes) {
    const auto part = choose_part(exchange.request().headers, head, bytes.size());
    if (part) {
        head.body = part->length == bytes.size() ? std::move(bytes)
                                                 : bytes.substr(part->first, part->length);
    }
    auto sent = co_await exchange.send(std::move(head));
    co_return sent;
}

}  // namespace comfyd::net
