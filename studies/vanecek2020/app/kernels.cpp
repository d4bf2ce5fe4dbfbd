// Flow with a kernel per block to pack, and another one to unpack its arrived data: CPU and GPU signal each other only
// by the end and the start of kernels (Vanecek 2020, section 5.4). So the memory of the buffers need not be coherent.
#include "vanecek2020/app/flow.hpp"

namespace haloscope {
namespace {

class Kernels final : public BlocksFlow {
 public:
  explicit Kernels(const BlocksContext& context) : BlocksFlow(context) {
    for (int b = 0; b < blocks(); ++b) {
      streams_.push_back(device_.stream());
      packed_.push_back(device_.event(false));
    }
  }
  HitProfile profile() const override { return profile_; }

 private:
  device::BlocksLaunch launch_of(int block) const {
    device::BlocksLaunch one = launch_;
    one.first = block;
    one.count = 1;
    return one;
  }
  device::Stream& stream(int block) { return *streams_[static_cast<std::size_t>(block)]; }
  device::Event& event(int block) { return *packed_[static_cast<std::size_t>(block)]; }

  void exchange() override {
    log_.segment("launch");
    for (int b = 0; b < blocks(); ++b) {
      kernels_.pack(stream(b), launch_of(b));
      stream(b).record(event(b));
    }
    log_.segment("post");
    post_receives();
    log_.segment("events");
    take_events(2 * blocks(), profile_, "nothing happened", [&] { return take_packed() || take_arrived(); });
    log_.segment("finish");
    for (auto& one : streams_) one->finish();
    wait_for_sends();
    counts_.launches += 2 * blocks();
  }

  bool take_packed() {
    for (int b = 0; b < blocks(); ++b) {
      if (progress(b).packed != 0 || !event(b).reached()) continue;
      ++progress(b).packed;
      send(b, 0);
      return true;
    }
    return false;
  }

  bool take_arrived() {
    const int block = test_receives();
    if (block < 0) return false;
    if (note_arrival(block)) kernels_.unpack(stream(block), launch_of(block)), ++progress(block).notified;
    return true;
  }

  std::vector<std::unique_ptr<device::Stream>> streams_;
  std::vector<std::unique_ptr<device::Event>> packed_;
  HitProfile profile_;
};

}  // namespace

std::unique_ptr<BlocksFlow> make_kernels(const BlocksContext& context) { return std::make_unique<Kernels>(context); }

}  // namespace haloscope
