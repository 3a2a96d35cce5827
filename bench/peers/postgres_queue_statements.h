// What PostgreSQL is told of messages: tables and statements.
#pragma once

#include <array>

namespace strata::bench {

// The documents as where history has a table of its own, updated by what W1 updates them by. All of
// a commit or nothing: where the message was no longer reserved or the document had another
// version, an error takes everything back.
inline constexpr char kQueueTables[] =
    "CREATE TABLE messages (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, "
    "queue text NOT NULL, due timestamptz NOT NULL DEFAULT now(), "
    "tries int NOT NULL DEFAULT 0, reserved_until timestamptz, "
    "payload bytea NOT NULL);"
    "CREATE INDEX waiting ON messages (queue, due, id) WHERE reserved_until IS NULL;"
    "CREATE TABLE documents (id text PRIMARY KEY, version bigint NOT NULL, body jsonb NOT NULL);"
    "CREATE TABLE history (id text, version bigint, body jsonb NOT NULL, "
    "PRIMARY KEY (id, version));"
    "CREATE FUNCTION process(message bigint, document text, expected bigint, new_body jsonb, "
    "into_queue text, new_payload bytea) RETURNS bigint LANGUAGE plpgsql AS $$ "
    "BEGIN "
    "DELETE FROM messages WHERE id = message AND reserved_until IS NOT NULL; "
    "IF NOT FOUND THEN RAISE serialization_failure; END IF; "
    "WITH updated AS (UPDATE documents SET version = version + 1, body = new_body "
    "WHERE id = document AND version = expected RETURNING version) "
    "INSERT INTO history SELECT id, version, body FROM documents "
    "WHERE id = document AND version = expected AND EXISTS (SELECT FROM updated); "
    "IF NOT FOUND THEN RAISE serialization_failure; END IF; "
    "INSERT INTO messages (queue, payload) VALUES (into_queue, new_payload); "
    "RETURN expected + 1; "
    "END $$";

struct PostgresStatement {
  const char* name;
  const char* text;
};

inline constexpr PostgresStatement kPushOne = {
    "push", "INSERT INTO messages (queue, payload) VALUES ($1, $2)"};
inline constexpr PostgresStatement kPushMany = {
    "push_many", "INSERT INTO messages (queue, payload) SELECT $1, unnest($2::bytea[])"};
// Sent before and after, where a lock is the reservation.
inline constexpr PostgresStatement kBegin = {"begin", "BEGIN"};
inline constexpr PostgresStatement kEnd = {"end", "COMMIT"};
inline constexpr PostgresStatement kLockRows = {
    "lock",
    "SELECT id, payload FROM messages WHERE queue = $1 AND reserved_until IS NULL "
    "AND due <= now() ORDER BY due, id LIMIT $2::bigint FOR UPDATE SKIP LOCKED"};
inline constexpr PostgresStatement kReserveRows = {
    "reserve",
    "UPDATE messages SET tries = tries + 1, reserved_until = now() + interval '30 s' "
    "WHERE id = ANY (ARRAY(SELECT id FROM messages WHERE queue = $1 AND reserved_until IS NULL "
    "AND due <= now() ORDER BY due, id LIMIT $2::bigint FOR UPDATE SKIP LOCKED)) RETURNING id, "
    "payload"};
inline constexpr PostgresStatement kDeleteOne = {"delete",
                                                 "DELETE FROM messages WHERE id = $1::bigint"};
inline constexpr PostgresStatement kDeleteMany = {
    "delete_many", "DELETE FROM messages WHERE id = ANY ($1::bigint[])"};
inline constexpr PostgresStatement kProcess = {"process", "SELECT process($1, $2, $3, $4, $5, $6)"};
inline constexpr PostgresStatement kInsertDocument = {"insert_document",
                                                      "INSERT INTO documents VALUES ($1, 1, $2)"};

inline constexpr std::array<const PostgresStatement*, 10> kQueueStatements = {
    &kPushOne,     &kPushMany,  &kBegin,      &kEnd,     &kLockRows,
    &kReserveRows, &kDeleteOne, &kDeleteMany, &kProcess, &kInsertDocument};

}  // namespace strata::bench
