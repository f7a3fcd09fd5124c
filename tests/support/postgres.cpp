#include "support/postgres.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <libpq-fe.h>
#include <netinet/in.h>
#include <pwd.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "support/temp_dir.hpp"
#include "support/wait.hpp"

namespace comfyd::support {
namespace {

namespace fs = std::filesystem;

// Debian has them outside of the search path.
std::string program(const std::string& name) {
    std::vector<fs::path> folders;
    const char* path = std::getenv("PATH");
    std::string rest = path == nullptr ? "" : path;
    while (!rest.empty()) {
        const auto end = rest.find(':');
        folders.emplace_back(rest.substr(0, end));
        rest = end == std::string::npos ? "" : rest.substr(end + 1);
    }
    std::error_code ignored;
    for (const auto& version : fs::directory_iterator("/usr/lib/postgresql", ignored)) {
        folders.push_back(version.path() / "bin");
    }
    for (const auto& folder : folders) {
        if (fs::exists(folder / name, ignored)) {
            return (folder / name).string();
        }
    }
    throw std::runtime_error(
        "there is no '" + name + "': install PostgreSQL's server (scripts/packages.txt has it)"
    );
}

// The server refuses to run as root.
const passwd* other_user() {
    if (::geteuid() != 0) {
        return nullptr;
    }
    const passwd* user = ::getpwnam("postgres");
    return user != nullptr ? user : ::getpwnam("nobody");
}

// As that user; it dies with us also after the change of user, which takes back prctl's wish.
std::vector<std::string> as_server(std::vector<std::string> command) {
    if (const passwd* user = other_user()) {
        std::vector<std::string> changed{
            "setpriv",
            "--reuid=" + std::to_string(user->pw_uid),
            "--regid=" + std::to_string(user->pw_gid),
            "--clear-groups",
            "--pdeathsig=KILL",
        };
        changed.insert(changed.end(), command.begin(), command.end());
        return changed;
    }
    return command;
}

int free_port() {
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    const bool is_bound =
        socket >= 0 &&
        ::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
        ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) == 0;
    ::close(socket);
    if (!is_bound) {
        throw std::runtime_error("no port is free");
    }
    return ntohs(address.sin_port);
}

void check_end(Process& process, const std::string& name) {
    if (process.wait(std::chrono::minutes(3)) != 0) {
        throw std::runtime_error(name + " failed: " + process.output() + process.errors());
    }
}

void initdb(const fs::path& data) {
    Process process(ProcessOptions{
        .arguments = as_server(
            {program("initdb"),
             "--pgdata=" + data.string(),
             "--auth=trust",
             "--username=postgres",
             "--no-sync",
             "--no-locale",
             "--encoding=UTF8"}
        ),
        .directory = data.parent_path().string()
    });
    check_end(process, "initdb");
}

// Where many tests run one after the other the first makes it for all (scripts/test.sh): it is
// always the same and takes a second of a processor.
void make_data(const fs::path& data) {
    const char* shared = std::getenv("COMFYD_TESTS_SHARED");
    if (shared == nullptr) {
        initdb(data);
        return;
    }
    const fs::path original = fs::path(shared) / "postgres";
    const int lock =
        ::open((original.string() + ".lock").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    if (lock < 0 || ::flock(lock, LOCK_EX) != 0) {
        throw std::runtime_error("cannot lock " + original.string());
    }
    if (!fs::exists(original)) {
        initdb(data);
        Process copy({"cp", "-a", data.string(), original.string() + ".new"});
        check_end(copy, "cp");
        fs::rename(original.string() + ".new", original);
    }
    ::close(lock);
    if (!fs::exists(data)) {
        Process copy({"cp", "-a", original.string(), data.string()});
        check_end(copy, "cp");
    }
}

}  // namespace

PostgresServer::PostgresServer() {
    std::string name = (fs::temp_directory_path() / "comfyd-postgres-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) {
        throw std::runtime_error("cannot make a temporary directory");
    }
    folder_ = name;
    if (const passwd* user = other_user()) {
        if (::chown(name.c_str(), user->pw_uid, user->pw_gid) != 0) {
            throw std::runtime_error("cannot give " + name + " to another user");
        }
    }
    make_data(folder_ / "data");
    start();
}

PostgresServer::~PostgresServer() {
    server_.reset();
    // The server's own processes end by themselves, and may write until then.
    std::error_code error;
    wait_until([&] { return fs::remove_all(folder_, error), !fs::exists(folder_, error); });
}

PostgresServer& PostgresServer::shared() {
    static PostgresServer server;
    return server;
}

void PostgresServer::start() {
    constexpr int kAttempts = 100;  // a port may be taken by somebody else just then
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
        if (port_ == 0) {
            port_ = free_port();
        }
        server_ = std::make_unique<Process>(ProcessOptions{
            .arguments = as_server(
                {program("postgres"),
                 "-D",
                 (folder_ / "data").string(),
                 "-p",
                 std::to_string(port_),
                 "-k",
                 folder_.string(),
                 "-c",
                 "listen_addresses=127.0.0.1",
                 "-c",
                 "fsync=off",
                 "-c",
                 "synchronous_commit=on",
                 "-c",
                 "autovacuum=off",
                 "-c",
                 "max_connections=300",
                 "-c",
                 "shared_buffers=64MB",
                 "-c",
                 "log_min_messages=warning"}
            ),
            .directory = folder_.string()
        });
        const std::string at = url("postgres");
        const bool is_up =
            wait_until([&] { return !server_->running() || PQping(at.c_str()) == PQPING_OK; });
        if (is_up && server_->running()) {
            return;
        }
        if (databases_ == 0) {
            port_ = 0;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    throw std::runtime_error("PostgreSQL did not start: " + server_->output() + server_->errors());
}

void PostgresServer::crash() {
    server_->kill(SIGQUIT);
    if (!server_->wait()) {
        throw std::runtime_error("PostgreSQL does not end");
    }
}

std::string PostgresServer::url(const std::string& database) const {
    return "postgres://postgres@127.0.0.1:" + std::to_string(port_) + "/" + database;
}

std::string PostgresServer::make_database(const std::string& original) {
    const std::string name = "test" + std::to_string(++databases_);
    run_sql(url("postgres"), "CREATE DATABASE " + name + " TEMPLATE " + original);
    return url(name);
}

struct PostgresSession::Connection {
    std::unique_ptr<PGconn, decltype(&PQfinish)> handle;
};

PostgresSession::PostgresSession(const std::string& url)
    : connection_(std::make_unique<Connection>(Connection{{PQconnectdb(url.c_str()), PQfinish}})) {}

PostgresSession::~PostgresSession() = default;

std::string PostgresSession::run(const std::string& sql) {
    PGconn* connection = connection_->handle.get();
    const std::unique_ptr<PGresult, decltype(&PQclear)> result(
        PQexec(connection, sql.c_str()), PQclear
    );
    const auto status = PQresultStatus(result.get());
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
        throw std::runtime_error(PQerrorMessage(connection));
    }
    return PQntuples(result.get()) > 0 ? PQgetvalue(result.get(), 0, 0) : "";
}

std::string run_sql(const std::string& url, const std::string& sql) {
    return PostgresSession(url).run(sql);
}

void copy_database(const std::string& from, const std::string& to) {
    const TempDir folder;
    const std::string file = folder / "dump";
    const std::vector<std::vector<std::string>> commands{
        {program("pg_dump"), "--format=custom", "--file=" + file, "--dbname=" + from},
        {program("pg_restore"), "--exit-on-error", "--no-owner", "--dbname=" + to, file},
    };
    for (const auto& command : commands) {
        Process process(command);
        if (process.wait() != 0) {
            throw std::runtime_error(command[0] + " failed: " + process.errors());
        }
    }
}

}  // namespace comfyd::support
