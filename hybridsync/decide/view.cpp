#include "hybridsync/decide/view.h"

namespace hybridsync {

View first_view(const FragmentTable& table) {
  View view;
  view.epoch = 1;
  for (int node = 0; node < table.nodes; ++node) view.members.push_back({node, 0});
  for (const Fragment& f : table.fragments) view.owners.push_back(table.owner(f.id));
  return view;
}

}  // namespace hybridsync
