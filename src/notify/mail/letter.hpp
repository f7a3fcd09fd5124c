// Stories as a mail: one, or several as a digest; in plain text and as HTML. Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "notify/mail/mime.hpp"
#include "notify/story.hpp"

namespace comfyd::notify::mail {

// Subject, text and html. With a picture the HTML of the first story shows it.
// REQUIRES: at least one story.
void write_letter(Mail& mail, const std::vector<Story>& stories);

}  // namespace comfyd::notify::mail
