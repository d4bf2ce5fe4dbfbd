// Machine profiles: the costs of a machine's network, packing, transports, kernels and devices, read from JSON.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "haloscope/box.hpp"
#include "haloscope/model/correction.hpp"
#include "haloscope/model/held_out.hpp"
#include "haloscope/model/pace.hpp"
#include "haloscope/model/segments.hpp"

namespace haloscope::model {

/// Closeness of the two ends of a message, closest first.
enum class Locality : std::uint8_t { self, socket, node, network };
constexpr int nearnesses = 4;
const char* to_string(Locality near);

/// The layout of a message's bytes in memory: a page streams, a cache line is used whole, shorter runs are not. Shorter
/// runs of which no two lie in one page are scattered: nothing fetches the next one ahead.
enum class Stride : std::uint8_t { contiguous, lines, strided, scattered };
constexpr int strides = 4;
const char* to_string(Stride stride);
/// The class by the mean length of a contiguous run, and the distance between the begins of runs.
Stride stride_class(double run_bytes, double pitch_bytes);
constexpr double contiguous_from = 4096, lines_from = 64, scattered_from = 4096;

/// Of one locality: the time of a single message by its bytes, and the slowdown of several concurrent ones; see
/// network.hpp.
struct MessageCost {
  Segments segments;
  std::optional<Cost> shared, duplex, gap_s;
};

struct NetworkCost {
  std::array<std::optional<MessageCost>, nearnesses> by_locality;  ///< at least one
  double injection_bytes_per_s = 0;                                ///< of a node; 0: no limit known
};

/// Tables by Stride over bytes, by threads; an empty one is not known.
using Copying = std::array<Table, strides>;

/// The cost of a row of a kernel beyond its cells: it counts as whole vectors of `lanes` cells, and as some cells more.
struct RowCost {
  double lanes = 1, cells = 0;
  /// The number of cells that a region counts as.
  double amount(const Box& region) const;
};

/// Copies that ranks themselves make of messages inside their node, whose costs replace a message's flight: none,
/// through buffers, so that messages are packed and unpacked, or from field to field, as between two sides of a block.
enum class Copied : std::uint8_t { no, buffers, fields };

/// The additional costs of a transport over plain messages, in seconds; copies: of each byte, in addition to packing.
struct TransportCost {
  Cost per_message_s, per_round_s, per_exchange_s, per_byte_s;
  Cost per_gapped_byte_s;  ///< of messages that are several contiguous runs of memory
  Cost per_clean_byte_s;   ///< of halos one layer deep, which their owner only reads; not of blocks beyond the cache
  Cost per_row_s;          ///< per contiguous run shorter than a cache line
  Cost per_touched_byte_s, per_touched_row_s;  ///< received; shows in the sweep that reads it
  /// Core time that the interrupts of a network take from sweeps, by messages that come from other nodes.
  Cost interrupt_per_message_s, interrupt_per_byte_s;
  Cost copies;
  Cost field_returns, buffer_visits;  ///< to lines of fields and to buffers, within an exchange; see refetch.hpp
  bool from_fields = false;           ///< receivers read senders' fields: costs replace packing and travelling
  Copied copied = Copied::no;
  bool packs_all = false;               ///< also messages that lie in one piece
  bool one_buffer = false;              ///< sequential fields use the same buffers
  bool plain = false;                   ///< messages cost the same as messages of p2p, and follow their corrections too
  std::vector<Correction> corrections;  ///< of steps whose messages stay in their node
};
/// The parameters of TransportCost and their names in the JSON.
constexpr std::pair<const char*, Cost TransportCost::*> surcharge_members[]{
    {"per_message_s", &TransportCost::per_message_s},
    {"per_round_s", &TransportCost::per_round_s},
    {"per_exchange_s", &TransportCost::per_exchange_s},
    {"per_byte_s", &TransportCost::per_byte_s},
    {"per_gapped_byte_s", &TransportCost::per_gapped_byte_s},
    {"per_clean_byte_s", &TransportCost::per_clean_byte_s},
    {"per_row_s", &TransportCost::per_row_s},
    {"per_touched_byte_s", &TransportCost::per_touched_byte_s},
    {"per_touched_row_s", &TransportCost::per_touched_row_s},
    {"interrupt_per_message_s", &TransportCost::interrupt_per_message_s},
    {"interrupt_per_byte_s", &TransportCost::interrupt_per_byte_s},
    {"copies", &TransportCost::copies},
    {"field_returns", &TransportCost::field_returns},
    {"buffer_visits", &TransportCost::buffer_visits}};

/// The cost of running a program beyond its operations' work.
struct StepCost {
  Cost per_program_s, per_operation_s, waiting_share, far_waiting_share, between_waiting_share, waiting_span_s;
  Cost per_piece_s, per_piece_cell_s, per_piece_row_s, per_far_piece_row_s;

