// What mails show of a job's results: links to them, and a small picture of the first.
#pragma once

#include <memory>

#include "api/services.hpp"
#include "assets/store.hpp"
#include "base/pool.hpp"
#include "notify/mail/mail_channel.hpp"

namespace comfyd::app {

// `services` is filled before the first mail; all outlive it. Pictures are made on `media`, each by
// a process of its own (app/pictures.hpp).
notify::mail::MailContent mail_content(
    const std::unique_ptr<api::Services>& services, assets::Store& assets, Pool& media
);

}  // namespace comfyd::app
