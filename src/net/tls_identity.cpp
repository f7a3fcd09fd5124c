#include "net/tls_identity.hpp"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include <array>
#include <fstream>
#include <iterator>
#include <string_view>
#include <utility>

namespace comfyd::net {
namespace {

constexpr std::size_t kFileBytesMax = 1024 * 1024;

template <auto free>
struct Free {
    template <class T>
    void operator()(T* object) const {
        free(object);
    }
};
using Bio = std::unique_ptr<BIO, Free<BIO_free>>;
using Certificate = std::unique_ptr<X509, Free<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY_free>>;

std::string why() {
    std::array<char, 256> text{};
    ERR_error_string_n(ERR_peek_last_error(), text.data(), text.size());
    ERR_clear_error();
    return text.data();
}

tl::unexpected<Error> invalid(const std::string& path, const std::string& what) {
    return fail(Code::config_invalid, "TLS: '" + path + "' " + what);
}

Result<std::string> read_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::string content(kFileBytesMax + 1, '\0');
    file.read(content.data(), static_cast<std::streamsize>(content.size()));
    content.resize(static_cast<std::size_t>(file.gcount()));
    if (content.empty()) {
        return invalid(path, "cannot be read or is empty");
    }
    if (content.size() > kFileBytesMax) {
        return invalid(path, "is larger than 1 MB: it is no PEM file of a certificate or key");
    }
    return content;
}

Bio open(const std::string& text) {
    return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// OpenSSL would ask at the terminal.
int no_password(char*, int, int, void*) {
    return -1;
}

// HTTP/1.1 is all there is: a client that offers only others is told so.
int choose_protocol(SSL*, const unsigned char** chosen, unsigned char* chosen_length, const unsigned char* offered, unsigned int offered_length, void*) {
    constexpr std::string_view kHttp = "\x08http/1.1";
    unsigned char* found = nullptr;
    const int outcome = SSL_select_next_proto(
        &found,
        chosen_length,
        reinterpret_cast<const unsigned char*>(kHttp.data()),
        static_cast<unsigned int>(kHttp.size()),
        offered,
        offered_length
    );
    *chosen = found;
    return outcome == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

// Sessions are not resumed: tickets would need a key that all nodes share and change.
std::shared_ptr<SSL_CTX> make_context() {
    std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
    SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
    SSL_CTX_set_cipher_list(context.get(), "ECDHE+AESGCM:ECDHE+CHACHA20");
    SSL_CTX_set1_groups_list(context.get(), "X25519:P-256");
    SSL_CTX_set_options(
        context.get(),
        SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_NO_TICKET |
            SSL_OP_IGNORE_UNEXPECTED_EOF
    );
    SSL_CTX_set_num_tickets(context.get(), 0);
    SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
    SSL_CTX_set_mode(
        context.get(),
        SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
            SSL_MODE_RELEASE_BUFFERS
    );
    SSL_CTX_set_alpn_select_cb(context.get(), choose_protocol, nullptr);
    return context;
}

Time end_of(const X509& certificate) {
    std::tm time{};
    ASN1_TIME_to_tm(X509_get0_notAfter(&certificate), &time);
    return Time(std::chrono::seconds(::timegm(&time)));
}

Result<Time> use_certificate(SSL_CTX& context, const std::string& path, const std::string& text) {
    const Bio bio = open(text);
    const Certificate own(PEM_read_bio_X509_AUX(bio.get(), nullptr, no_password, nullptr));
    if (!own) {
        return invalid(path, "has no certificate in PEM form (" + why() + ")");
    }
    if (SSL_CTX_use_certificate(&context, own.get()) != 1) {
        return invalid(path, "has a certificate that cannot be used (" + why() + ")");
    }
    while (X509* next = PEM_read_bio_X509(bio.get(), nullptr, no_password, nullptr)) {
        SSL_CTX_add0_chain_cert(&context, next);
    }
    ERR_clear_error();  // the end of the file
    return end_of(*own);
}

Result<> use_key(SSL_CTX& context, const std::string& path, const std::string& text) {
    const Bio bio = open(text);
    const Key key(PEM_read_bio_PrivateKey(bio.get(), nullptr, no_password, nullptr));
    if (!key) {
        return invalid(path, "has no key in PEM form, or one with a password (" + why() + ")");
    }
    if (SSL_CTX_use_PrivateKey(&context, key.get()) != 1 ||
        SSL_CTX_check_private_key(&context) != 1) {
        return invalid(path, "is not the key of the certificate (" + why() + ")");
    }
    return {};
}

}  // namespace

TlsIdentity::TlsIdentity(TlsFiles files, Loaded loaded)
    : files_(std::move(files)), loaded_(std::move(loaded)) {}

Result<std::shared_ptr<TlsIdentity>> TlsIdentity::load(TlsFiles files) {
    auto loaded = read(files);
    if (!loaded) {
        return fail(std::move(loaded.error()));
    }
    return std::shared_ptr<TlsIdentity>(new TlsIdentity(std::move(files), std::move(*loaded)));
}

// From what was read, not by OpenSSL from the files: they might be replaced between the two.
Result<TlsIdentity::Loaded> TlsIdentity::read(const TlsFiles& files) {
    auto certificate = read_file(files.certificate);
    if (!certificate) {
        return fail(std::move(certificate.error()));
    }
    auto key = read_file(files.key);
    if (!key) {
        return fail(std::move(key.error()));
    }
    auto context = make_context();
    const auto expires_at = use_certificate(*context, files.certificate, *certificate);
    if (!expires_at) {
        return fail(expires_at.error());
    }
    auto used = use_key(*context, files.key, *key);
    if (!used) {
        return fail(std::move(used.error()));
    }
    return Loaded{std::move(*certificate), std::move(*key), std::move(context), *expires_at};
}

Result<bool> TlsIdentity::reload() {
    auto loaded = read(files_);
    if (!loaded) {
        return fail(std::move(loaded.error()));
    }
    const Lock lock(mutex_);
    if (loaded->certificate == loaded_.certificate && loaded->key == loaded_.key) {
        return false;
    }
    loaded_ = std::move(*loaded);
    return true;
}

std::shared_ptr<SSL_CTX> TlsIdentity::context() const {
    const Lock lock(mutex_);
    return loaded_.context;
}

Time TlsIdentity::expires_at() const {
    const Lock lock(mutex_);
    return loaded_.expires_at;
}

}  // namespace comfyd::net
