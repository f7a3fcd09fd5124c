// Pictures in other forms, for clients that ask for them: each is made by a child process of its
// own (app/commands/picture_command.hpp). Any thread; takes long: for the pool.
#pragma once

#include <string>

#include "base/error.hpp"
#include "comfy/server/files.hpp"

namespace comfyd::app {

// Code::invalid_argument for what is no picture, or one that ends or holds up whoever reads it.
Result<std::string> convert_picture(
    const std::string& picture, const comfy::server::PictureForm& form
);
// `picture` with the alpha of `mask`, which is stretched where the sizes differ; PNG.
Result<std::string> replace_alpha(const std::string& picture, const std::string& mask);

}  // namespace comfyd::app
