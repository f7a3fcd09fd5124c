#include "fleet/providers/kubernetes_access.hpp"

#include <yaml-cpp/yaml.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "base/crypto.hpp"
#include "base/text.hpp"
#include "fleet/providers/foreign_words.hpp"
#include "net/http.hpp"

namespace comfyd::fleet {
namespace {

constexpr std::chrono::minutes kTokenLife{1};
constexpr std::size_t kFileBytesMax = 4 * 1024 * 1024;

Result<std::string> read(const std::string& file) {
    std::ifstream stream(file, std::ios::binary);
    std::string text{std::istreambuf_iterator<char>(stream), {}};
    if (!stream.good() && !stream.eof()) {
        return fail(Code::config_invalid, "the file '" + file + "' cannot be read");
    }
    if (text.empty() || text.size() > kFileBytesMax) {
        return fail(Code::config_invalid, "the file '" + file + "' is empty or too large");
    }
    return text;
}

std::string variable(const char* name) {
    const char* value = std::getenv(name);
    return value != nullptr ? value : "";
}

std::string text_of(const YAML::Node& node, const char* name) {
    const YAML::Node found = node.IsMap() ? node[name] : YAML::Node();
    return found.IsDefined() && found.IsScalar() ? found.Scalar() : "";
}

// The `part` ("cluster") of the entry of a list that has this name.
YAML::Node entry(
    const YAML::Node& root, const char* list, const std::string& name, const char* part
) {
    const YAML::Node entries = root[list];
    if (entries.IsDefined() && entries.IsSequence()) {
        for (const YAML::Node& one : entries) {
            if (one.IsMap() && text_of(one, "name") == name && one[part].IsDefined()) {
                return one[part];
            }
        }
    }
    return YAML::Node(YAML::NodeType::Map);
}

// A path beside the kubeconfig, or what stands in it in base64, as a file of ours.
Result<std::string> as_file(
    KubernetesAccess& access,
    const YAML::Node& node,
    const std::string& name,
    const std::string& beside
) {
    const std::string data = text_of(node, (name + "-data").c_str());
    const std::string path = text_of(node, name.c_str());
    if (data.empty()) {
        const bool is_relative = !path.empty() && !path.starts_with('/');
        return is_relative ? beside + "/" + path : path;
    }
    const auto bytes = from_base64(data);
    if (!bytes) {
        return fail(Code::config_invalid, "its " + name + "-data is no base64");
    }
    if (!access.folder) {
        auto made = ScratchFolder::make();
        if (!made) {
            return fail(std::move(made.error()));
        }
        access.folder = std::make_shared<ScratchFolder>(std::move(*made));
    }
    const std::string file = (access.folder->path() / name).string();
    std::ofstream(file, std::ios::binary) << *bytes;
    return file;
}

Result<KubernetesAccess> understand(
    const YAML::Node& root, std::string context, const std::string& beside
) {
    if (!root.IsMap()) {
        return fail(Code::config_invalid, "it is no kubeconfig");
    }
    context = context.empty() ? text_of(root, "current-context") : context;
    const YAML::Node chosen = entry(root, "contexts", context, "context");
    const YAML::Node cluster = entry(root, "clusters", text_of(chosen, "cluster"), "cluster");
    const YAML::Node user = entry(root, "users", text_of(chosen, "user"), "user");
    KubernetesAccess access;
    access.url = text_of(cluster, "server");
    if (access.url.empty()) {
        return fail(
            Code::config_invalid,
            "it has no context '" + presentable(context) + "' with a cluster that has a server"
        );
    }
    for (const char* unknown : {"exec", "auth-provider", "username"}) {
        if (user.IsMap() && user[unknown].IsDefined()) {
            return fail(
                Code::config_invalid,
                std::string("its user has '") + unknown +
                    "', which comfyd does not know: make a service account and use its token"
            );
        }
    }
    if (text_of(cluster, "insecure-skip-tls-verify") == "true") {
        return fail(
            Code::config_invalid,
            "it turns the check of certificates off (insecure-skip-tls-verify): name the "
            "cluster's certificate-authority instead"
        );
    }
    const std::string name_space = text_of(chosen, "namespace");
    access.name_space = name_space.empty() ? access.name_space : name_space;
    access.token = text_of(user, "token");
    access.token_file = text_of(user, "tokenFile");
    access.identity.url = access.url;
    access.identity.server_name = text_of(cluster, "tls-server-name");
    auto authority = as_file(access, cluster, "certificate-authority", beside);
    auto certificate = as_file(access, user, "client-certificate", beside);
    auto key = as_file(access, user, "client-key", beside);
    for (const auto* file : {&authority, &certificate, &key}) {
        if (!*file) {
            return fail(file->error());
        }
    }
    access.identity.ca_file = *authority;
    access.identity.certificate = *certificate;
    access.identity.key = *key;
    return access;
}

}  // namespace

Result<KubernetesAccess> read_account(const std::string& folder) {
    const std::string host = variable("KUBERNETES_SERVICE_HOST");
    const std::string port = variable("KUBERNETES_SERVICE_PORT_HTTPS");
    if (host.empty()) {
        return fail(
            Code::config_invalid,
            "comfyd runs in no Pod (there is no KUBERNETES_SERVICE_HOST): name a kubeconfig"
        );
    }
    const bool is_v6 = host.find(':') != std::string::npos;
    KubernetesAccess access;
    access.url =
        "https://" + (is_v6 ? "[" + host + "]" : host) + ":" + (port.empty() ? "443" : port);
    access.token_file = folder + "/token";
    access.identity.url = access.url;
    access.identity.ca_file = folder + "/ca.crt";
    const auto token = read(access.token_file);
    if (!token) {
        return fail(
            Code::config_invalid,
            token.error().message + ": give comfyd's Pod a service account with its token mounted"
        );
    }
    const auto name_space = read(folder + "/namespace");
    if (name_space) {
        access.name_space = trim(*name_space, " \t\r\n");
    }
    return access;
}

Result<KubernetesAccess> read_kubeconfig(const std::string& file, const std::string& context) {
    const auto text = read(file);
    if (!text) {
        return fail(text.error());
    }
    const std::size_t slash = file.rfind('/');
    try {
        auto access = understand(
            YAML::Load(*text), context, slash == std::string::npos ? "." : file.substr(0, slash)
        );
        return access ? access
                      : fail(Code::config_invalid, "'" + file + "': " + access.error().message);
    } catch (const YAML::Exception& exception) {
        // Its message has the place and not the text, which has secrets.
        return fail(
            Code::config_invalid,
            "'" + file + "' is no YAML: line " + std::to_string(exception.mark.line + 1)
        );
    }
}

std::string RotatingToken::now() {
    const Time time = clock_.now();
    if (!read_at_ || time - *read_at_ >= kTokenLife || time < *read_at_) {
        const auto text = read(file_);
        if (text) {  // else the last one, for as long as it lasts
            token_ = trim(*text, " \t\r\n");
        }
        read_at_ = time;
    }
    return token_;
}

}  // namespace comfyd::fleet
