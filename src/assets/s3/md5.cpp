#include "assets/s3/md5.hpp"

#include <openssl/evp.h>

#include "base/assert.hpp"

namespace comfyd::assets::s3 {

std::string md5(std::string_view bytes) {
    std::string digest(16, '\0');
    auto* const out = reinterpret_cast<unsigned char*>(digest.data());
    const int done = EVP_Digest(bytes.data(), bytes.size(), out, nullptr, EVP_md5(), nullptr);
    COMFYD_ASSERT(done == 1);
    return digest;
}

}  // namespace comfyd::assets::s3
