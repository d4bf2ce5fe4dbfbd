#include "haloscope/choice.hpp"
#include "haloscope/core/names.hpp"
#include "haloscope/error.hpp"
#include "haloscope/schedule.hpp"

namespace haloscope {

Program make_box(const Stage&, const Plan&, const ScheduleOptions&);
Program make_box_overlap(const Stage&, const Plan&, const ScheduleOptions&);
Program make_bulk(const Stage&, const Plan&, const ScheduleOptions&);
Program make_split(const Stage&, const Plan&, const ScheduleOptions&);
Program make_faces(const Stage&, const Plan&, const ScheduleOptions&);
Program make_faces_overlap(const Stage&, const Plan&, const ScheduleOptions&);
Program make_interleaved(const Stage&, const Plan&, const ScheduleOptions&);
Program make_comm_thread(const Stage&, const Plan&, const ScheduleOptions&);
Program make_pipeline(const Stage&, const Plan&, const ScheduleOptions&);
Program make_resident(const Stage&, const Plan&, const ScheduleOptions&);
Program make_streams(const Stage&, const Plan&, const ScheduleOptions&);

const std::vector<Schedule>& schedules() {
  static const std::vector<Schedule> list{
      {"bulk", "exchange, then compute; nothing overlaps", make_bulk},
      {"split", "interior while messages are in flight, then the boundary", make_split},
      {"interleaved", "interior in slabs between the sends and waits of an ordered pattern's rounds", make_interleaved},
      {"comm-thread", "one thread communicates while the others compute the interior", make_comm_thread},
      {"pipeline", "in place, line after line: ranks one behind the other in different steps (Gauss-Seidel)",
       make_pipeline},
      {"resident", "one rank on a device: sweeps wrap around, nothing is exchanged", make_resident},
      {"box", "the host computes a box around the device's block, both at once, after the messages", make_box},
      {"box-overlap", "box, with host, device, messages and copies between them all at once", make_box_overlap},
      {"faces", "device: kernels of opposite faces also unpack and pack, then the interior", make_faces},
      {"faces-overlap", "faces, with the interior beside packing, copies, messages and faces", make_faces_overlap},
      {"streams", "device: interior on one stream; packing, copies, messages and boundary beside it", make_streams},
  };
  return list;
}

const Schedule& find_schedule(const std::string& name) {
  for (const auto& s : schedules())
    if (s.name == name) return s;
  throw UsageError(unknown_name("schedule", name, schedule_names()));
}

}  // namespace haloscope
