// The last lines of what the server tells its operator, for the editor's log panel. Belongs to the
// server's thread.
#pragma once

#include <deque>
#include <set>
#include <string>

#include "base/json.hpp"
#include "base/time.hpp"
#include "standalone/hub.hpp"

namespace comfyd::standalone {

class LogBook {
public:
    static constexpr std::size_t kLinesMax = 300;
    static constexpr std::size_t kSubscribersMax = 512;

    LogBook(Hub& hub, const Clock& clock) : hub_(hub), clock_(clock) {}

    void add(std::string line);
    void subscribe(const std::string& client_id, bool wanted);
    json::array lines() const;  // {"t", "m"}

private:
    struct Line {
        std::string time;
        std::string text;
    };
    static json::object encode(const Line& line);

    Hub& hub_;
    const Clock& clock_;
    std::deque<Line> lines_;
    std::set<std::string> subscribers_;
};

}  // namespace comfyd::standalone
