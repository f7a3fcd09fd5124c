// Rules by which machines are started and stopped: ours, a fixed number, and those of peers as
// their documentation or code has them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "simulate/elastic.hpp"

namespace comfyd::simulate {

using ElasticRulePtr = std::unique_ptr<ElasticRule>;

ElasticRulePtr make_own_rule(autoscale::Settings settings, std::string name = "comfyd");
ElasticRulePtr make_fixed_rule(int machines);
// RunPod, REQUEST_COUNT: one machine for so many jobs that wait or run.
ElasticRulePtr make_request_count_rule(double jobs_each, double idle_s, int most);
// RunPod, QUEUE_DELAY: one more whenever the oldest has waited for so long.
ElasticRulePtr make_queue_delay_rule(double delay_s, double idle_s, int most);
// KEDA and an HPA: looks every 15 s, and shrinks to the most of its window.
ElasticRulePtr make_keda_rule(double jobs_each, double window_s, int most);
// Knative's KPA: the mean of a minute, and of six seconds where that is twice what there is.
ElasticRulePtr make_knative_rule(double jobs_each, double scale_down_delay_s, int most);
// ComfyLess: looks every 30 s, one more a minute, never none.
ElasticRulePtr make_comfyless_rule(double idle_s, int most);

// Those of peers, over their settings.
std::vector<ElasticRulePtr> make_peer_rules(int most);

}  // namespace comfyd::simulate
