#include "support/radosgw.hpp"

#include <random>
#include <stdexcept>
#include <utility>

#include "support/raw_socket.hpp"
#include "support/wait.hpp"

namespace comfyd::support {
namespace {

constexpr int kTriesMax = 20;
// A busy machine needs its time for six programs.
constexpr std::chrono::seconds kPatience{120};

std::string make_uuid() {
    Process process({"uuidgen"});
    process.wait(kPatience);
    std::string text = process.output();
    text.erase(text.find_last_not_of('\n') + 1);
    return text;
}

// And the two behind it.
std::uint16_t some_port() {
    static std::mt19937 random(std::random_device{}());
    return static_cast<std::uint16_t>(std::uniform_int_distribution<>(16'000, 31'000)(random));
}

std::string run_for_output(std::vector<std::string> command) {
    const std::string name = command.front();
    Process process(std::move(command));
    if (process.wait(kPatience) != 0) {
        throw std::runtime_error(name + " failed: " + process.output() + process.errors());
    }
    return process.output();
}

}  // namespace

Radosgw::Radosgw() {
    for (int tries = 0; tries < kTriesMax; ++tries) {
        port_ = some_port();
        if (try_start()) {
            return;
        }
    }
    throw std::runtime_error(
        "no radosgw comes up (scripts/packages.txt has it): " +
        (gateway_ ? gateway_->output() + gateway_->errors() : std::string())
    );
}

Radosgw& Radosgw::shared() {
    static Radosgw server;
    return server;
}

void Radosgw::run(std::vector<std::string> command) const {
    run_for_output(std::move(command));
}

// The settings of its votes and its one placement group keep the start short.
void Radosgw::write_configuration() const {
    const std::string folder = folder_.path().string();
    folder_.write(
        "conf",
        "[global]\nfsid=" + make_uuid() + "\nmon_host=[v2:127.0.0.1:" + std::to_string(port_ + 1) +
            "]\npublic_addr=127.0.0.1\ncluster_addr=127.0.0.1\nkeyring=" + folder +
            "/keys\nlog_file=" + folder + "/$name.log\nadmin_socket=" + folder +
            "/$name.asok\n"
            "ms_bind_msgr1=false\nosd_pool_default_size=1\nosd_pool_default_min_size=1\n"
            "osd_pool_default_pg_num=1\nosd_pool_default_pg_autoscale_mode=off\n"
            "mon_allow_pool_size_one=true\nmon_data_avail_crit=1\nosd_objectstore=memstore\n"
            "memstore_device_bytes=2147483648\npaxos_propose_interval=0.02\npaxos_min_wait=0.01\n"
            "osd_class_load_list=*\nosd_class_default_list=*\n"
            "[client.rgw]\nrgw_frontends=beast endpoint=127.0.0.1:" +
            std::to_string(port_) + " ssl_endpoint=127.0.0.1:" + std::to_string(port_ + 2) +
            " ssl_certificate=" + certificate_.certificate +
            " ssl_private_key=" + certificate_.key + "\nrgw_data=" + folder +
            "\nrgw_num_rados_handles=1\nrgw_thread_pool_size=32\nrgw_dns_name=" + kDomain + "\n"
    );
}

bool Radosgw::try_start() {
    std::filesystem::remove_all(folder_.path());
    std::filesystem::create_directories(folder_.path() / "mon");
    std::filesystem::create_directories(folder_.path() / "osd");
    certificate_ = make_certificate(folder_);
    write_configuration();
    const std::string conf = file("conf");
    const std::string keys = file("keys");
    const auto add_key = [&](const std::string& name, const std::string& mon, const std::string& osd
                         ) {
        std::vector<std::string> command{"ceph-authtool", keys, "--gen-key", "-n", name};
        command.insert(command.end(), {"--cap", "mon", mon});
        if (!osd.empty()) {
            command.insert(command.end(), {"--cap", "osd", osd});
        }
        run(std::move(command));
    };
    run({"ceph-authtool", "--create-keyring", keys});
    add_key("mon.", "allow *", "");
    add_key("client.admin", "allow *", "allow *");
    add_key("osd.0", "allow profile osd", "allow *");
    add_key("client.rgw", "allow rwx", "allow rwx");

    const std::string mon_address = "[v2:127.0.0.1:" + std::to_string(port_ + 1) + "]";
    const std::string config = read_file(conf);
    const auto at = config.find("fsid=") + 5;
    const std::string fsid = config.substr(at, config.find('\n', at) - at);
    run({"monmaptool", "--create", "--addv", "a", mon_address, "--fsid", fsid, file("map")});
    run(
        {"ceph-mon",
         "-c",
         conf,
         "-i",
         "a",
         "--mkfs",
         "--monmap",
         file("map"),
         "--mon-data",
         file("mon"),
         "--keyring",
         keys}
    );
    monitor_ = std::make_unique<Process>(
        std::vector<std::string>{"ceph-mon", "-c", conf, "-i", "a", "--mon-data", file("mon"), "-f"}
    );

    const std::string osd_id = make_uuid();
    run({"ceph", "-c", conf, "osd", "new", osd_id});
    run(
        {"ceph", "-c", conf, "osd", "crush", "add", "osd.0", "1.0", "root=default", "host=localhost"
        }
    );
    run(
        {"ceph-osd",
         "-c",
         conf,
         "-i",
         "0",
         "--mkfs",
         "--osd-uuid",
         osd_id,
         "--osd-data",
         file("osd")}
    );
    osd_ = std::make_unique<Process>(
        std::vector<std::string>{"ceph-osd", "-c", conf, "-i", "0", "--osd-data", file("osd"), "-f"}
    );

    run(
        {"radosgw-admin",
         "-c",
         conf,
         "user",
         "create",
         "--uid=test",
         "--display-name=test",
         std::string("--access-key=") + kAccessKey,
         std::string("--secret-key=") + kSecretKey}
    );
    // A second storage class.
    const auto add_class = [&](const std::string& scope, std::vector<std::string> more) {
        std::vector<std::string> command{
            "radosgw-admin",
            "-c",
            conf,
            scope,
            "placement",
            "add",
            "--rgw-" + scope,
            "default",
            "--placement-id",
            "default-placement",
            "--storage-class",
            "STANDARD_IA"
        };
        command.insert(command.end(), more.begin(), more.end());
        run(std::move(command));
    };
    add_class("zonegroup", {});
    add_class("zone", {"--data-pool", "default.rgw.ia.data"});
    gateway_ = std::make_unique<Process>(
        std::vector<std::string>{"radosgw", "-c", conf, "-n", "client.rgw", "-f"}
    );
    return wait_until(
               [&] { return RawSocket(url()).connected() || !gateway_->running(); }, kPatience
           ) &&
           gateway_->running();
}

std::string Radosgw::s3cmd(std::vector<std::string> words) const {
    const std::string host = "127.0.0.1:" + std::to_string(port_);
    std::vector<std::string> command{
        "s3cmd",
        "--config=/dev/null",
        "--no-ssl",
        "--host=" + host,
        "--host-bucket=" + host,
        std::string("--access_key=") + kAccessKey,
        std::string("--secret_key=") + kSecretKey,
        "--no-progress"
    };
    command.insert(command.end(), words.begin(), words.end());
    return run_for_output(std::move(command));
}

std::string Radosgw::make_bucket() {
    std::string name = "bucket-" + std::to_string(++buckets_);
    s3cmd({"mb", "s3://" + name});
    return name;
}

}  // namespace comfyd::support
