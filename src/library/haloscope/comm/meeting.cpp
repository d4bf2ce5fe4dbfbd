#include "haloscope/comm/meeting.hpp"

#include "haloscope/comm/patience.hpp"
#include "haloscope/comm/settle.hpp"

namespace haloscope {
namespace {

class Ending final : public ReportedWait {
 public:
  explicit Ending(const std::function<std::string()>& what) : what_(what) {}

 private:
  std::string describe() const override { return "other ranks have not come to the end of the " + what_(); }

  const std::function<std::string()>& what_;
};

}  // namespace

void meet_at_end(MPI_Comm comm, int tag, bool yield, const std::function<std::string()>& what) {
  const Ending reported(what);
  const auto itself = [](int rank) { return rank; };
  meet_by_messages(comm, comm, itself, tag, {}, nullptr, [&](MPI_Request& request) {
    settle(request, yield);
    return true;
  });
}

}  // namespace haloscope
