// How long machines took from their order to their first job, by where they came from; or by what
// else tells such times apart. Learned from the latest starts; a plain value.
#pragma once

#include <deque>
#include <map>
#include <string>

#include "base/json.hpp"

namespace comfyd::autoscale {

class Starts {
public:
    static constexpr std::size_t kKept = 32;  // of each place
    static constexpr std::size_t kPlacesMax = 64;
    static constexpr double kUsual = 90;  // seconds, where nothing is known

    void note(const std::string& place, double seconds);
    // `part` of 0..1 of the starts there were as quick; of all places where none is known of this.
    double seconds(const std::string& place, double part) const;
    // Of all places.
    double seconds(double part) const;

    std::size_t known() const;  // starts
    // {place: {"p50","p90"}}, for people.
    json::object shown() const;

    json::object to_json() const;
    static Starts from_json(const json::object& about);

private:
    std::map<std::string, std::deque<double>> places_;
};

}  // namespace comfyd::autoscale
