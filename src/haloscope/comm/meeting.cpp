#include "haloscope/comm/meeting.hpp"

#include "haloscope/comm/patience.hpp"
#include "haloscope/comm/settle.hpp"

namespace haloscope {
namespace {

class Ending final : public ReportedWait {
 public:
  Ending(MPI_Comm comm, const std::string& what) : ReportedWait(world_rank(comm, rank_in(comm))), what_(what) {}

 private:
  std::string describe() const override { return "other ranks have not come to the end of the " + what_; }

  const std::string& what_;
};

}  // namespace

void meet_at_end(MPI_Comm comm, int tag, bool yield, const std::string& what) {
  const Ending reported(comm, what);
  meet_by_messages(comm, tag, {}, nullptr, [&](MPI_Request& request) {
    settle(request, yield);
    return true;
  });
}

}  // namespace haloscope
