#include "net/response_head.hpp"

#include <algorithm>
#include <ctime>
#include <string>

#include "base/json.hpp"
#include "net/static_files.hpp"

namespace comfyd::net {
namespace {

std::string_view reason_of(int status) {
    // clang-format off
    switch (status) {
        case 100: return "Continue";
        case 101: return "Switching Protocols";
        case 200: return "OK";
        case 201: return "Created";
        case 202: return "Accepted";
        case 204: return "No Content";
        case 206: return "Partial Content";
        case 301: return "Moved Permanently";
        case 302: return "Found";
        case 303: return "See Other";
        case 304: return "Not Modified";
        case 307: return "Temporary Redirect";
        case 308: return "Permanent Redirect";
        case 400: return "Bad Request";
        case 401: return "Unauthorized";
        case 402: return "Payment Required";
        case 403: return "Forbidden";
        case 404: return "Not Found";
        case 405: return "Method Not Allowed";
        case 406: return "Not Acceptable";
        case 408: return "Request Timeout";
        case 409: return "Conflict";
        case 410: return "Gone";
        case 411: return "Length Required";
        case 412: return "Precondition Failed";
        case 413: return "Content Too Large";
        case 414: return "URI Too Long";
        case 415: return "Unsupported Media Type";
        case 416: return "Range Not Satisfiable";
        case 417: return "Expectation Failed";
        case 422: return "Unprocessable Content";
        case 425: return "Too Early";
        case 426: return "Upgrade Required";
        case 428: return "Precondition Required";
        case 429: return "Too Many Requests";
        case 431: return "Request Header Fields Too Large";
        case 499: return "Client Closed Request";
        case 500: return "Internal Server Error";
        case 501: return "Not Implemented";
        case 502: return "Bad Gateway";
        case 503: return "Service Unavailable";
        case 504: return "Gateway Timeout";
        case 505: return "HTTP Version Not Supported";
        case 507: return "Insufficient Storage";
        default: return "Status";
    }
    // clang-format on
}

// Made once a second.
std::string_view date_now() {
    static thread_local std::time_t made_at = -1;
    static thread_local std::string text;
    const std::time_t now = std::time(nullptr);
    if (now != made_at) {
        text = http_date(now);
        made_at = now;
    }
    return text;
}

bool is_ours(std::string_view name) {
    switch (name.size()) {
        case 4:
            return equal_ignoring_case(name, "Date");
        case 10:
            return equal_ignoring_case(name, "Connection");
        case 14:
            return equal_ignoring_case(name, "Content-Length");
        case 17:
            return equal_ignoring_case(name, "Transfer-Encoding");
        default:
            return false;
    }
}

bool ends_line(char c) {
    return c == '\r' || c == '\n' || c == '\0';
}

// A line break in a value would let whoever chose that value write headers of their own.
void append_field(std::string& out, std::string_view name, std::string_view value) {
    const std::size_t begin = out.size();
    out += name;
    out += ": ";
    out += value;
    bool is_split = false;
    for (std::size_t i = begin; i < out.size(); ++i) {  // to the end: several at a time
        is_split |= ends_line(out[i]);
    }
    if (is_split) {
        std::replace_if(
            out.begin() + static_cast<std::ptrdiff_t>(begin), out.end(), ends_line, ' '
        );
    }
    out += "\r\n";
}

}  // namespace

void append_head(std::string& out, const Response& response, const Framing& framing) {
    out += framing.http11 ? "HTTP/1.1 " : "HTTP/1.0 ";
    out += std::to_string(response.status);
    out += ' ';
    out += reason_of(response.status);
    out += "\r\nDate: ";
    out += date_now();
    out += "\r\n";
    for (const auto& [name, value] : response.headers.all()) {
        if (!is_ours(name)) {
            append_field(out, name, value);
        }
    }
    if (framing.content_length) {
        out += "Content-Length: ";
        out += std::to_string(*framing.content_length);
        out += "\r\n";
    }
    if (framing.chunked) {
        out += "Transfer-Encoding: chunked\r\n";
    }
    if (!framing.keep_alive) {
        out += "Connection: close\r\n";
    } else if (!framing.http11) {
        out += "Connection: keep-alive\r\n";
    }
    out += "\r\n";
}

Response make_problem(int status, std::string_view code, std::string_view message) {
    Response response;
    response.status = status;
    response.headers.set("Content-Type", "application/json");
    const json::object body{{"error", json::object{{"code", code}, {"message", message}}}};
    response.body = json::serialize(body);
    return response;
}

}  // namespace comfyd::net
