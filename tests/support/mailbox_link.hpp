// A transport between ranks that are threads of one process: mailboxes with a lock. Lets the sanitizers see both ends.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <random>
#include <thread>
#include <tuple>

#include "haloscope/extend/transport.hpp"
#include "haloscope/pack/region_copy.hpp"

namespace haloscope {

/// The post office of one run.
class Mailboxes {
 public:
  using Key = std::tuple<int, int, int>;  // from, to, tag
  void put(const Key& key, std::vector<std::byte> message) {
    const std::scoped_lock lock(mutex_);
    boxes_[key].push_back(std::move(message));
    arrived_.notify_all();
  }
  bool has(const Key& key) {
    const std::scoped_lock lock(mutex_);
    return !boxes_[key].empty();
  }
  std::vector<std::byte> take(const Key& key) {
    std::unique_lock lock(mutex_);
    arrived_.wait(lock, [&] { return !boxes_[key].empty(); });
    auto message = std::move(boxes_[key].front());
    boxes_[key].pop_front();
    return message;
  }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::map<Key, std::deque<std::vector<std::byte>>> boxes_;
};

/// Messages by mailbox, with random delays before sending and after arrival.
class MailboxLink final : public Link {
 public:
  MailboxLink(Mailboxes& boxes, const Plan& plan, const Views& views, unsigned seed)
      : boxes_(boxes), plan_(plan), views_(views), buffers_(plan.messages.size()), random_(seed) {
    for (std::size_t id = 0; id < buffers_.size(); ++id)
      buffers_[id].resize(static_cast<std::size_t>(plan.messages[id].bytes));
  }
  void post(Ids, int) override {}
  void pack(Ids out, int slot, Share share) override {
    if (share.part == 0) most_packers_ = std::max(most_packers_, share.parts);
    for (int id : out) make_pack(views_, slot, plan_.messages[id], buffers_[id].data()).run(share);
  }
  void send(Ids out, int) override {
    delay();
    for (int id : out) boxes_.put({plan_.rank, plan_.messages[id].peer, plan_.messages[id].tag}, buffers_[id]);
  }
  bool test(Ids in, int slot) override {
    for (int id : in)
      if (!boxes_.has(key(id))) return false;
    wait(in, slot);
    return true;
  }
  void wait(Ids in, int) override {
    for (int id : in) buffers_[id] = boxes_.take(key(id));
    delay();
  }
  void unpack(Ids in, int slot, Share share) override {
    if (share.part == 0) most_unpackers_ = std::max(most_unpackers_, share.parts);
    for (int id : in) make_unpack(views_, slot, plan_.messages[id], buffers_[id].data()).run(share);
  }
  std::int64_t packing_lines(Ids ids, int slot) const override {
    std::int64_t lines = 0;
    for (int id : ids) lines += make_pack(views_, slot, plan_.messages[id], nullptr).lines();
    return lines;
  }
  bool test_complete(Ids, int) override { return true; }
  void complete(Ids, int) override {}
  int waiting_for(Ids, int) const override { return -1; }

  /// The largest teams that have shared packing and unpacking so far.
  int most_packers() const { return most_packers_; }
  int most_unpackers() const { return most_unpackers_; }

 private:
  Mailboxes::Key key(int id) const { return {plan_.messages[id].peer, plan_.rank, plan_.messages[id].tag}; }
  void delay() { std::this_thread::sleep_for(std::chrono::microseconds(random_() % 300)); }

  Mailboxes& boxes_;
  const Plan& plan_;
  const Views& views_;
  std::vector<std::vector<std::byte>> buffers_;
  std::minstd_rand random_;
  int most_packers_ = 1, most_unpackers_ = 1;
};

}  // namespace haloscope
