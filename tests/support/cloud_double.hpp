// Doubles of clouds that machines are rented from: they keep machines in memory, refuse whatever
// their contract (tests/data/providers) does not know, and fail in the ways that clouds fail. A
// machine comes one step further each time that somebody looks.
//
// Each serves on a thread of its own. Members from any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "net/io_threads.hpp"
#include "net/server.hpp"
#include "support/contract.hpp"

namespace comfyd::support {

// So many of the next requests go wrong so; each is counted down.
struct CloudFaults {
    int pages = 0;              // a page of HTML, with 200
    int errors = 0;             // 500, and nothing was done
    int errors_to_remove = 0;   // the same, of removals
    int errors_after = 0;       // of creates: done, and 500
    int lost_after = 0;         // of creates: done, and the answer breaks off
    int too_many = 0;           // 429
    int too_many_creates = 0;   // the same, of creates
    int retry_after_s = 0;      // that it says then; -1: it says nothing
    int out_of_stock = 0;       // of creates: listed, but gone meanwhile
    int half_made = 0;          // of creates: refused, and one is there that is stopped and costs
    bool is_broke = false;      // the account is empty
    bool starts_never = false;  // machines stay where they are
    bool echoes = false;        // refusals repeat what was asked
};

struct CloudAnswer {
    int status = 200;
    std::string body{};
};

class CloudDouble {
public:
    static constexpr const char* kKey = "key-of-the-double";

    virtual ~CloudDouble();

    std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
    void set(CloudFaults faults);
    // The names of the machines that there are.
    std::vector<std::string> machines() const;
    // Puts one there that somebody else has made. Its id.
    std::string add(const std::string& name);
    // A member of a machine's record.
    void change(const std::string& id, std::function<void(json::object& record)> change);
    int asked(std::string_view route) const;  // so many times
    std::optional<json::object> last_create() const;
    // In what way requests were wrong that it refused, and answers of its own.
    std::vector<std::string> wrong() const;

protected:
    struct Question {
        const ContractRoute* route;
        std::string id;
        std::string query;
        json::object body;
    };

    // Who shows the key, in the way of this service.
    virtual bool is_known(const net::Request& request) const;
    virtual std::string name_of(const json::object& record) const;
    // Of the next machine, which shall have that name.
    virtual std::string next_id(const std::string& name);

    explicit CloudDouble(const std::string& contract_file);
    void start();  // by the last constructor
    void stop();   // by the first destructor

    // All under the lock.
    virtual CloudAnswer answer(const Question& question) = 0;
    virtual json::object make_record(const std::string& id, const json::object& body) = 0;
    virtual void advance(json::object& record) = 0;
    virtual CloudAnswer refuse(int status, const std::string& words) const = 0;
    virtual CloudAnswer no_stock() const = 0;

    std::map<std::string, json::object> records_;  // guarded by mutex_, as all below
    CloudFaults faults_;
    int made_ = 0;

private:
    static Task<> serve(CloudDouble& self, net::Exchange& exchange);
    // True in the second: the answer breaks off.
    std::pair<net::Response, bool> respond(const net::Request& request, const std::string& body);
    CloudAnswer create(const Question& question, bool& breaks_off);

    Contract contract_;
    mutable std::mutex mutex_;
    std::map<std::string, int, std::less<>> asked_;
    std::optional<json::object> last_create_;
    std::vector<std::string> wrong_;
    net::IoThreads threads_{1};
    std::unique_ptr<net::Server> server_;
    std::uint16_t port_ = 0;
};

class RunPodDouble final : public CloudDouble {
public:
    RunPodDouble();
    ~RunPodDouble() override { stop(); }

private:
    CloudAnswer answer(const Question& question) override;
    json::object make_record(const std::string& id, const json::object& body) override;
    void advance(json::object& record) override;
    CloudAnswer refuse(int status, const std::string& words) const override;
    CloudAnswer no_stock() const override;
};

class NovitaDouble final : public CloudDouble {
public:
    NovitaDouble();
    ~NovitaDouble() override { stop(); }

    static constexpr std::size_t kPageSize = 2;  // so that lists have several

private:
    CloudAnswer answer(const Question& question) override;
    json::object make_record(const std::string& id, const json::object& body) override;
    void advance(json::object& record) override;
    CloudAnswer refuse(int status, const std::string& words) const override;
    CloudAnswer no_stock() const override;

    mutable int form_ = 0;  // of the next refusal: there are four
};

// Offers that make one machine each, labels in place of names, and refusals as JSON or as plain
// text.
class VastDouble final : public CloudDouble {
public:
    VastDouble();
    ~VastDouble() override { stop(); }

    static constexpr std::size_t kPageSize = 2;

private:
    CloudAnswer answer(const Question& question) override;
    json::object make_record(const std::string& id, const json::object& body) override;
    void advance(json::object& record) override;
    CloudAnswer refuse(int status, const std::string& words) const override;
    CloudAnswer no_stock() const override;
    std::string name_of(const json::object& record) const override;
    std::string next_id(const std::string& name) override;
    CloudAnswer search(const json::object& filters) const;
    CloudAnswer rent(const Question& question);
    CloudAnswer list(const std::string& query);

    std::map<std::string, int> looks_;  // at each machine's log
};

// Groups of containers, known by their names; of the organization "o" and its project "p".
class SaladDouble final : public CloudDouble {
public:
    SaladDouble();
    ~SaladDouble() override { stop(); }

private:
    CloudAnswer answer(const Question& question) override;
    json::object make_record(const std::string& id, const json::object& body) override;
    void advance(json::object& record) override;
    CloudAnswer refuse(int status, const std::string& words) const override;
    CloudAnswer no_stock() const override;
    bool is_known(const net::Request& request) const override;
    std::string next_id(const std::string& name) override { return name; }
};

}  // namespace comfyd::support
