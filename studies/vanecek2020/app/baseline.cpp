// The baseline: a kernel packs all blocks, then messages, then a kernel unpacks all (Vanecek 2020, section 3.3).
#include "vanecek2020/app/flow.hpp"

namespace haloscope {
namespace {

class Baseline final : public BlocksFlow {
 public:
  explicit Baseline(const BlocksContext& context) : BlocksFlow(context), stream_(device_.stream()) {}

 private:
  void exchange() override {
    const device::BlocksKernels& kernels = find_blocks_kernels(device_.kernels());
    log_.segment("launch");
    kernels.pack(*stream_, launch_);
    log_.segment("post");
    post_receives();
    log_.segment("pack");
    stream_->finish();
    for (int b = 0; b < blocks(); ++b) progress(b).packed = 1;
    log_.segment("send");
    for (int b = 0; b < blocks(); ++b) send(b, 0);
    log_.segment("receive");
    context_.variant.testany ? take_as_they_come() : take_together();
    log_.segment("unpack");
    kernels.unpack(*stream_, launch_);
    counts_.launches += 2;
    wait_for_sends();
    log_.segment("finish");
    stream_->finish();
  }

  void take_together() {
    settle(receives_, context_.yield);
    for (int b = 0; b < blocks(); ++b) note_arrival(b);
  }

  void take_as_they_come() {
    take_events(blocks(), hits_, "no message came", [&] {
      const int task = test_receives();
      if (task >= 0) note_arrival(task);
      return task >= 0;
    });
  }

  std::unique_ptr<device::Stream> stream_;
  HitProfile hits_;  // not reported: the CPU does nothing else
};

}  // namespace

std::unique_ptr<BlocksFlow> make_baseline(const BlocksContext& context) { return std::make_unique<Baseline>(context); }

}  // namespace haloscope
