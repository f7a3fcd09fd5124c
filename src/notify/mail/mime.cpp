#include "notify/mail/mime.hpp"

#include <array>
#include <cstdio>

#include "base/crypto.hpp"
#include "notify/mail/encoding.hpp"

namespace comfyd::notify::mail {
namespace {

// Neither text in quoted-printable nor base64 has "=_", so no part can have a line like it.
std::string boundary_of(const Mail& mail, std::string_view name) {
    return "=_" + std::string(name) + "_" + to_hex(sha256(mail.id)).substr(0, 24);
}

std::string multipart(std::string_view kind, const std::string& boundary) {
    return "Content-Type: multipart/" + std::string(kind) + ";\r\n boundary=\"" + boundary +
           "\"\r\n\r\n";
}

std::string text_part(std::string_view kind, std::string_view text) {
    return "Content-Type: text/" + std::string(kind) +
           "; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n" +
           quoted_printable(valid_utf8(text));
}

std::string alternatives(const Mail& mail) {
    const std::string boundary = boundary_of(mail, "text");
    return multipart("alternative", boundary) +                                 //
           "--" + boundary + "\r\n" + text_part("plain", mail.text) + "\r\n" +  //
           "--" + boundary + "\r\n" + text_part("html", mail.html) + "\r\n" +   //
           "--" + boundary + "--\r\n";
}

std::string picture_part(const Mail& mail) {
    return "Content-Type: image/jpeg\r\nContent-Transfer-Encoding: base64\r\nContent-ID: <" +
           std::string(kPictureId) +
           ">\r\nContent-Disposition: inline; filename=\"picture.jpg\"\r\n\r\n" +
           base64_lines(mail.jpeg);
}

std::string body(const Mail& mail) {
    if (mail.jpeg.empty()) {
        return alternatives(mail);
    }
    const std::string boundary = boundary_of(mail, "mail");
    return multipart("related; type=\"multipart/alternative\"", boundary) +  //
           "--" + boundary + "\r\n" + alternatives(mail) + "\r\n" +          //
           "--" + boundary + "\r\n" + picture_part(mail) + "\r\n" +          //
           "--" + boundary + "--\r\n";
}

}  // namespace

std::string mail_date(Time time) {
    constexpr std::array kDays{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    constexpr std::array kMonths{
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"
    };
    const auto day = std::chrono::floor<std::chrono::days>(time);
    const std::chrono::year_month_day date(day);
    const std::chrono::hh_mm_ss of_day(std::chrono::floor<std::chrono::seconds>(time - day));
    std::array<char, 48> text{};
    std::snprintf(
        text.data(),
        text.size(),
        "%s, %02u %s %04d %02d:%02d:%02d +0000",
        kDays.at(std::chrono::weekday(day).c_encoding()),
        static_cast<unsigned>(date.day()),
        kMonths.at(static_cast<unsigned>(date.month()) - 1),
        static_cast<int>(date.year()),
        static_cast<int>(of_day.hours().count()),
        static_cast<int>(of_day.minutes().count()),
        static_cast<int>(of_day.seconds().count())
    );
    return text.data();
}

std::string escape_html(std::string_view text) {
    std::string made;
    for (const char c : text) {
        switch (c) {
            case '&':
                made += "&amp;";
                break;
            case '<':
                made += "&lt;";
                break;
            case '>':
                made += "&gt;";
                break;
            case '"':
                made += "&quot;";
                break;
            case '\'':
                made += "&#39;";
                break;
            default:
                made += c;
        }
    }
    return made;
}

std::string write_mail(const Mail& mail) {
    const std::string domain = mail.from.substr(mail.from.rfind('@') + 1);
    std::string made = "From: ";
    made += mail.from_name.empty() ? "" : phrase(mail.from_name) + "\r\n ";
    made += "<" + mail.from + ">\r\nTo: <" + mail.to + ">\r\n";
    made += header("Subject", mail.subject);
    made += "Date: " + mail_date(mail.date) + "\r\n";
    made += "Message-ID: <" + mail.id + "@" + domain + ">\r\n";
    made += "MIME-Version: 1.0\r\nAuto-Submitted: auto-generated\r\n";
    if (!mail.unsubscribe.empty()) {
        made += "List-Unsubscribe: <" + mail.unsubscribe + ">\r\n";
        if (mail.unsubscribe.starts_with("https://")) {
            made += "List-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n";
        }
    }
    return made + body(mail);
}

}  // namespace comfyd::notify::mail
