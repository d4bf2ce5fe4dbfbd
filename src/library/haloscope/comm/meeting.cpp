#include "haloscope/comm/meeting.hpp"

#include "haloscope/comm/patience.hpp"
#include "haloscope/comm/settle.hpp"

namespace haloscope {

void meet_at_end(MPI_Comm comm, int tag, bool yield, const std::function<std::string()>& name) {
  const DescribedWait waiting([&] { return "other ranks have not come to the end of the " + name(); });
  const auto itself = [](int rank) { return rank; };
  meet_by_messages(comm, comm, itself, tag, {}, nullptr, [&](MPI_Request& request) {
    settle(request, yield);
    return true;
  });
}

}  // namespace haloscope
