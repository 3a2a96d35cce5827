// RabbitMQ: a durable classic queue of persistent messages. A push is answered by the publisher
// confirm, which comes once the message is on the disk. An acknowledgement is answered by nothing,
// as the protocol has no answer to it, and written later: where others wait for the disk once more,
// it does not.
#include <sys/epoll.h>
#include <unistd.h>

#include <array>
#include <deque>
#include <optional>
#include <stdexcept>
#include <utility>

#include "bench/peers/queue_peer.h"
#include "bench/peers/rabbitmq_c.h"
#include "bench/peers/rabbitmq_server.h"
#include "bench/peers/server_program.h"

namespace strata::bench {
namespace {

constexpr int kRabbitmqPatienceMs = 100;
constexpr size_t kPublishers = 1;           // connections with a channel each
constexpr size_t kConsumerConnections = 4;  // with the channels of all consumers
constexpr int kConsumerChannels = kConsumers / static_cast<int>(kConsumerConnections);
constexpr size_t kReceiveBatch = 64;  // of a stream, acknowledged together
constexpr amqp_channel_t kFirstChannel = 1;

amqp_bytes_t BytesOf(std::string_view text) {
  return {text.size(), const_cast<char*>(text.data())};
}

class RabbitmqQueue final : public QueuePeer {
 public:
  RabbitmqQueue();
  ~RabbitmqQueue() override { close(poll_); }

  pid_t server() const override { return server_.pid(); }
  void OpenQueue(const std::string& name) override;
  void Send(int slot, const QueueCall& call) override;
  void Receive(const std::function<void(int, QueueAnswer&)>& answered) override;
  // Of a closed channel, what was not acknowledged goes back.
  int64_t CountMessages() override;

 private:
  using Answered = std::function<void(int, QueueAnswer&)>;

  struct Publisher {
    AmqpConnection connection;
    // By delivery tag, from `first_tag` on: the slot, or none once it was confirmed.
    std::deque<std::optional<int>> unconfirmed;
    uint64_t first_tag = 1;
  };
  // Of a consumer.
  struct Channel {
    bool is_streaming = false;
    bool waits = false;  // for messages of the stream
    uint64_t tag = 0;    // of the message that is arriving
    size_t bytes_left = 0;
    std::string payload;
    std::vector<QueueAnswer::Message> arrived;  // of the stream
  };

  void OpenConsumers();
  void CloseConsumers();
  void Watch(const AmqpConnection& connection, size_t index);
  AmqpConnection& ConnectionOf(int consumer) {
    return consumers_[static_cast<size_t>(consumer) % kConsumerConnections];
  }
  static amqp_channel_t ChannelOf(int consumer) {
    return static_cast<amqp_channel_t>(kFirstChannel +
                                       consumer / static_cast<int>(kConsumerConnections));
  }

  void Publish(int slot, const QueueCall& call);
  void Get(int slot);
  void Stream(int slot, int64_t credit);
  void Acknowledge(int slot, const QueueCall& call);

  void Read(size_t index, const Answered& answered);
  void TakeOfPublisher(Publisher& publisher, const amqp_frame_t& frame, const Answered& answered);
  void Confirm(Publisher& publisher, uint64_t tag, const Answered& answered);
  void TakeOfConsumer(int slot, const amqp_frame_t& frame, const Answered& answered);
  void TakeMessage(int slot, const Answered& answered);
  void HandOver(int slot, const Answered& answered);
  amqp_connection_state_t_* StateOf(size_t index) const {
    return index < kPublishers ? publishers_[index].connection.get()
                               : consumers_[index - kPublishers].get();
  }

