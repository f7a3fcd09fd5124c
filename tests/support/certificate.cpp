#include "support/certificate.hpp"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <cstdio>
#include <memory>
#include <stdexcept>

namespace comfyd::support {
namespace {

using File = std::unique_ptr<std::FILE, decltype(&std::fclose)>;

File open_for_writing(const std::string& path) {
    File file(std::fopen(path.c_str(), "w"), &std::fclose);
    if (!file) {
        throw std::runtime_error("cannot write " + path);
    }
    return file;
}

void add_extension(X509* certificate, int kind, const char* value) {
    X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, kind, value);
    X509_add_ext(certificate, extension, -1);
    X509_EXTENSION_free(extension);
}

}  // namespace

Certificate make_certificate(const TempDir& folder) {
    const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(
        EVP_EC_gen("P-256"), &EVP_PKEY_free
    );
    const std::unique_ptr<X509, decltype(&X509_free)> made(X509_new(), &X509_free);
    X509_set_version(made.get(), 2);
    ASN1_INTEGER_set(X509_get_serialNumber(made.get()), 1);
    X509_gmtime_adj(X509_getm_notBefore(made.get()), -3600);
    X509_gmtime_adj(X509_getm_notAfter(made.get()), 24 * 3600);
    X509_set_pubkey(made.get(), key.get());
    X509_NAME* name = X509_get_subject_name(made.get());
    const auto* common = reinterpret_cast<const unsigned char*>("localhost");
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, common, -1, -1, 0);
    X509_set_issuer_name(made.get(), name);
    add_extension(made.get(), NID_subject_alt_name, "DNS:localhost,IP:127.0.0.1");
    add_extension(made.get(), NID_basic_constraints, "CA:TRUE");
    X509_sign(made.get(), key.get(), EVP_sha256());

    Certificate paths{folder / "certificate.pem", folder / "key.pem"};
    PEM_write_X509(open_for_writing(paths.certificate).get(), made.get());
    PEM_write_PrivateKey(
        open_for_writing(paths.key).get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr
    );
    ::chmod(paths.key.c_str(), 0600);
    return paths;
}

}  // namespace comfyd::support
