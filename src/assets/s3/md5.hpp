// MD5, which S3 asks for as a check of what arrives; nothing is secured by it.
#pragma once

#include <string>
#include <string_view>

namespace comfyd::assets::s3 {

std::string md5(std::string_view bytes);  // 16 bytes

}  // namespace comfyd::assets::s3
