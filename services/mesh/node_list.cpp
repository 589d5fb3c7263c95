#include "services/mesh/node_list.hpp"

#include "messages/text.hpp"

#include <algorithm>

namespace godwit {

namespace {

const char* state_without_answer(const std::string& link) {
  if (link == "self")
    return "starting";
  return link == "up" ? "unresponsive" : "away";
}

} // namespace

letter<schema::NodeList> make_node_list(std::vector<listed_node> nodes) {
  std::ranges::sort(nodes, {}, &listed_node::name);
  return letter<schema::NodeList>::make([&](schema::NodeList::Builder list) {
    auto out = list.initNodes(static_cast<unsigned>(nodes.size()));
    for (unsigned i = 0; i < nodes.size(); ++i) {
      const auto& node = nodes[i];
      if (node.status)
        out.setWithCaveats(i, node.status->read());
      auto one = out[i];
      one.setName(text_view(node.name.value));
      if (!node.status)
        one.setState(state_without_answer(node.link));
      one.setLink(text_view(node.link));
      one.setWhy(text_view(node.why));
      one.setRoundTrip(std::chrono::duration<double>(node.round_trip).count());
    }
  });
}

} // namespace godwit
