#include "notify/mail/letter.hpp"

namespace comfyd::notify::mail {
namespace {

constexpr std::string_view kFooter = "Sent by comfyd because an operator's rule asks for it.";

std::string in_text(const Story& story) {
    std::string text = story.title + "\n\n" + story.sentence + "\n\n";
    for (const auto& [name, value] : story.facts) {
        text += name + ": " + value + "\n";
    }
    if (!story.links.empty()) {
        text += "\nResults:\n";
    }
    for (const Link& link : story.links) {
        text += "  " + link.name + ": " + link.url + "\n";
    }
    return text;
}

std::string link_in_html(const Link& link) {
    return "<a href=\"" + escape_html(link.url) + "\">" + escape_html(link.name) + "</a>";
}

// Tables and inline styles: what mail programs show alike.
std::string in_html(const Story& story, bool has_picture) {
    std::string html = "<h2 style=\"font-size:18px;margin:16px 0 4px\">" +
                       escape_html(story.title) + "</h2>\n<p style=\"margin:4px 0 12px\">" +
                       escape_html(story.sentence) + "</p>\n";
    if (has_picture) {
        html += "<p><img src=\"cid:" + std::string(kPictureId) +
                "\" alt=\"The first result\" style=\"max-width:100%;border:0\"></p>\n";
    }
    html += "<table cellpadding=\"4\" style=\"border-collapse:collapse\">\n";
    for (const auto& [name, value] : story.facts) {
        html += "<tr><td style=\"color:#666;vertical-align:top\">" + escape_html(name) +
                "</td><td>" + escape_html(value) + "</td></tr>\n";
    }
    html += "</table>\n";
    if (!story.links.empty()) {
        html += "<p>Results:</p>\n<ul>\n";
        for (const Link& link : story.links) {
            html += "<li>" + link_in_html(link) + "</li>\n";
        }
        html += "</ul>\n";
    }
    return html;
}

std::string subject_of(const std::vector<Story>& stories) {
    if (stories.size() == 1) {
        return "[comfyd] " + stories.front().title;
    }
    return "[comfyd] " + std::to_string(stories.size()) + " events: " + stories.front().title +
           ", …";
}

}  // namespace

void write_letter(Mail& mail, const std::vector<Story>& stories) {
    mail.subject = subject_of(stories);
    mail.text.clear();
    mail.html =
        "<!DOCTYPE html>\n<html><body "
        "style=\"font-family:sans-serif;font-size:14px;color:#222\">\n";
    bool is_first = true;
    for (const Story& story : stories) {
        mail.text += is_first ? "" : "\n----\n\n";
        mail.text += in_text(story);
        mail.html += in_html(story, is_first && !mail.jpeg.empty());
        is_first = false;
    }
    mail.text += "\n-- \n" + std::string(kFooter) + "\n";
    mail.html +=
        "<p style=\"color:#666;font-size:12px\">" + std::string(kFooter) + "</p>\n</body></html>\n";
}

}  // namespace comfyd::notify::mail