  /// Seconds that a rank waits for the slowest of its neighbours, whose speed varies by chance. A rank that is slower
  /// now stays so for about `waiting_span_s` (0: indefinitely): waits grow with the time of the sweeps, and with its
  /// root beyond.
  /// Between the limits of the cache one rank's block stays in it while another's does not, so waits have a separate
  /// share there.
  /// @param beyond    part of the block beyond the cache, 0 to 1
  /// @param sweeps_s  between two exchanges
  /// Grows with neighbours as the expected largest of normal numbers does (Blom 1958).
  double waiting(int neighbours, double beyond, double sweeps_s) const;
};
constexpr std::pair<const char*, Cost StepCost::*> step_members[]{
    {"per_program_s", &StepCost::per_program_s},
    {"per_operation_s", &StepCost::per_operation_s},
    {"waiting_share", &StepCost::waiting_share},
    {"far_waiting_share", &StepCost::far_waiting_share},
    {"between_waiting_share", &StepCost::between_waiting_share},
    {"waiting_span_s", &StepCost::waiting_span_s},
    {"per_piece_s", &StepCost::per_piece_s},
    {"per_piece_cell_s", &StepCost::per_piece_cell_s},
    {"per_piece_row_s", &StepCost::per_piece_row_s},
    {"per_far_piece_row_s", &StepCost::per_far_piece_row_s}};

/// The progress of messages while their receiver computes.
struct OverlapCost {
  using Held = std::map<Locality, double>;
  bool measured = false;  ///< it has values that hold for all transports
  std::optional<Held> held;
  std::map<std::string, Held> held_of;  ///< by transport
  double rendezvous_from_bytes = infinity;
  std::map<std::string, double> efficiency;  ///< by schedule
  Cost call_s;
};

/// Measured collective calls of one kind, by ranks.
struct CollectiveTime {
  int ranks = 1;
  Cost time_s;
};

/// The cache that the ranks of a socket share, and the memory behind it; see refetch.hpp.
struct MemoryCost {
  double cache_bytes = infinity, line_bytes = 64;
  Cost bytes_per_s{infinity};   ///< of a socket
  double large_page_bytes = 0;  ///< smaller fields lie in small pages, scattered over the sets of the cache ...
  Cost scatter{1.0};            ///< ... and take up this multiple of their bytes there
};

/// Costs of an accelerator by the number of ranks that share one.
struct DeviceCost {
  std::string backend, name;
  int per_node = 1;
  Cost operation_s, notice_s, conflict{1.0};
  std::optional<Cost> signal_s;
  Table pack;
  std::array<std::array<Table, 2>, 2> copies;  ///< [to the device][pageable]
  std::map<std::string, Table> kernels;
  std::map<std::string, std::map<int, Table>> fused;
};

/// A machine profile; the format is data/profile.schema.json. Optional parts are sections that a profile may lack.
struct Profile {
  std::string name, cpu, mpi_library;
  int nodes = 1, sockets_per_node = 1, cores_per_socket = 1;
  std::optional<NetworkCost> network;
  std::optional<Copying> pack;
  Copying copy;
  /// Bytes of one slot of a block from which its sweeps leave less than all of it in the cache, and none of it.
  double cache_from = infinity, cache_to = infinity;
  Copying far_pack, far_copy;  ///< tables of blocks that are wholly beyond the cache
  std::optional<MemoryCost> memory;
  double strided_row_bytes = 0;  ///< 0: `strided` costs hold for bytes in rows of any length
  std::map<std::string, TransportCost> transports;
  std::optional<std::map<std::string, Table>> kernels;
  std::map<std::string, Table> streaming;  ///< of fields so large that sweeps store around the cache
  std::map<std::string, std::map<int, Table>> fused;
  std::map<std::string, RowCost> rows;  ///< of kernels
  std::optional<std::map<std::string, std::vector<CollectiveTime>>> reductions;
  std::optional<DeviceCost> device;
  OverlapCost overlap;
  StepCost steps;
  double compute_discrepancy = 0, exchange_discrepancy = 0;  ///< deviations of log(measured / predicted)
  HeldOut held_out_steps, held_out_exchanges;                ///< empty: not measured
  std::map<int, Pace> paces;                                 ///< while it was calibrated, by ranks
  PaceRatios pace_ratios{1, 1, 1, 1, 1, 1};  ///< the pace of its costs over the calibrated pace; see at_pace()
  std::vector<Profile> states;               ///< the same machine in other states observed meanwhile; see at_pace()

