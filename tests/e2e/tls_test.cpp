// comfyd with a certificate of its own: everything that works without one, and nothing that is
// old or plain.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <filesystem>
#include <fstream>

#include "support/certificate.hpp"
#include "support/comfyd.hpp"
#include "support/raw_socket.hpp"

namespace comfyd::support {
namespace {

using testing::HasSubstr;

std::vector<std::string> tls_arguments(const Certificate& certificate) {
    return {
        "--set",
        "tls.certificate=" + certificate.certificate,
        "--set",
        "tls.key=" + certificate.key,
        "--set",
        "limits.header_timeout_s=2",
    };
}

class Tls : public testing::Test {
protected:
    TempDir folder_;
    Certificate certificate_ = make_certificate(folder_);
    Comfyd comfyd_{{.arguments = tls_arguments(certificate_), .ca_file = certificate_.certificate}};
};

// What a client with these wishes agrees on with the server.
struct Agreed {
    bool is_connected = false;
    std::string version{};
    std::string protocol{};
    std::string certificate{};  // digest of the one that it was shown
};
Agreed agree(
    const std::string& url,
    int oldest,
    int newest,
    const std::string& protocols,
    const char* ciphers = ""
) {
    RawSocket socket(url);
    std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(
        SSL_CTX_new(TLS_client_method()), SSL_CTX_free
    );
    SSL_CTX_set_security_level(context.get(), 0);
    SSL_CTX_set_min_proto_version(context.get(), oldest);
    SSL_CTX_set_max_proto_version(context.get(), newest);
    if (*ciphers != '\0') {
        SSL_CTX_set_cipher_list(context.get(), ciphers);
    }
    std::unique_ptr<SSL, decltype(&SSL_free)> tls(SSL_new(context.get()), SSL_free);
    if (!protocols.empty()) {
        SSL_set_alpn_protos(
            tls.get(),
            reinterpret_cast<const unsigned char*>(protocols.data()),
            static_cast<unsigned int>(protocols.size())
        );
    }
    SSL_set_fd(tls.get(), socket.descriptor());
    Agreed agreed;
    agreed.is_connected = SSL_connect(tls.get()) == 1;
    if (!agreed.is_connected) {
        return agreed;
    }
    agreed.version = SSL_get_version(tls.get());
    const unsigned char* chosen = nullptr;
    unsigned int length = 0;
    SSL_get0_alpn_selected(tls.get(), &chosen, &length);
    agreed.protocol.assign(reinterpret_cast<const char*>(chosen), length);
    const std::unique_ptr<X509, decltype(&X509_free)> shown(
        SSL_get1_peer_certificate(tls.get()), X509_free
    );
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned int digest_length = 0;
    X509_digest(shown.get(), EVP_sha256(), digest.data(), &digest_length);
    agreed.certificate.assign(digest.begin(), digest.begin() + digest_length);
    return agreed;
}

TEST_F(Tls, JobsFilesAndStreamsWorkAsWithoutIt) {
    EXPECT_THAT(comfyd_.url(), testing::StartsWith("https://127.0.0.1:"));
    const std::string id = comfyd_.submit(small_picture());
    const auto events =
        comfyd_.http().read_events("/api/v2/jobs/" + id + "/events", [](const SseEvent& event) {
            return event.data.find("succeeded") != std::string::npos;
        });
    EXPECT_FALSE(events.empty());
    const json::value job = comfyd_.wait_finished(id);
    EXPECT_EQ(Comfyd::status_of(job), "succeeded") << json::serialize(job);

    const auto socket = comfyd_.http().ws("/ws?clientId=tls");
    ASSERT_TRUE(socket->connected());
    EXPECT_TRUE(wait_until([&] { return !socket->messages().empty(); }));
}

TEST_F(Tls, FilesOfEverySizeComeBackAsTheyWere) {
    // Around the size of a TLS record, of a piece that is copied, and far beyond both.
    for (const std::size_t size :
         {1UL, 16'383UL, 16'384UL, 16'385UL, 65'536UL, 65'537UL, 9'000'001UL}) {
        std::string content(size, 'x');
        for (std::size_t i = 0; i < size; i += 97) {
            content[i] = static_cast<char>(i % 251);
        }
        const std::string name = "of-" + std::to_string(size) + ".bin";
        const Reply put = comfyd_.http().upload(
            "/upload/image",
            {{.name = "image",
              .filename = name,
              .content_type = "application/octet-stream",
              .data = content}}
        );
        ASSERT_EQ(put.status, 200) << put.body;
        const Reply got = comfyd_.http().get("/view?type=input&filename=" + name);
        EXPECT_EQ(got.status, 200);
        EXPECT_TRUE(got.body == content) << size << " bytes, of which came " << got.body.size();
    }
}

TEST_F(Tls, OldVersionsWeakCiphersAndOtherProtocolsAreRefused) {
    EXPECT_EQ(agree(comfyd_.url(), TLS1_3_VERSION, TLS1_3_VERSION, "").version, "TLSv1.3");
    EXPECT_EQ(agree(comfyd_.url(), TLS1_2_VERSION, TLS1_2_VERSION, "").version, "TLSv1.2");
    EXPECT_FALSE(agree(comfyd_.url(), TLS1_VERSION, TLS1_1_VERSION, "").is_connected);
    EXPECT_FALSE(
        agree(
            comfyd_.url(), TLS1_2_VERSION, TLS1_2_VERSION, "", "AES128-SHA:ECDHE-ECDSA-AES128-SHA"
        )
            .is_connected
    );
    EXPECT_EQ(
        agree(comfyd_.url(), TLS1_2_VERSION, TLS1_3_VERSION, "\x02h2\x08http/1.1").protocol,
        "http/1.1"
    );
    EXPECT_FALSE(agree(comfyd_.url(), TLS1_2_VERSION, TLS1_3_VERSION, "\x02h2").is_connected);
}

TEST_F(Tls, WhoSpeaksPlainHttpIsToldSo) {
    const Reply reply = Http("http" + comfyd_.url().substr(5)).get("/healthz");
    EXPECT_EQ(reply.status, 400);
    EXPECT_THAT(reply.body, HasSubstr("https://"));
}

TEST_F(Tls, WhoSaysNothingIsLetGoAndOthersAreServedMeanwhile) {
    RawSocket silent(comfyd_.url());
    EXPECT_EQ(comfyd_.http().get("/healthz").status, 200);
    EXPECT_TRUE(silent.drain());
}

TEST_F(Tls, ARenewedCertificateIsShownToNewConnectionsAndABrokenOneIsNot) {
    const auto shown = [&] {
        return agree(comfyd_.url(), TLS1_2_VERSION, TLS1_3_VERSION, "").certificate;
    };
    const std::string first = shown();
    ASSERT_EQ(comfyd_.http().get("/healthz").status, 200);

    const TempDir later;
    const Certificate renewed = make_certificate(later);
    std::ofstream(certificate_.key) << "no key at all";
    EXPECT_TRUE(wait_until([&] {
        return comfyd_.log().find("cannot be renewed") != std::string::npos;
    }));
    EXPECT_EQ(shown(), first);

    std::filesystem::rename(renewed.certificate, certificate_.certificate);
    std::filesystem::rename(renewed.key, certificate_.key);
    EXPECT_TRUE(wait_until([&] { return shown() != first; }));
    // This client trusts the old one alone: its open connection goes on.
    EXPECT_EQ(comfyd_.http().get("/healthz").status, 200);
    EXPECT_EQ(Http(comfyd_.url(), certificate_.certificate).get("/healthz").status, 200);
}

TEST(TlsFiles, ThatCannotBeUsedAreToldAtTheStart) {
    const TempDir folder;
    const TempDir other_folder;
    const Certificate one = make_certificate(folder);
    const Certificate other = make_certificate(other_folder);
    const auto complaint = [](const Certificate& files) -> std::string {
        try {
            const Comfyd comfyd({.arguments = tls_arguments(files)});
        } catch (const std::runtime_error& error) {
            return error.what();
        }
        return "it started";
    };
    EXPECT_THAT(
        complaint({one.certificate, other.key}), HasSubstr("is not the key of the certificate")
    );
    EXPECT_THAT(complaint({one.certificate, folder / "none.pem"}), HasSubstr("cannot be read"));
    EXPECT_THAT(complaint({one.key, one.key}), HasSubstr("has no certificate in PEM form"));
    EXPECT_THAT(complaint({one.certificate, one.certificate}), HasSubstr("has no key in PEM form"));
    EXPECT_THAT(complaint({one.certificate, ""}), HasSubstr("both or not at all"));
}

}  // namespace
}  // namespace comfyd::support
