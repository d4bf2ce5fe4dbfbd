#include "haloscope/comm/same_request.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>

#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/comm/text.hpp"
#include "haloscope/core/names.hpp"
#include "haloscope/core/panels.hpp"
#include "haloscope/error.hpp"
#include "haloscope/extend/agree.hpp"

namespace haloscope {
namespace {

std::uint64_t hash_of(const std::string& text) { return std::hash<std::string>{}(text); }

/// Returns "NAME: A on rank 0, B on rank 3", for the first rank that differs from rank 0; "" where none does.
/// Collective.
std::string difference(MPI_Comm comm, const Aspect& aspect) {
  const std::string zeros = text_of_rank(comm, 0, aspect.text);
  int first = zeros != aspect.text ? rank_in(comm) : ranks_in(comm);
  CHECK_MPI(MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN, comm));
  if (first == ranks_in(comm)) return "";
  return aspect.name + ": " + text_of_rank(comm, 0, aspect.shown) + " on rank 0, " +
         text_of_rank(comm, first, aspect.shown) + " on rank " + std::to_string(first);
}

/// Returns true if all ranks have the same names, but not in the same order. Collective.
bool in_another_order(MPI_Comm comm, std::vector<std::string> names) {
  if (same_everywhere(comm, hash_of(join(names, "\n")))) return false;
  std::sort(names.begin(), names.end());
  return same_everywhere(comm, hash_of(join(names, "\n")));
}

/// Returns the ranks of all places. Its text has the ranks next to the one at the grid's low corner.
Aspect rank_numbers_of(const Layout& layout) {
  std::uint64_t hash = 0;
  const auto add = [&](int number) { hash = (hash ^ static_cast<std::uint64_t>(number)) * 0x9E3779B97F4A7C15U; };
  for (int block = 0; block < layout.by_block().size(); ++block)
    for (const int coord : layout.by_block().coords(block)) add(coord);
  for (int rank = 0; rank < layout.size() && layout.has_several_blocks(); ++rank) add(layout.first_block(rank));
  std::string shown = "rank " + std::to_string(layout.rank_at({0, 0, 0})) + " is first";
  for (int d = 0; d < layout.dims(); ++d) {
    std::array<int, 3> next{};
    next[d] = 1;
    if (layout.ranks()[d] > 1)
      shown += std::string(", next in ") + "xyz"[d] + " " + std::to_string(layout.rank_at(next));
  }
  return {"rank numbers", std::to_string(hash), shown};
}

/// Returns the first cells of all blocks, and the grid's end; its text has the first of them in each dimension.
Aspect cuts_of(const Layout& layout) {
  constexpr std::size_t most = 8;
  std::vector<std::string> texts, shown;
  for (int d = 0; d < layout.dims(); ++d) {
    const std::vector<std::int64_t>& cuts = layout.cuts(d);
    texts.push_back(join_numbers(cuts, ","));
    shown.push_back(join_numbers(std::vector(cuts.begin(), cuts.begin() + std::min(most, cuts.size())), ",") +
                    (cuts.size() > most ? ",..." : ""));
  }
  return {"blocks begin at", join(texts, " x "), join(shown, " x ")};
}

}  // namespace

std::vector<Aspect> aspects_of(const Layout& layout, const std::vector<int>& nodes) {
  return {{"cells", join_numbers(layout.grid().cells, "x")},
          {"periodic dimensions", join_numbers(layout.grid().periodic, ",")},
          {"fold", to_word(layout.grid().fold)},
          {"panels and seams", panels_text(layout.grid().panels)},
          {"process grid", join_numbers(layout.ranks(), "x")},
          cuts_of(layout),
          rank_numbers_of(layout),
          {"nodes", nodes.empty() ? "one per machine" : join_numbers(nodes, ",")}};
}

std::string kind_of(const Quantity& quantity) {
  const int bytes = quantity.number_bytes == 0 ? quantity.element_bytes : quantity.number_bytes;
  const std::string numbers =
      bytes < 0 ? "no numbers"
                : std::string(to_word(quantity.type)) + " numbers of " + std::to_string(bytes) + " bytes";
  std::string text =
      std::to_string(quantity.element_bytes) + " bytes a " + to_word(quantity.centring) + " (" + numbers + ")";
  if (quantity.slots > 1) text += " in " + std::to_string(quantity.slots) + " slots";
  if (quantity.fills_edges())
    for (const Edges& edges : quantity.edges) text += ", edges " + to_word(edges.low) + " and " + to_word(edges.high);
  if (quantity.on_high_face != std::array<bool, 3>{})
    text += ", on high faces " + join_numbers(quantity.on_high_face, ",");
  if (quantity.vector != 0)
    text += ", component " + std::to_string(quantity.along) + " of vector " + std::to_string(quantity.vector);
  return text;
}

Aspect fields_of(const std::vector<Quantity>& fields) {
  std::vector<std::string> texts, shown;
  for (const Quantity& field : fields) {
    texts.push_back(kind_of(field));
    shown.push_back(field.name + ": " + texts.back());
  }
  return {"fields", join(texts, ", "), join(shown, ", ")};
}

void require_same(MPI_Comm comm, const std::string& object, const std::vector<Aspect>& aspects,
                  const std::vector<std::string>& names, const std::string& remedy) {
  std::string all;
  for (const Aspect& aspect : aspects) all += aspect.name + '=' + aspect.text + '\n';
  std::vector<std::string> found;
  if (!same_everywhere(comm, hash_of(all)))
    for (const Aspect& aspect : aspects)
      if (const std::string text = difference(comm, aspect); !text.empty()) found.push_back(text);
  if (found.empty() && names.size() > 1 && in_another_order(comm, names))
    found.push_back(difference(comm, {"order of the fields", join(names, ", ")}));
  if (!found.empty())
    throw UsageError("the ranks request different " + object + ": " + join(found, "; ") + "; " + remedy);
}

}  // namespace haloscope
