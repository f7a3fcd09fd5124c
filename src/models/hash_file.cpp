#include "models/hash_file.hpp"

#include <fcntl.h>
#include <openssl/evp.h>
#include <unistd.h>

#include <array>
#include <memory>

#include "base/crypto.hpp"
#include "net/descriptor.hpp"

namespace comfyd::models {
namespace {

constexpr std::size_t kReadBytes = 1024 * 1024;

}  // namespace

std::string hash_file(const std::filesystem::path& path, const std::function<bool()>& stop) {
    const net::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context(
        EVP_MD_CTX_new(), EVP_MD_CTX_free
    );
    if (!file || EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) != 1) {
        return {};
    }
    std::string room(kReadBytes, '\0');
    ssize_t count = 1;
    while (count > 0) {
        if (stop()) {
            return {};
        }
        count = ::read(file.number(), room.data(), room.size());
        if (count > 0) {
            EVP_DigestUpdate(context.get(), room.data(), static_cast<std::size_t>(count));
        }
    }
    // What is read once is not worth the memory of the machine.
    ::posix_fadvise(file.number(), 0, 0, POSIX_FADV_DONTNEED);
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned size = 0;
    const bool is_done = count == 0 && EVP_DigestFinal_ex(context.get(), digest.data(), &size) == 1;
    return is_done ? to_hex(digest.data(), size) : std::string();
}

}  // namespace comfyd::models
