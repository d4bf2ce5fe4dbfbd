// Fields in files: written on some ranks, read on others, and damaged or impossible ones refused.
#include <gtest/gtest.h>
#include <mpi.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "haloscope/haloscope.hpp"
#include "world.hpp"

namespace haloscope {
namespace {

using namespace test;

/// A name for a file of this run, the same on all ranks.
std::string path_of(const std::string& name) {
  const auto folder = std::filesystem::temp_directory_path();
  int number = static_cast<int>(getpid());
  MPI_Bcast(&number, 1, MPI_INT, 0, MPI_COMM_WORLD);
  return (folder / ("haloscope-" + std::to_string(number) + "-" + name)).string();
}

void remove_file(const std::string& path) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (world_rank() == 0) std::remove(path.c_str());
}

/// Sets or checks the nodes of a rank by their numbers in the grid.
template <class Visit>
void each_node(const Grid<2>& grid, Visit visit) {
  if (grid.owned().empty()) return;
  for (std::int64_t j = 0; j <= grid.cells()[1]; ++j)
    for (std::int64_t i = 0; i <= grid.cells()[0]; ++i)
      visit(i, j, static_cast<double>(100 * (grid.owned().lo[1] + j) + grid.owned().lo[0] + i));
}

TEST(FieldFiles, AreReadOnOtherRanksAsTheyWereWritten) {
  const std::string path = path_of("nodes.npy");
  const Grid<2> all{MPI_COMM_WORLD, {.cells = {9, 3 * world_size()}}};
  const Grid<2> few{MPI_COMM_WORLD, {.cells = {9, 3 * world_size()}, .active_ranks = 1}};
  Field<double, 2> u{all, {.halo = 2, .slots = 2, .centring = Centring::node}},
      v{few, {.halo = 0, .centring = Centring::node}};
  each_node(all, [&](auto i, auto j, double number) { u[1](i, j) = number; });
  write_field(all, u, path, 1);
  read_field(few, v, path);
  each_node(few, [&](auto i, auto j, double number) { EXPECT_EQ(v[0](i, j), number); });
  EXPECT_FALSE(std::filesystem::exists(path + ".part"));
  remove_file(path);
}

TEST(FieldFiles, AreReadIntoSeveralBlocksARankAndWrittenFromThem) {
  const std::string path = path_of("tiles.npy");
  const int size = world_size();
  std::vector<Box> own;  // two tiles a rank, of 9 x 3 cells
  for (const std::int64_t tile : {world_rank(), 2 * size - 1 - world_rank()})
    own.push_back({{0, 3 * tile, 0}, {9, 3 * tile + 3, 1}});
  const auto tiles = Grid<2>::of_blocks(MPI_COMM_WORLD, {9, 6 * size}, {false, false}, own);
  const Grid<2> rows{MPI_COMM_WORLD, {.cells = {9, 6 * size}, .process_grid = "slabs"}};
  Field<double, 2> u{rows, {.halo = 2, .centring = Centring::node}}, w{rows, {.centring = Centring::node}};
  std::vector<Field<double, 2>> v;
  for (const int block : {0, 1}) v.emplace_back(tiles, FieldOptions{.centring = Centring::node, .block = block});
  each_node(rows, [&](auto i, auto j, double number) { u[0](i, j) = number; });
  write_field(rows, u, path);
  read_field(tiles, {v.begin(), v.end()}, path);
  for (const int block : {0, 1})
    for (std::int64_t j = 0; j <= 3; ++j)
      for (std::int64_t i = 0; i <= 9; ++i)
        EXPECT_EQ(v[static_cast<std::size_t>(block)][0](i, j), 100 * (tiles.owned(block).lo[1] + j) + i);
  write_field(tiles, {v.begin(), v.end()}, path);
  read_field(rows, w, path);
  each_node(rows, [&](auto i, auto j, double number) { EXPECT_EQ(w[0](i, j), number); });
  EXPECT_PART(error_of([&] { read_field(tiles, v[0], path); }), "takes the field of each block; this rank passed 1");
  remove_file(path);
}

TEST(FieldFiles, HaveZerosInHoles) {
  const std::string path = path_of("holes.npy");
  const std::int64_t n = world_size();
  const Box own{{2 * world_rank(), 0, 0}, {2 * world_rank() + 2, 1, 1}};
  const auto holed = Grid<1>::of_boxes(MPI_COMM_WORLD, {2 * n + 2}, {false}, own, true);
  Field<int, 1> u{holed, {.halo = 0}};
  u[0](0) = u[0](1) = 5;
  write_field(holed, u, path);
  const Grid<1> whole{MPI_COMM_WORLD, {.cells = {2 * n + 2}}};
  Field<int, 1> v{whole, {.halo = 0}};
  read_field(whole, v, path);
  for (std::int64_t i = 0; i < whole.cells()[0]; ++i) EXPECT_EQ(v[0](i), whole.owned().lo[0] + i < 2 * n ? 5 : 0);
  remove_file(path);
}

TEST(FieldFiles, ThatCannotBeAreRefusedOnAllRanksAndLeaveEarlierOnes) {
  const std::string path = path_of("refused.npy");
  const Grid<2> grid{MPI_COMM_WORLD, {.cells = {4, 4 * world_size()}}};
  Field<double, 2> u{grid, {}};
  Field<float, 2> single{grid, {}};
  Field<double, 2> node{grid, {.centring = Centring::node}};
  write_field(grid, u, path);
  EXPECT_PART(error_of([&] { read_field(grid, single, path); }), "has numbers of type <f8, and the field <f4");
  EXPECT_PART(error_of([&] { read_field(grid, node, path); }), "has extents");
  EXPECT_PART(error_of([&] { read_field(grid, u, path, 1); }), "slot 1 of field");
  EXPECT_PART(error_of([&] { read_field(grid, u, ""); }), "is empty");
  EXPECT_NE(error_of<Error>([&] { read_field(grid, u, path + ".none"); }), "no error");
  EXPECT_NE(error_of<Error>([&] { write_field(grid, u, path + ".none/u.npy"); }), "no error");
  if (world_size() > 1) {
    EXPECT_PART(error_of([&] { write_field(grid, u, path + std::to_string(world_rank())); }), "different files");
  }
  read_field(grid, u, path);
  MPI_Barrier(MPI_COMM_WORLD);
  if (world_rank() == 0) std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT_PART(error_of([&] { read_field(grid, u, path); }), "was cut off");
  remove_file(path);
}

TEST(FieldFiles, HaveNamesThatMpiMightTakeForFileSystems) {
  const Grid<1> grid{MPI_COMM_WORLD, {.cells = {2 * world_size()}}};
  Field<double, 1> u{grid, {}};
  const auto home = std::filesystem::current_path();
  std::filesystem::current_path(std::filesystem::temp_directory_path());
  const std::string name = path_of("u.npy"), path = "ufs:" + name.substr(name.rfind('/') + 1);
  write_field(grid, u, path);
  read_field(grid, u, path);
  EXPECT_TRUE(std::filesystem::exists(path));
  remove_file(path);
  std::filesystem::current_path(home);
}

TEST(FieldFiles, HoldPointsAtAnOffsetOfAFileOfAnotherFormat) {
  const std::string path = path_of("with-header");
  const Grid<2> grid{MPI_COMM_WORLD, {.cells = {5, 2 * world_size()}, .active_ranks = 1}};
  const Grid<2> all{MPI_COMM_WORLD, {.cells = {5, 2 * world_size()}}};
  Field<double, 2> u{grid, {.centring = Centring::node}}, v{all, {.slots = 2, .centring = Centring::node}};
  const std::int64_t bytes = std::int64_t{8} * 6 * (2 * world_size() + 1);
  if (world_rank() == 0) std::ofstream(path) << std::string(static_cast<std::size_t>(16 + bytes + 3), 'h');
  MPI_Barrier(MPI_COMM_WORLD);
  each_node(grid, [&](auto i, auto j, double number) { u[0](i, j) = number; });
  write_field_at(grid, u, path, 16);
  read_field_at(all, {v}, path, 16, 1);
  each_node(all, [&](auto i, auto j, double number) { EXPECT_EQ(v[1](i, j), number); });
  std::ifstream file(path);
  std::string first(16, ' '), last(3, ' ');
  file.read(first.data(), 16).seekg(16 + bytes).read(last.data(), 3);
  EXPECT_EQ(first + last, std::string(19, 'h'));
  EXPECT_PART(error_of([&] { write_field_at(grid, u, path, 20); }), "from byte 20 of file");
  EXPECT_PART(error_of([&] { read_field_at(all, v, path, -1); }), "from byte -1 of file");
  EXPECT_NE(error_of<Error>([&] { write_field_at(grid, u, path + ".none", 0); }), "no error");
  remove_file(path);
}

}  // namespace
}  // namespace haloscope
