// The members of the library's types by the names of the protos' fields: what is converted, from
// and to whatever form, goes by these lists. tests/client/mirror_test.cc holds them against the
// protos.
#pragma once

#include "strata/client/client.h"

namespace strata::client {

// Fields(visit, value) calls visit(name, member) for each member of `value`.

template <typename Visit>
void Fields(Visit& visit, ChangeInfo& value) {
  visit("actor", value.actor);
  visit("on_behalf_of", value.on_behalf_of);
  visit("reason", value.reason);
  visit("labels", value.labels);
}

template <typename Visit>
void Fields(Visit& visit, Document& value) {
  visit("collection", value.collection);
  visit("id", value.id);
  visit("version", value.version);
  visit("content", value.content);
  visit("create_time", value.create_time);
  visit("update_time", value.update_time);
  visit("pending_transaction_id", value.pending_transaction_id);
}

template <typename Visit>
void Fields(Visit& visit, Written& value) {
  visit("document", value.document);
  visit("attempts", value.attempts);
  visit("changed", value.changed);
  visit("replayed", value.replayed);
  visit("stale", value.stale);
  visit("commit_position", value.commit_position);
}

template <typename Visit>
void Fields(Visit& visit, FieldChange& value) {
  visit("path", value.path);
  visit("type", value.type);
  visit("before", value.before);
  visit("after", value.after);
  visit("values_omitted", value.values_omitted);
}

template <typename Visit>
void Fields(Visit& visit, Version& value) {
  visit("version", value.version);
  visit("kind", value.kind);
  visit("commit_time", value.commit_time);
  visit("change", value.change);
  visit("request_id", value.request_id);
  visit("content_hash", value.content_hash);
  visit("chain_hash", value.chain_hash);
  visit("content", value.content);
  visit("changes", value.changes);
  visit("changes_truncated", value.changes_truncated);
  visit("transaction_id", value.transaction_id);
}

template <typename Visit>
void Fields(Visit& visit, AuditEntry& value) {
  visit("commit_position", value.commit_position);
  visit("index", value.index);
  visit("collection", value.collection);
  visit("id", value.id);
  visit("version", value.version);
}

template <typename Visit>
void Fields(Visit& visit, LeaseToken& value) {
  visit("name", value.name);
  visit("token", value.token);
  visit("position", value.position);
  visit("index", value.index);
  visit("after_position", value.after_position);
  visit("after_index", value.after_index);
}

template <typename Visit>
void Fields(Visit& visit, Newer& value) {
  visit("path", value.path);
  visit("value", value.value);
}

template <typename Visit>
void Fields(Visit& visit, CreateOptions& value) {
  visit("actor", value.actor);
  visit("on_behalf_of", value.on_behalf_of);
  visit("reason", value.reason);
  visit("labels", value.labels);
  visit("request_id", value.request_id);
  visit("validate_only", value.validate_only);
  visit("omit_content", value.omit_content);
  visit("lease", value.lease);
}

template <typename Visit>
void Fields(Visit& visit, UpdateOptions& value) {
  visit("if_version", value.if_version);
  visit("if_exists", value.if_exists);
  visit("if_matches", value.if_matches);
  visit("newer", value.newer);
  visit("allow_missing", value.allow_missing);
  visit("keep_unchanged", value.keep_unchanged);
  visit("max_attempts", value.max_attempts);
  visit("actor", value.actor);
  visit("on_behalf_of", value.on_behalf_of);
  visit("reason", value.reason);
  visit("labels", value.labels);
  visit("request_id", value.request_id);
  visit("validate_only", value.validate_only);
  visit("omit_content", value.omit_content);
  visit("lease", value.lease);
}

template <typename Visit>
void Fields(Visit& visit, DeleteOptions& value) {
  visit("if_version", value.if_version);
  visit("if_exists", value.if_exists);
  visit("if_matches", value.if_matches);
  visit("newer", value.newer);
  visit("max_attempts", value.max_attempts);
  visit("actor", value.actor);
  visit("on_behalf_of", value.on_behalf_of);
  visit("reason", value.reason);
  visit("labels", value.labels);
  visit("request_id", value.request_id);
  visit("validate_only", value.validate_only);
  visit("lease", value.lease);
}

template <typename Visit>
void Fields(Visit& visit, RestoreOptions& value) {
  visit("if_version", value.if_version);
  visit("if_exists", value.if_exists);
  visit("if_matches", value.if_matches);
  visit("keep_unchanged", value.keep_unchanged);
  visit("max_attempts", value.max_attempts);
  visit("actor", value.actor);
  visit("on_behalf_of", value.on_behalf_of);
  visit("reason", value.reason);
  visit("labels", value.labels);
  visit("request_id", value.request_id);
  visit("validate_only", value.validate_only);
  visit("omit_content", value.omit_content);
  visit("lease", value.lease);
}

template <typename Visit>
void Fields(Visit& visit, ModifyOptions& value) {
  visit("actor", value.actor);
  visit("on_behalf_of", value.on_behalf_of);
  visit("reason", value.reason);
  visit("labels", value.labels);
  visit("lease", value.lease);
}

template <typename Visit>
void Fields(Visit& visit, GetOptions& value) {
  visit("version", value.version);
  visit("at_time", value.at_time);
  visit("at_position", value.at_position);
  visit("fields", value.fields);
}

template <typename Visit>
void Fields(Visit& visit, HistoryOptions& value) {
  visit("oldest_first", value.oldest_first);
  visit("from_version", value.from_version);
  visit("from_time", value.from_time);
  visit("to_version", value.to_version);
  visit("to_time", value.to_time);
  visit("include_content", value.include_content);
  visit("include_changes", value.include_changes);
  visit("filter", value.filter);
  visit("page_size", value.page_size);
}

template <typename Visit>
void Fields(Visit& visit, DiffOptions& value) {
  visit("page_size", value.page_size);
}

template <typename Visit>
void Fields(Visit& visit, AuditOptions& value) {
  visit("collection", value.collection);
  visit("id", value.id);
  visit("actor", value.actor);
  visit("kinds", value.kinds);
  visit("start_time", value.start_time);
  visit("end_time", value.end_time);
  visit("request_id", value.request_id);
  visit("transaction_id", value.transaction_id);
  visit("include_changes", value.include_changes);
  visit("newest_first", value.newest_first);
  visit("page_size", value.page_size);
}

template <typename Visit>
void Fields(Visit& visit, ListOptions& value) {
  visit("filter", value.filter);
  visit("id_prefix", value.id_prefix);
  visit("show_deleted", value.show_deleted);
  visit("fields", value.fields);
  visit("at_time", value.at_time);
  visit("at_position", value.at_position);
  visit("page_size", value.page_size);
}

template <typename Visit>
void Fields(Visit& visit, BatchGetOptions& value) {
  visit("fields", value.fields);
}

template <typename Visit>
void Fields(Visit& visit, CollectionOptions& value) {
  visit("keyframe_interval", value.keyframe_interval);
}

template <typename Visit>
void Fields(Visit& visit, KeyspaceSize& value) {
  visit("keyspace", value.keyspace);
  visit("records", value.records);
  visit("bytes", value.bytes);
}

template <typename Visit>
void Fields(Visit& visit, CollectionStatistics& value) {
  visit("documents", value.documents);
  visit("versions", value.versions);
  visit("keyspaces", value.keyspaces);
}

template <typename Visit>
void Fields(Visit& visit, CollectionInfo& value) {
  visit("name", value.name);
  visit("strategy", value.strategy);
  visit("options", value.options);
  visit("create_time", value.create_time);
  visit("statistics", value.statistics);
  visit("incarnation", value.incarnation);
}

template <typename Visit>
void Fields(Visit& visit, LedgerHead& value) {
  visit("position", value.position);
  visit("hash", value.hash);
}

template <typename Visit>
void Fields(Visit& visit, Finding& value) {
  visit("id", value.id);
  visit("version", value.version);
  visit("kind", value.kind);
  visit("problem", value.problem);
  visit("recoverable", value.recoverable);
  visit("repaired", value.repaired);
  visit("commit_position", value.commit_position);
}

template <typename Visit>
void Fields(Visit& visit, VerifyProgress& value) {
  visit("findings", value.findings);
  visit("documents", value.documents);
  visit("versions", value.versions);
  visit("ledger_entries", value.ledger_entries);
  visit("complete", value.complete);
  visit("resume_token", value.resume_token);
}

template <typename Visit>
void Fields(Visit& visit, CreateCollectionOptions& value) {
  visit("strategy", value.strategy);
  visit("options", value.options);
}

template <typename Visit>
void Fields(Visit& visit, DeleteCollectionOptions& value) {
  visit("force", value.force);
  visit("request_id", value.request_id);
  visit("incarnation", value.incarnation);
}

template <typename Visit>
void Fields(Visit& visit, ListCollectionsOptions& value) {
  visit("page_size", value.page_size);
}

template <typename Visit>
void Fields(Visit& visit, VerifyOptions& value) {
  visit("id", value.id);
  visit("repair", value.repair);
  visit("expect_head", value.expect_head);
}

template <typename Visit>
void Fields(Visit& visit, EnrollOptions& value) {
  visit("collection", value.collection);
  visit("set", value.set);
  visit("actor", value.actor);
  visit("on_behalf_of", value.on_behalf_of);
  visit("reason", value.reason);
  visit("labels", value.labels);
}

template <typename Visit>
void Fields(Visit& visit, Enrolled& value) {
  visit("result", value.result);
  visit("enrolled", value.enrolled);
  visit("version", value.version);
}

template <typename Visit>
void Fields(Visit& visit, Enrollment& value) {
  visit("class_name", value.class_name);
  visit("sequence_number", value.sequence_number);
  visit("enrolled", value.enrolled);
}

template <typename Visit>
void Fields(Visit& visit, StudentEnrollments& value) {
  visit("enrollments", value.enrollments);
  visit("version", value.version);
}

template <typename Visit>
void Fields(Visit& visit, GetEnrollmentsOptions& value) {
  visit("collection", value.collection);
  visit("set", value.set);
  visit("include_tombstones", value.include_tombstones);
}

template <typename Visit>
void Fields(Visit& visit, RosterEntry& value) {
  visit("student_id", value.student_id);
  visit("sequence_number", value.sequence_number);
  visit("version", value.version);
}

template <typename Visit>
void Fields(Visit& visit, RosterOptions& value) {
  visit("collection", value.collection);
  visit("set", value.set);
  visit("at_time", value.at_time);
  visit("page_size", value.page_size);
}

template <typename Visit>
void Fields(Visit& visit, EnrollmentMessage& value) {
  visit("student_id", value.student_id);
  visit("class_name", value.class_name);
  visit("sequence_number", value.sequence_number);
  visit("operation", value.operation);
  visit("collection", value.collection);
  visit("set", value.set);
  visit("change", value.change);
}

template <typename Visit>
void Fields(Visit& visit, PurgeOptions& value) {
  visit("collection", value.collection);
  visit("student_id", value.student_id);
  visit("set", value.set);
  visit("queues", value.queues);
  visit("actor", value.actor);
  visit("on_behalf_of", value.on_behalf_of);
  visit("reason", value.reason);
  visit("labels", value.labels);
}

template <typename Visit>
void Fields(Visit& visit, Purged& value) {
  visit("examined", value.examined);
  visit("purged_students", value.purged_students);
  visit("purged_tombstones", value.purged_tombstones);
  visit("refused_student_ids", value.refused_student_ids);
  visit("through_sequence_number", value.through_sequence_number);
}

template <typename Visit>
void Fields(Visit& visit, Lease& value) {
  visit("name", value.name);
  visit("holder", value.holder);
  visit("token", value.token);
  visit("ttl", value.ttl);
  visit("expire_time", value.expire_time);
  visit("metadata", value.metadata);
  visit("position", value.position);
  visit("index", value.index);
}

template <typename Visit>
void Fields(Visit& visit, AcquireOptions& value) {
  visit("ttl", value.ttl);
  visit("metadata", value.metadata);
  visit("wait", value.wait);
}

template <typename Visit>
void Fields(Visit& visit, RenewOptions& value) {
  visit("ttl", value.ttl);
  visit("position", value.position);
}

template <typename Visit>
void Fields(Visit& visit, ListLeasesOptions& value) {
  visit("prefix", value.prefix);
  visit("page_size", value.page_size);
}

template <typename Visit>
void Fields(Visit& visit, Event& value) {
  visit("position", value.position);
  visit("index", value.index);
  visit("collection", value.collection);
  visit("id", value.id);
  visit("version", value.version);
  visit("before", value.before);
  visit("left_filter", value.left_filter);
  visit("content_missing", value.content_missing);
  visit("truncated", value.truncated);
  visit("type", value.type);
}

template <typename Visit>
void Fields(Visit& visit, Snapshot& value) {
  visit("at_position", value.at_position);
  visit("after_collection", value.after_collection);
  visit("after_id", value.after_id);
  visit("complete", value.complete);
}

template <typename Visit>
void Fields(Visit& visit, WatchOptions& value) {
  visit("collections", value.collections);
  visit("id_prefix", value.id_prefix);
  visit("kinds", value.kinds);
  visit("filter", value.filter);
  visit("include_content", value.include_content);
  visit("include_before", value.include_before);
  visit("include_changes", value.include_changes);
  visit("bookmark_interval", value.bookmark_interval);
  visit("after_position", value.after_position);
  visit("start_time", value.start_time);
  visit("snapshot", value.snapshot);
}

template <typename Visit>
void Fields(Visit& visit, Feed& value) {
  visit("oldest_position", value.oldest_position);
  visit("last_position", value.last_position);
  visit("watchers", value.watchers);
  visit("parked_watchers", value.parked_watchers);
  visit("events_sent", value.events_sent);
  visit("catch_up_reads", value.catch_up_reads);
  visit("retention", value.retention);
  visit("held_by", value.held_by);
  visit("held_position", value.held_position);
  visit("take_overs", value.take_overs);
  visit("lease_lost", value.lease_lost);
}

template <typename Visit>
void Fields(Visit& visit, Subscription& value) {
  visit("name", value.name);
  visit("incarnation", value.incarnation);
  visit("collections", value.collections);
  visit("id_prefix", value.id_prefix);
  visit("kinds", value.kinds);
  visit("filter", value.filter);
  visit("start_position", value.start_position);
  visit("partitions", value.partitions);
  visit("max_attempts", value.max_attempts);
  visit("backoff_first", value.backoff_first);
  visit("backoff_max", value.backoff_max);
  visit("ack_timeout", value.ack_timeout);
  visit("lease_ttl", value.lease_ttl);
  visit("create_time", value.create_time);
}

template <typename Visit>
void Fields(Visit& visit, SubscriptionPartition& value) {
  visit("partition", value.partition);
  visit("consumer", value.consumer);
  visit("token", value.token);
  visit("position", value.position);
  visit("index", value.index);
  visit("lag_positions", value.lag_positions);
  visit("oldest_open_time", value.oldest_open_time);
  visit("in_flight", value.in_flight);
  visit("attempts", value.attempts);
  visit("reason", value.reason);
  visit("retry_time", value.retry_time);
  visit("parked", value.parked);
  visit("blocked", value.blocked);
}

template <typename Visit>
void Fields(Visit& visit, SubscriptionState& value) {
  visit("subscription", value.subscription);
  visit("partitions", value.partitions);
  visit("last_position", value.last_position);
  visit("consumers", value.consumers);
  visit("parked", value.parked);
  visit("events_acknowledged", value.events_acknowledged);
  visit("acknowledging_commits", value.acknowledging_commits);
  visit("take_overs", value.take_overs);
}

template <typename Visit>
void Fields(Visit& visit, CreateSubscriptionOptions& value) {
  visit("collections", value.collections);
  visit("id_prefix", value.id_prefix);
  visit("kinds", value.kinds);
  visit("filter", value.filter);
  visit("after_position", value.after_position);
  visit("start_time", value.start_time);
  visit("partitions", value.partitions);
  visit("max_attempts", value.max_attempts);
  visit("backoff_first", value.backoff_first);
  visit("backoff_max", value.backoff_max);
  visit("ack_timeout", value.ack_timeout);
  visit("lease_ttl", value.lease_ttl);
}

template <typename Visit>
void Fields(Visit& visit, ListSubscriptionsOptions& value) {
  visit("prefix", value.prefix);
  visit("page_size", value.page_size);
}

template <typename Visit>
void Fields(Visit& visit, ParkedDocument& value) {
  visit("collection", value.collection);
  visit("id", value.id);
  visit("partition", value.partition);
  visit("from_version", value.from_version);
  visit("position", value.position);
  visit("index", value.index);
  visit("attempts", value.attempts);
  visit("reason", value.reason);
  visit("park_time", value.park_time);
  visit("action", value.action);
}

template <typename Visit>
void Fields(Visit& visit, ListParkedOptions& value) {
  visit("page_size", value.page_size);
}

template <typename Visit>
void Fields(Visit& visit, ParkedOptions& value) {
  visit("collection", value.collection);
  visit("id", value.id);
}

template <typename Visit>
void Fields(Visit& visit, ConsumeOptions& value) {
  visit("window", value.window);
  visit("include_content", value.include_content);
  visit("include_before", value.include_before);
  visit("include_changes", value.include_changes);
}

template <typename Visit>
void Fields(Visit& visit, Delivery& value) {
  visit("event", value.event);
  visit("attempt", value.attempt);
  visit("replay", value.replay);
  visit("lease", value.lease);
}

template <typename Visit>
void Fields(Visit& visit, QueueMessage& value) {
  visit("message_id", value.message_id);
  visit("queue", value.queue);
  visit("payload", value.payload);
  visit("headers", value.headers);
  visit("priority", value.priority);
  visit("ordering_key", value.ordering_key);
  visit("sequence_number", value.sequence_number);
  visit("push_time", value.push_time);
  visit("due", value.due);
  visit("tries", value.tries);
  visit("delivery", value.delivery);
  visit("state", value.state);
  visit("token", value.token);
  visit("reason", value.reason);
  visit("expire_time", value.expire_time);
}

template <typename Visit>
void Fields(Visit& visit, PushedMessage& value) {
  visit("payload", value.payload);
  visit("headers", value.headers);
  visit("priority", value.priority);
  visit("ordering_key", value.ordering_key);
  visit("sequence_number", value.sequence_number);
  visit("delay", value.delay);
  visit("deliver_time", value.deliver_time);
  visit("expire_time", value.expire_time);
  visit("request_id", value.request_id);
}

template <typename Visit>
void Fields(Visit& visit, EnrollmentSink& value) {
  visit("collection", value.collection);
  visit("set", value.set);
  visit("max_in_flight", value.max_in_flight);
}

template <typename Visit>
void Fields(Visit& visit, QueueSettings& value) {
  visit("reservation_timeout", value.reservation_timeout);
  visit("max_tries", value.max_tries);
  visit("dead_letter_queue", value.dead_letter_queue);
  visit("retry_delay", value.retry_delay);
  visit("retry_delay_max", value.retry_delay_max);
  visit("history_retention", value.history_retention);
  visit("message_lifetime", value.message_lifetime);
  visit("paused", value.paused);
  visit("enrollments", value.enrollments);
}

template <typename Visit>
void Fields(Visit& visit, QueueStatistics& value) {
  visit("ready", value.ready);
  visit("scheduled", value.scheduled);
  visit("reserved", value.reserved);
  visit("waiting", value.waiting);
  visit("dead", value.dead);
  visit("oldest_ready_age", value.oldest_ready_age);
  visit("low_watermark", value.low_watermark);
  visit("exact", value.exact);
}

template <typename Visit>
void Fields(Visit& visit, QueueCounts& value) {
  visit("pushed", value.pushed);
  visit("handed_out", value.handed_out);
  visit("acknowledged", value.acknowledged);
  visit("rolled_back", value.rolled_back);
  visit("died", value.died);
  visit("races_lost", value.races_lost);
  visit("commits", value.commits);
  visit("operations", value.operations);
}

template <typename Visit>
void Fields(Visit& visit, Queue& value) {
  visit("name", value.name);
  visit("settings", value.settings);
  visit("create_time", value.create_time);
  visit("statistics", value.statistics);
  visit("counts", value.counts);
}

template <typename Visit>
void Fields(Visit& visit, PopOptions& value) {
  visit("count", value.count);
  visit("wait", value.wait);
}

template <typename Visit>
void Fields(Visit& visit, ReserveOptions& value) {
  visit("count", value.count);
  visit("timeout", value.timeout);
  visit("wait", value.wait);
}

template <typename Visit>
void Fields(Visit& visit, RollbackOptions& value) {
  visit("delay", value.delay);
  visit("not_counted", value.not_counted);
  visit("dead", value.dead);
  visit("reason", value.reason);
}

template <typename Visit>
void Fields(Visit& visit, ExtendOptions& value) {
  visit("timeout", value.timeout);
}

template <typename Visit>
void Fields(Visit& visit, MoveOptions& value) {
  visit("payload", value.payload);
  visit("headers", value.headers);
  visit("delay", value.delay);
}

template <typename Visit>
void Fields(Visit& visit, ReceiveOptions& value) {
  visit("credits", value.credits);
  visit("timeout", value.timeout);
}

template <typename Visit>
void Fields(Visit& visit, DeleteQueueOptions& value) {
  visit("force", value.force);
}

template <typename Visit>
void Fields(Visit& visit, ListQueuesOptions& value) {
  visit("page_size", value.page_size);
}

template <typename Visit>
void Fields(Visit& visit, ListMessagesOptions& value) {
  visit("state", value.state);
  visit("page_size", value.page_size);
}

template <typename Visit>
void Fields(Visit& visit, ReplayOptions& value) {
  visit("message_ids", value.message_ids);
  visit("states", value.states);
  visit("start_time", value.start_time);
  visit("end_time", value.end_time);
  visit("target_queue", value.target_queue);
}

template <typename Visit>
void Fields(Visit& visit, PurgeMessagesOptions& value) {
  visit("message_ids", value.message_ids);
  visit("states", value.states);
}

template <typename Visit>
void Fields(Visit& visit, Swept& value) {
  visit("messages", value.messages);
  visit("more", value.more);
}

template <typename Visit>
void Fields(Visit& visit, Schedule& value) {
  visit("queue", value.queue);
  visit("name", value.name);
  visit("cron", value.cron);
  visit("every", value.every);
  visit("message", value.message);
  visit("next_time", value.next_time);
}

template <typename Visit>
void Fields(Visit& visit, CreateScheduleOptions& value) {
  visit("cron", value.cron);
  visit("every", value.every);
  visit("message", value.message);
}

template <typename Visit>
void Fields(Visit& visit, ListSchedulesOptions& value) {
  visit("page_size", value.page_size);
}

template <typename Visit>
void Fields(Visit& visit, CommitOptions& value) {
  visit("mode", value.mode);
  visit("actor", value.actor);
  visit("on_behalf_of", value.on_behalf_of);
  visit("reason", value.reason);
  visit("labels", value.labels);
  visit("request_id", value.request_id);
  visit("max_attempts", value.max_attempts);
  visit("validate_only", value.validate_only);
  visit("omit_content", value.omit_content);
  visit("lease", value.lease);
}

template <typename Visit>
void Fields(Visit& visit, CommitResult& value) {
  visit("document", value.document);
  visit("changed", value.changed);
  visit("stale", value.stale);
  visit("enrollment", value.enrollment);
}

template <typename Visit>
void Fields(Visit& visit, Committed& value) {
  visit("transaction_id", value.transaction_id);
  visit("results", value.results);
  visit("commit_position", value.commit_position);
  visit("attempts", value.attempts);
  visit("replayed", value.replayed);
  visit("message_ids", value.message_ids);
}

template <typename Visit>
void Fields(Visit& visit, DocumentName& value) {
  visit("collection", value.collection);
  visit("id", value.id);
}

template <typename Visit>
void Fields(Visit& visit, DocumentVersion& value) {
  visit("collection", value.collection);
  visit("id", value.id);
  visit("version", value.version);
}

template <typename Visit>
void Fields(Visit& visit, ReadAnswer& value) {
  visit("documents", value.documents);
  visit("missing", value.missing);
  visit("commit_position", value.commit_position);
}

template <typename Visit>
void Fields(Visit& visit, Participant& value) {
  visit("collection", value.collection);
  visit("id", value.id);
  visit("base_version", value.base_version);
  visit("version", value.version);
}

template <typename Visit>
void Fields(Visit& visit, TransactionInfo& value) {
  visit("id", value.id);
  visit("status", value.status);
  visit("mode", value.mode);
  visit("change", value.change);
  visit("create_time", value.create_time);
  visit("last_modified", value.last_modified);
  visit("participants", value.participants);
  visit("reason", value.reason);
}

template <typename Visit>
void Fields(Visit& visit, ListTransactionsOptions& value) {
  visit("status", value.status);
  visit("page_size", value.page_size);
}

template <typename Visit>
void Fields(Visit& visit, CancelOptions& value) {
  visit("actor", value.actor);
  visit("on_behalf_of", value.on_behalf_of);
  visit("reason", value.reason);
  visit("labels", value.labels);
}

template <typename Visit>
void Fields(Visit& visit, ServerLimits& value) {
  visit("document_bytes", value.document_bytes);
  visit("document_depth", value.document_depth);
  visit("document_nodes", value.document_nodes);
  visit("message_bytes", value.message_bytes);
  visit("page_size", value.page_size);
  visit("batch_size", value.batch_size);
  visit("deadline", value.deadline);
}

template <typename Visit>
void Fields(Visit& visit, ServerInfo& value) {
  visit("version", value.version);
  visit("commit", value.commit);
  visit("engine", value.engine);
  visit("storage_format", value.storage_format);
  visit("start_time", value.start_time);
  visit("writable", value.writable);
  visit("limits", value.limits);
  visit("services", value.services);
}

}  // namespace strata::client