  int cores_per_node() const { return sockets_per_node * cores_per_socket; }
  /// The costs of messages of a locality: the costs of the closest class that the profile has. Of two equally close
  /// ones the one farther apart counts, so that a message is too expensive rather than too cheap.
  /// @throws UnavailableError without any.
  const MessageCost& messages(Locality near) const;
  bool has_messages(Locality near) const { return network && network->by_locality[static_cast<std::size_t>(near)]; }
  /// A kernel's costs over cells, by active cores of a socket; `name` is APP/FORM/REAL. @throws UnavailableError.
  /// @param streaming  of fields so large that sweeps store around the cache, where the profile distinguishes them
  const Table& kernel(const std::string& name, bool streaming = false) const;
  /// The cost of its rows; none in addition to their cells where the profile has none.
  const RowCost& row_cost(const std::string& kernel) const;
  /// Costs of several fused sweeps, by their number; null where they are not known.
  const std::map<int, Table>* fused_kernel(const std::string& name) const;
  /// Costs of packing over bytes, by threads. copies: between two sides of one block (as packing, where the profile
  /// does not distinguish them). far: the block is beyond the cache. @throws UnavailableError.
  const Table& packing(Stride stride, bool copies, bool far) const;
  /// The part of a block that its sweeps leave in memory alone: 0 to 1, between the limits in proportion to logarithms.
  /// @param block_bytes  of one slot of the block, halos included
  double beyond_cache(double block_bytes) const;
  /// The factor for bytes in rows of this length before `strided` costs are looked up.
  double row_scale(double row_bytes) const;
  /// @throws UnavailableError for a transport, as strategies write it, that it does not describe.
  const TransportCost& surcharge(const std::string& transport) const;
  /// @throws UnavailableError without a device.
  const DeviceCost& device_cost() const;
  /// Lists the differences of the profile's CPU and MPI from the ones of `whose`; empty names are not compared.
  std::vector<std::string> foreign(const std::string& cpu, const std::string& mpi, const std::string& whose) const;
};

/// @throws UsageError with the fault and its position. @param subject  the profile in messages, "the profile
///         machine.json".
Profile profile_from_json(const std::string& json, const std::string& subject = "this profile");
/// @throws UsageError as profile_from_json() does, and for a file that cannot be read.
Profile read_profile(const std::string& path);

/// Calls `visit` for every uncertain or scalable parameter, with its section and its name in the JSON.
void visit_parameters(Profile& profile,
                      const std::function<void(const char* section, const char* name, Cost& cost)>& visit);

}  // namespace haloscope::model