  RabbitmqServer server_;
  const int poll_;
  AmqpConnection control_;
  std::array<Publisher, kPublishers> publishers_;
  std::array<AmqpConnection, kConsumerConnections> consumers_;
  std::array<Channel, kConsumers> channels_;
  std::array<size_t, kQueueSlots> unconfirmed_{};  // messages of each slot
  std::vector<int> acknowledged_;                  // slots that are to be answered
  std::string queue_;
};

RabbitmqQueue::RabbitmqQueue()
    : poll_(epoll_create1(EPOLL_CLOEXEC)), control_(server_.Connect(kFirstChannel)) {
  for (size_t i = 0; i < kPublishers; ++i) {
    publishers_[i].connection = server_.Connect(kFirstChannel);
    amqp_confirm_select(publishers_[i].connection.get(), kFirstChannel);
    RequireAmqp(amqp_get_rpc_reply(publishers_[i].connection.get()), "confirms");
    Watch(publishers_[i].connection, i);
  }
}

void RabbitmqQueue::Watch(const AmqpConnection& connection, size_t index) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = index;
  if (epoll_ctl(poll_, EPOLL_CTL_ADD, amqp_get_sockfd(connection.get()), &event) != 0) {
    throw std::runtime_error("epoll_ctl");
  }
}

void RabbitmqQueue::OpenConsumers() {
  for (size_t i = 0; i < kConsumerConnections; ++i) {
    consumers_[i] = server_.Connect(kConsumerChannels);
    Watch(consumers_[i], kPublishers + i);
  }
  channels_ = {};
}

// Their sockets leave the poll as they are closed.
void RabbitmqQueue::CloseConsumers() {
  for (AmqpConnection& one : consumers_) one.reset();
}

void RabbitmqQueue::OpenQueue(const std::string& name) {
  amqp_connection_state_t_* const control = control_.get();
  CloseConsumers();
  if (!queue_.empty()) {
    amqp_queue_delete(control, kFirstChannel, BytesOf(queue_), 0, 0);
    RequireAmqp(amqp_get_rpc_reply(control), "delete the queue");
  }
  queue_ = name;
  amqp_queue_declare(control, kFirstChannel, BytesOf(queue_), /*passive=*/0, /*durable=*/1,
                     /*exclusive=*/0, /*auto_delete=*/0, amqp_empty_table);
  RequireAmqp(amqp_get_rpc_reply(control), "declare the queue");
  OpenConsumers();
}

int64_t RabbitmqQueue::CountMessages() {
  CloseConsumers();
  amqp_connection_state_t_* const control = control_.get();
  const amqp_queue_declare_ok_t* const queue =
      amqp_queue_declare(control, kFirstChannel, BytesOf(queue_), /*passive=*/1, /*durable=*/1,
                         /*exclusive=*/0, /*auto_delete=*/0, amqp_empty_table);
  RequireAmqp(amqp_get_rpc_reply(control), "count");
  return queue->message_count;
}

void RabbitmqQueue::Send(int slot, const QueueCall& call) {
  switch (call.operation) {
    case QueueOperation::kPush:
      return Publish(slot, call);
    case QueueOperation::kReserve:
      return Get(slot);
    case QueueOperation::kReceive:
      return Stream(slot, call.count);
    case QueueOperation::kAcknowledge:
      return Acknowledge(slot, call);
    case QueueOperation::kReserveAhead:
    case QueueOperation::kCommit:
      throw std::runtime_error("rabbitmq: has no commits");
  }
}

void RabbitmqQueue::Publish(int slot, const QueueCall& call) {
  Publisher& publisher = publishers_[static_cast<size_t>(slot) % kPublishers];
  amqp_basic_properties_t properties{};
  properties._flags = AMQP_BASIC_DELIVERY_MODE_FLAG;
  properties.delivery_mode = AMQP_DELIVERY_PERSISTENT;
  unconfirmed_[static_cast<size_t>(slot)] = call.payloads.size();
  for (const std::string_view one : call.payloads) {
    publisher.unconfirmed.emplace_back(slot);
    RequireAmqp(amqp_basic_publish(publisher.connection.get(), kFirstChannel, amqp_empty_bytes,
                                   BytesOf(queue_), 0, 0, &properties, BytesOf(one)),
                "publish");
  }
}

void RabbitmqQueue::Get(int slot) {
  amqp_basic_get_t get{};
  get.queue = BytesOf(queue_);
  RequireAmqp(
      amqp_send_method(ConnectionOf(slot).get(), ChannelOf(slot), AMQP_BASIC_GET_METHOD, &get),
      "get");
}

void RabbitmqQueue::Stream(int slot, int64_t credit) {
  Channel& channel = channels_[static_cast<size_t>(slot)];
  channel.waits = true;
  if (std::exchange(channel.is_streaming, true)) return;
  amqp_connection_state_t_* const connection = ConnectionOf(slot).get();
  amqp_basic_qos(connection, ChannelOf(slot), 0, static_cast<uint16_t>(credit), 0);
  RequireAmqp(amqp_get_rpc_reply(connection), "prefetch");
  amqp_basic_consume(connection, ChannelOf(slot), BytesOf(queue_), amqp_empty_bytes, 0, 0, 0,
                     amqp_empty_table);
  RequireAmqp(amqp_get_rpc_reply(connection), "consume");
}

// Up to the last of those that the slot got, so all of them.
void RabbitmqQueue::Acknowledge(int slot, const QueueCall& call) {
  RequireAmqp(amqp_basic_ack(ConnectionOf(slot).get(), ChannelOf(slot), call.messages.back().low,
                             call.messages.size() > 1 ? 1 : 0),
              "acknowledge");
  acknowledged_.push_back(slot);
}

void RabbitmqQueue::Receive(const Answered& answered) {
  QueueAnswer done;
  done.is_done = true;
  for (const int slot : std::exchange(acknowledged_, {})) answered(slot, done);
  for (int slot = 0; slot < kStreams; ++slot) {
    const Channel& channel = channels_[static_cast<size_t>(slot)];
    if (channel.waits && channel.arrived.size() >= kReceiveBatch) HandOver(slot, answered);
  }
  std::array<bool, kPublishers + kConsumerConnections> is_readable{};
  bool is_any = !acknowledged_.empty();
  for (size_t i = 0; i < is_readable.size(); ++i) {
    is_readable[i] = amqp_frames_enqueued(StateOf(i)) != 0 || amqp_data_in_buffer(StateOf(i)) != 0;
    is_any = is_any || is_readable[i];
  }
  std::array<epoll_event, kPublishers + kConsumerConnections> events;
  const int count = epoll_wait(poll_, events.data(), static_cast<int>(events.size()),
                               is_any ? 0 : kRabbitmqPatienceMs);
  for (int i = 0; i < count; ++i) {
    is_readable[static_cast<size_t>(events[static_cast<size_t>(i)].data.u64)] = true;
  }
  for (size_t i = 0; i < is_readable.size(); ++i) {
    if (is_readable[i]) Read(i, answered);
  }
  if (count > 0 || is_any) return;
  for (int slot = 0; slot < kStreams; ++slot) {
    if (channels_[static_cast<size_t>(slot)].waits) HandOver(slot, answered);
  }
}

void RabbitmqQueue::Read(size_t index, const Answered& answered) {
  amqp_connection_state_t_* const connection = StateOf(index);
  while (true) {
    amqp_frame_t frame;
    const timeval at_once{};
    const int status = amqp_simple_wait_frame_noblock(connection, &frame, &at_once);
    if (status == AMQP_STATUS_TIMEOUT) return;
    RequireAmqp(status, "read");
    if (index < kPublishers) {
      TakeOfPublisher(publishers_[index], frame, answered);
    } else {
      const int slot = static_cast<int>(index - kPublishers) +
                       (frame.channel - kFirstChannel) * static_cast<int>(kConsumerConnections);
      if (frame.channel < kFirstChannel || slot >= kConsumers) {
        throw std::runtime_error("rabbitmq: the server closes a connection");
      }
      TakeOfConsumer(slot, frame, answered);
    }
    amqp_maybe_release_buffers_on_channel(connection, frame.channel);
  }
}

void RabbitmqQueue::TakeOfPublisher(Publisher& publisher, const amqp_frame_t& frame,
                                    const Answered& answered) {
  if (frame.frame_type != AMQP_FRAME_METHOD || frame.payload.method.id != AMQP_BASIC_ACK_METHOD) {
    throw std::runtime_error("rabbitmq: a message was not confirmed");
  }
  const auto& confirm = *static_cast<const amqp_basic_ack_t*>(frame.payload.method.decoded);
  const uint64_t tag = confirm.delivery_tag;
  if (tag < publisher.first_tag || tag - publisher.first_tag >= publisher.unconfirmed.size()) {
    throw std::runtime_error("rabbitmq: a confirm of nothing");
  }
  const uint64_t first = confirm.multiple != 0 ? publisher.first_tag : tag;
  for (uint64_t one = first; one <= tag; ++one) Confirm(publisher, one, answered);
}

void RabbitmqQueue::Confirm(Publisher& publisher, uint64_t tag, const Answered& answered) {
  if (tag < publisher.first_tag) return;  // confirmed before, by itself
  std::deque<std::optional<int>>& unconfirmed = publisher.unconfirmed;
  const std::optional<int> slot = std::exchange(unconfirmed[tag - publisher.first_tag], {});
  while (!unconfirmed.empty() && !unconfirmed.front()) {
    unconfirmed.pop_front();
    ++publisher.first_tag;
  }
  if (!slot || --unconfirmed_[static_cast<size_t>(*slot)] > 0) return;
  QueueAnswer answer;
  answer.is_done = true;
  answered(*slot, answer);
}

void RabbitmqQueue::TakeOfConsumer(int slot, const amqp_frame_t& frame, const Answered& answered) {
  Channel& channel = channels_[static_cast<size_t>(slot)];
  if (frame.frame_type == AMQP_FRAME_HEADER) {
    channel.bytes_left = static_cast<size_t>(frame.payload.properties.body_size);
    channel.payload.clear();
    return;
  }
  if (frame.frame_type == AMQP_FRAME_BODY) {
    const amqp_bytes_t& bytes = frame.payload.body_fragment;
    channel.payload.append(static_cast<const char*>(bytes.bytes), bytes.len);
    channel.bytes_left -= bytes.len;
    if (channel.bytes_left == 0) TakeMessage(slot, answered);
    return;
  }
  const void* const method = frame.payload.method.decoded;
  switch (frame.payload.method.id) {
    case AMQP_BASIC_GET_OK_METHOD:
      channel.tag = static_cast<const amqp_basic_get_ok_t*>(method)->delivery_tag;
      return;
    case AMQP_BASIC_DELIVER_METHOD:
      channel.tag = static_cast<const amqp_basic_deliver_t*>(method)->delivery_tag;
      return;
    case AMQP_BASIC_GET_EMPTY_METHOD: {
      QueueAnswer none;
      none.is_done = true;
      return answered(slot, none);
    }
    default:
      throw std::runtime_error("rabbitmq: the server closes a channel");
  }
}

void RabbitmqQueue::TakeMessage(int slot, const Answered& answered) {
  Channel& channel = channels_[static_cast<size_t>(slot)];
  channel.arrived.push_back({{0, channel.tag}, std::move(channel.payload)});
  if (!channel.is_streaming || (channel.waits && channel.arrived.size() >= kReceiveBatch)) {
    HandOver(slot, answered);
  }
}

void RabbitmqQueue::HandOver(int slot, const Answered& answered) {
  Channel& channel = channels_[static_cast<size_t>(slot)];
  QueueAnswer answer;
  answer.is_done = true;
  answer.messages = std::exchange(channel.arrived, {});
  channel.waits = false;
  answered(slot, answer);
}

}  // namespace

std::unique_ptr<QueuePeer> StartRabbitmqQueue() { return std::make_unique<RabbitmqQueue>(); }

}  // namespace strata::bench
