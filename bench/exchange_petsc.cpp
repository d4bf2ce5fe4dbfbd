// Figure `exchange`, second counterpart: PETSc's DMDA local-to-local update against our two-sided strategies, in the
// same program and under the swept protocol. Two ranks.
#include <petscdmda.h>

#include "haloscope/apps/built_in.hpp"
#include "haloscope/exchange.hpp"
#include "swept.hpp"

namespace haloscope::bench {
namespace {

/// Periodic blocks in PETSc: local vectors with one ghost layer (box stencil), fields interleaved by PETSc.
class DmdaFields {
 public:
  explicit DmdaFields(const Block& block) : block_(block), row_(block.n + 2), plane_(row_ * row_) {
    const auto periodic = DM_BOUNDARY_PERIODIC;
    DMDACreate3d(PETSC_COMM_WORLD, periodic, periodic, periodic, DMDA_STENCIL_BOX, block.n * block.ranks[0],
                 block.n * block.ranks[1], block.n * block.ranks[2], block.ranks[0], block.ranks[1], block.ranks[2],
                 block.fields, 1, nullptr, nullptr, nullptr, &da_);
    DMSetUp(da_);
    for (Vec& v : slots_) DMCreateLocalVector(da_, &v);
  }
  ~DmdaFields() {
    for (Vec& v : slots_) VecDestroy(&v);
    DMDestroy(&da_);
  }
  DmdaFields(const DmdaFields&) = delete;

  void exchange(int slot) {
    DMLocalToLocalBegin(da_, slots_[slot], INSERT_VALUES, slots_[slot]);
    DMLocalToLocalEnd(da_, slots_[slot], INSERT_VALUES, slots_[slot]);
  }

  void sweep(int slot) {
    const double* in = nullptr;
    double* out = nullptr;
    VecGetArrayRead(slots_[slot], &in);
    VecGetArray(slots_[1 - slot], &out);
    const std::int64_t x = block_.fields, y = row_ * x, z = plane_ * x;
    for (std::int64_t k = 1; k <= block_.n; ++k)
      for (std::int64_t j = 1; j <= block_.n; ++j)
        for (std::int64_t i = k * z + j * y + x; i < k * z + j * y + x + block_.n * x; ++i)
          out[i] = 0.4 * in[i] + 0.1 * (in[i - x] + in[i + x] + in[i - y] + in[i + y] + in[i - z] + in[i + z]);
    VecRestoreArrayRead(slots_[slot], &in);
    VecRestoreArray(slots_[1 - slot], &out);
  }

  /// Sets the owned points of a slot to their values, ghosts to NaN.
  void fill(const Layout& layout, int slot) {
    visit(layout, slot, [](double& value, double right, bool owned) {
      value = owned ? right : std::numeric_limits<double>::quiet_NaN();
    });
  }
  long wrong_points(const Layout& layout, int slot) {
    long wrong = 0;
    visit(layout, slot, [&](double& value, double right, bool) { wrong += value != right; });
    return wrong;
  }

 private:
  template <class Visit>
  void visit(const Layout& layout, int slot, Visit visit) {
    double* array = nullptr;
    VecGetArray(slots_[slot], &array);
    const Index first = layout.owned(world_rank()).lo;
    const Box owned{{0, 0, 0}, {block_.n, block_.n, block_.n}}, all = grown(owned, {1, 1, 1}, {1, 1, 1});
    Index p;
    for (p[2] = all.lo[2]; p[2] < all.hi[2]; ++p[2])
      for (p[1] = all.lo[1]; p[1] < all.hi[1]; ++p[1])
        for (p[0] = all.lo[0]; p[0] < all.hi[0]; ++p[0])
          for (int f = 0; f < block_.fields; ++f, ++array) {
            Index global;
            for (int d = 0; d < 3; ++d) global[d] = (first[d] + p[d] + layout.grid().cells[d]) % layout.grid().cells[d];
            visit(*array, value_at(global, f), owned.contains(p));
          }
    array -= (block_.n + 2) * plane_ * block_.fields;
    VecRestoreArray(slots_[slot], &array);
  }

  Block block_;
  std::int64_t row_, plane_;
  DM da_;
  Vec slots_[2];
};

void measure(const Block& block, int rounds, bool all) {
  const Layout layout = block.layout();
  Storage fields(make_plan(layout, world_rank(), block.spec()), 2);
  DmdaFields petsc(block);
  for (int slot : {0, 1}) {
    petsc.fill(layout, slot);
    petsc.exchange(slot);
    if (petsc.wrong_points(layout, slot) == 0) continue;
    std::fprintf(stderr, "%s: PETSc's fields are not laid out as assumed here\n", block.name().c_str());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  std::vector<Contender> contenders{
      {"PETSc DMLocalToLocal", [&](int slot) { petsc.sweep(slot); }, [&](int slot) { petsc.exchange(slot); }}};
  std::vector<Exchange> exchanges;
  const auto names = two_sided_strategies(block.fields);
  add_strategies(contenders, exchanges, names, block, layout, fields);
  take_swept_turns(contenders, rounds, steps_per_round(block));
  PetscInt major, minor, patch, release;
  PetscGetVersionNumber(&major, &minor, &patch, &release);
  report(contenders, block.name() + ", of PETSc", 0.2,
         "swept protocol; PETSc " + std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch) +
             ", box stencil, fields interleaved; best of " + std::to_string(names.size()) + " two-sided strategies",
         all);
}

}  // namespace
}  // namespace haloscope::bench

int main(int argc, char** argv) {
  haloscope::add_built_in_apps();
  using namespace haloscope::bench;
  PetscInitializeNoArguments();
  const int code = measure_blocks(argc, argv, "bench_exchange_petsc", {{1, 1, 2}}, measure);
  PetscFinalize();
  return code;
}
