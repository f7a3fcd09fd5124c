// For tests: a server that speaks TLS on the loopback, with a certificate that signs itself.
#pragma once

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/write.hpp>

namespace comfyd::net::test {

// A certificate for "localhost" that signs itself, and a server that uses it.
class TlsServer {
public:
    enum class Clients { anybody, with_its_certificate };
    // `answer`: to every request, as it goes over the wire. `clients`: who may ask; the server's
    // own certificate is good for one as well.
    explicit TlsServer(
        std::string answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
        Clients clients = Clients::anybody
    )
        : answer_(std::move(answer)),
          acceptor_(context_, {boost::asio::ip::make_address("127.0.0.1"), 0}) {
        std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(EVP_EC_gen("P-256"), EVP_PKEY_free);
        std::unique_ptr<X509, decltype(&X509_free)> certificate(X509_new(), X509_free);
        X509_set_version(certificate.get(), 2);
        ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), 1);
        X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -3600);
        X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 3600);
        X509_set_pubkey(certificate.get(), key.get());
        auto* name = X509_get_subject_name(certificate.get());
        X509_NAME_add_entry_by_txt(
            name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>("localhost"), -1, -1, 0
        );
        X509_set_issuer_name(certificate.get(), name);
        X509_EXTENSION* names =
            X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, "DNS:localhost");
        X509_add_ext(certificate.get(), names, -1);
        X509_EXTENSION_free(names);
        X509_sign(certificate.get(), key.get(), EVP_sha256());
        SSL_CTX_use_certificate(tls_.native_handle(), certificate.get());
        SSL_CTX_use_PrivateKey(tls_.native_handle(), key.get());
        path = std::filesystem::temp_directory_path() /
               ("comfyd-net-" + std::to_string(::getpid()) + "-" +
                std::to_string(acceptor_.local_endpoint().port()) + ".pem");
        std::FILE* file = std::fopen(path.c_str(), "w");
        PEM_write_X509(file, certificate.get());
        std::fclose(file);
        key_path = path + ".key";
        file = std::fopen(key_path.c_str(), "w");
        PEM_write_PrivateKey(file, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
        std::fclose(file);
        if (clients == Clients::with_its_certificate) {
            tls_.load_verify_file(path);
            tls_.set_verify_mode(
                boost::asio::ssl::verify_peer | boost::asio::ssl::verify_fail_if_no_peer_cert
            );
        }
        thread_ = std::thread([this] { serve(); });
    }
    ~TlsServer() {
        stopping_ = true;
        boost::asio::ip::tcp::socket last(context_);
        boost::system::error_code ignored;
        last.connect(acceptor_.local_endpoint(), ignored);
        thread_.join();
        std::filesystem::remove(path);
        std::filesystem::remove(key_path);
    }
    std::string url(std::string_view host) const {
        return "https://" + std::string(host) + ":" +
               std::to_string(acceptor_.local_endpoint().port()) + "/";
    }
    std::string path;  // of its certificate
    std::string key_path;

private:
    void serve() {
        while (true) {
            boost::system::error_code error;
            boost::asio::ssl::stream<boost::asio::ip::tcp::socket> stream(context_, tls_);
            acceptor_.accept(stream.next_layer(), error);
            if (stopping_) {
                return;
            }
            stream.handshake(boost::asio::ssl::stream_base::server, error);
            std::string request;
            while (!error) {
                boost::asio::read_until(
                    stream, boost::asio::dynamic_buffer(request), "\r\n\r\n", error
                );
                if (!error) {
                    boost::asio::write(stream, boost::asio::buffer(answer_), error);
                    request.clear();
                }
            }
        }
    }

    std::string answer_;
    boost::asio::io_context context_;
    boost::asio::ip::tcp::acceptor acceptor_;
    boost::asio::ssl::context tls_{boost::asio::ssl::context::tls_server};
    std::atomic<bool> stopping_{false};
    std::thread thread_;
};

}  // namespace comfyd::net::test
