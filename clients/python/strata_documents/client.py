"""The client, synchronous. generate.py makes aio.py, the client for asyncio, from this file: it awaits each self._run."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Callable, Dict, Generic, Iterable, Iterator, List, Optional, Tuple, Type, TypeVar, Union, overload

from . import messages, operations, types
from .core import Settings, new_request_id
from .driver import Connection, Tls
from .errors import StrataError
from .operations import REQUESTS, BatchGetAnswer, Change, Written
from .reasons import CollectionNotFound

T = TypeVar("T")
Content = Dict[str, Any]
When = datetime
Span = Union[timedelta, float]
Lease = Union[types.LeaseToken, types.Lease]


def _given(members: Dict[str, Any], *left_out: str) -> Dict[str, Any]:
    """The arguments that are set; if_exists=False counts as set."""
    return {name: value for name, value in members.items()
            if value is not None and value != () and (value is not False or name == "if_exists") and name != "self" and name not in left_out}


class _Part:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._settings = connection.settings
        self._run = connection.run
        self._iterate = connection.iterate

    def _call(self, name: str, members: Dict[str, Any], field: Optional[str] = None, wait: Optional[Span] = None) -> Any:
        """One call with these arguments; its answer, or that field of it. `wait`: how long it may wait at the server."""
        kind = REQUESTS[name]
        request = kind.make(self._settings, members)
        answer = self._connection.call(kind.method, request, operations.waiting(self._settings, wait))
        return operations.value(answer, field)


class Client(_Part):
    """A connection to one server. May be used by several threads at once.

    `target` is "host:port", "host" (port 50051) or "[v6]:port". `tls`: None, True (the system's authorities) or Tls(files). A token goes
    without TLS to this machine only. `actor` is that of each write that names none. `timeout` bounds one attempt, `retry_for` the time
    from a call's first attempt to the begin of its last one, `connect_timeout` that time as long as no connection ever stood, and how long
    connecting may take; all in seconds.
    """

    def __init__(self, target: str = "127.0.0.1:50051", *, tls: Union[None, bool, Tls] = None, token: Optional[str] = None,
                 actor: Optional[str] = None, timeout: float = 30.0, retry_for: float = 30.0, connect_timeout: float = 3.0) -> None:
        super().__init__(Connection(target, tls, token, Settings(timeout, retry_for, actor, connect_timeout, target)))
        self._target = target
        self.collections = Collections(self._connection)
        self.enrollments = Enrollments(self._connection)
        self.subscriptions = Subscriptions(self._connection)
        self.leases = Leases(self._connection)
        self.queues = Queues(self._connection)
        self.transactions = Transactions(self._connection)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._target!r})"

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Calls that are under way, and later ones, end with a StrataError of code CANCELLED."""
        self._connection.close()

    @overload
    def collection(self, name: str) -> "Collection[Content]": ...

    @overload
    def collection(self, name: str, *, of: Type[T]) -> "Collection[T]": ...

    def collection(self, name: str, *, of: Any = None) -> "Collection[Any]":
        """The documents of a collection, which need not exist: the first write makes it. `of`: the dataclass of its contents."""
        return Collection(self._connection, name, of)

    def transaction(self) -> "Transaction":
        return Transaction(self._connection)

    def watch(self, *, collections: Iterable[str] = (), id_prefix: Optional[str] = None, kinds: Iterable[str] = (),
              filter: Optional[Content] = None, include_content: bool = False, include_before: bool = False, include_changes: bool = False,
              bookmark_interval: Optional[Span] = None, after_position: Optional[int] = None, start_time: Optional[When] = None,
              snapshot: Union[None, Content, types.Snapshot] = None) -> "Watch":
        """Follows every change, over broken connections too. With a `snapshot` ({}: from the first document) gives documents first.

        To go on after a restart, save the watch's `resume_position`, not `event.position`.
        """
        return Watch(self._connection, _given(locals()))

    def feed(self) -> types.GetFeedResponse:
        return self._call("GetFeed", {})

    def audit(self, *, collection: Optional[str] = None, id: Optional[str] = None, actor: Optional[str] = None, kinds: Iterable[str] = (),
              start_time: Optional[When] = None, end_time: Optional[When] = None, request_id: Optional[str] = None,
              transaction_id: Optional[str] = None, include_changes: bool = False, newest_first: bool = False,
              page_size: Optional[int] = None) -> Iterator[types.AuditEntry]:
        """The ledger: changes with actor, time and reason."""
        return self._iterate(operations.pages(self._settings, "Audit", "entries", locals()))

    def server_info(self) -> types.GetServerInfoResponse:
        return self._call("GetServerInfo", {})


class Collection(_Part, Generic[T]):
    """The documents of one collection. The protos explain the arguments in full, at the fields of the same name."""

    def __init__(self, connection: Connection, name: str, of: Any) -> None:
        super().__init__(connection)
        if not isinstance(name, str):
            raise TypeError(f"the name of a collection is a str, not {type(name).__name__}")
        try:
            name.encode("utf-8")
        except UnicodeEncodeError as error:
            raise messages.unfit("collection", name, error) from None
        self.name = name
        self._of = of
        self._part = operations.collection_part(name)

    def __repr__(self) -> str:
        return f"Collection({self.name!r})"

    def _write(self, name: str, members: Dict[str, Any]) -> Any:
        kind = REQUESTS[name]
        encoded = kind.encode(self._settings, self._part, members)
        if encoded is not None:
            answer = self._connection.call(kind.method, encoded[0], None, encoded[1])
        else:
            answer = self._connection.call(kind.method, kind.make(self._settings, members, collection=self.name))
        return operations.written(self._of, answer, name)

    def _write_to(self, name: str, members: Dict[str, Any]) -> Any:
        """The same of a document that has to be there."""
        try:
            return self._write(name, members)
        except CollectionNotFound as error:
            raise operations.no_document(error, self.name, members["id"]) from None

    def create(self, id: Optional[str], content: T, *, actor: Optional[str] = None, on_behalf_of: Optional[str] = None,
               reason: Optional[str] = None, labels: Optional[Dict[str, str]] = None, request_id: Optional[str] = None,
               validate_only: bool = False, omit_content: bool = False, lease: Optional[Lease] = None) -> Written[T]:
        """Raises DocumentExists. Without an id the server makes one, `document.id` of the answer."""
        return self._write("Create", locals())

    def get(self, id: str, *, version: Optional[int] = None, at_time: Optional[When] = None, at_position: Optional[int] = None,
            fields: Iterable[str] = ()) -> Optional[types.Document[T]]:
        """None: it was never written, or is deleted. Asked for at a version, time or position, what is not there is an error."""
        given = locals()
        kind = REQUESTS["Get"]
        encoded = kind.encode(self._settings, self._part, given)
        request = encoded[0] if encoded is not None else kind.make(self._settings, given, collection=self.name)
        try:
            answer = self._connection.call(kind.method, request)
        except operations.MISSING:
            if version is not None or at_time is not None or at_position is not None:
                raise
            return None
        return operations.document(self._of, answer.document)

    def batch_get(self, ids: Iterable[str], *, fields: Iterable[str] = ()) -> BatchGetAnswer[T]:
        return self._run(operations.batch_get(self._settings, self._of, self.name, locals()))

    def update(self, id: str, *, replace: Optional[T] = None, merge: Optional[Content] = None, operations: Iterable[Change] = (),
               if_version: Optional[int] = None, if_exists: Optional[bool] = None, if_matches: Optional[Content] = None,
               newer: Optional[Tuple[str, int]] = None, allow_missing: bool = False, keep_unchanged: bool = False,
               max_attempts: Optional[int] = None, actor: Optional[str] = None, on_behalf_of: Optional[str] = None,
               reason: Optional[str] = None, labels: Optional[Dict[str, str]] = None, request_id: Optional[str] = None,
               validate_only: bool = False, omit_content: bool = False, lease: Optional[Lease] = None) -> Written[T]:
        if replace is None and merge is None and operations == ():
            raise ValueError("an update needs replace, merge or operations")
        return self._write_to("Update", locals())

    def modify(self, id: str, fn: Callable[[Optional[T]], Optional[T]], reason: Optional[str] = None, *, actor: Optional[str] = None,
               on_behalf_of: Optional[str] = None, labels: Optional[Dict[str, str]] = None,
               lease: Optional[Lease] = None) -> Written[T]:
        """Reads, calls `fn` with the content (None: missing), and writes its result. If another writer was faster, it begins again.

        With None returned nothing is written; TypeError if the content was changed in place then. `fn` may be called several times.
        """
        return self._run(operations.modify(self._settings, self._of, self.name, id, fn, _given(locals(), "id", "fn")))

    def delete(self, id: str, *, if_version: Optional[int] = None, if_exists: Optional[bool] = None, if_matches: Optional[Content] = None,
               newer: Optional[Tuple[str, int]] = None, max_attempts: Optional[int] = None, actor: Optional[str] = None,
               on_behalf_of: Optional[str] = None, reason: Optional[str] = None, labels: Optional[Dict[str, str]] = None,
               request_id: Optional[str] = None, validate_only: bool = False, lease: Optional[Lease] = None) -> Written[T]:
        return self._write_to("Delete", locals())

    def restore(self, id: str, version: int, *, if_version: Optional[int] = None, if_exists: Optional[bool] = None,
                if_matches: Optional[Content] = None, keep_unchanged: bool = False, max_attempts: Optional[int] = None,
                actor: Optional[str] = None, on_behalf_of: Optional[str] = None, reason: Optional[str] = None,
                labels: Optional[Dict[str, str]] = None, request_id: Optional[str] = None, validate_only: bool = False,
                omit_content: bool = False, lease: Optional[Lease] = None) -> Written[T]:
        """Makes the content of `version` the newest."""
        return self._write_to("Restore", locals())

    def history(self, id: str, *, oldest_first: bool = False, from_version: Optional[int] = None, from_time: Optional[When] = None,
                to_version: Optional[int] = None, to_time: Optional[When] = None, include_content: bool = False,
                include_changes: bool = False, filter: Optional[Content] = None,
                page_size: Optional[int] = None) -> Iterator[types.Version[T]]:
        return self._iterate(operations.versions(self._settings, self._of, self.name, locals()))

    def diff(self, id: str, from_version: int, to_version: int = 0, *, page_size: Optional[int] = None) -> Iterator[types.FieldChange]:
        """From one version to another, 0: to the current one."""
        return self._iterate(operations.pages(self._settings, "Diff", "changes", locals(), collection=self.name))

    def audit(self, *, id: Optional[str] = None, actor: Optional[str] = None, kinds: Iterable[str] = (), start_time: Optional[When] = None,
              end_time: Optional[When] = None, request_id: Optional[str] = None, transaction_id: Optional[str] = None,
              include_changes: bool = False, newest_first: bool = False, page_size: Optional[int] = None) -> Iterator[types.AuditEntry]:
        return self._iterate(operations.pages(self._settings, "Audit", "entries", locals(), collection=self.name))

    def list(self, *, filter: Optional[Content] = None, id_prefix: Optional[str] = None, show_deleted: bool = False,
             fields: Iterable[str] = (), at_time: Optional[When] = None, at_position: Optional[int] = None,
             page_size: Optional[int] = None) -> Iterator[types.Document[T]]:
        return self._iterate(operations.documents(self._settings, self._of, self.name, locals()))

    def watch(self, *, id_prefix: Optional[str] = None, kinds: Iterable[str] = (), filter: Optional[Content] = None,
              include_content: bool = False, include_before: bool = False, include_changes: bool = False,
              bookmark_interval: Optional[Span] = None, after_position: Optional[int] = None, start_time: Optional[When] = None,
              snapshot: Union[None, Content, types.Snapshot] = None) -> "Watch":
        """Follows the changes of this collection: see Client.watch."""
        return Watch(self._connection, dict(_given(locals()), collections=[self.name]))


class Collections(_Part):
    def create(self, name: str, *, strategy: Optional[str] = None,
               options: Union[None, Content, types.CollectionOptions] = None) -> types.Collection:
        """`strategy` as in the protos, or short: "deltas"."""
        return self._call("CreateCollection", locals(), "collection")

    def get(self, name: str) -> types.Collection:
        return self._call("GetCollection", locals(), "collection")

    def list(self, *, page_size: Optional[int] = None) -> Iterator[types.Collection]:
        return self._iterate(operations.pages(self._settings, "ListCollections", "collections", locals()))

    def delete(self, name: str, *, force: bool = False, request_id: Optional[str] = None, incarnation: Optional[int] = None) -> bool:
        """Whether an earlier call with this request id did it."""
        return self._call("DeleteCollection", locals(), "replayed")

    def ledger_head(self) -> types.LedgerHead:
        return self._call("GetLedgerHead", {}, "head")

    def verify(self, collection: Optional[str] = None, *, id: Optional[str] = None, repair: bool = False,
               expect_head: Optional[types.LedgerHead] = None) -> Iterator[types.VerifyResponse]:
        """Proves that the stored data is whole, and raises ChainBroken at the end if it is not. Without a collection: the ledger alone."""
        return self._iterate(operations.verify(self._settings, _given(locals())))


class Enrollments(_Part):
    def enroll(self, student_id: str, class_name: str, sequence_number: int, *, collection: Optional[str] = None,
               set: Optional[str] = None, actor: Optional[str] = None, on_behalf_of: Optional[str] = None, reason: Optional[str] = None,
               labels: Optional[Dict[str, str]] = None) -> types.EnrollResponse:
        return self._call("Enroll", locals())

    def unenroll(self, student_id: str, class_name: str, sequence_number: int, *, collection: Optional[str] = None,
                 set: Optional[str] = None, actor: Optional[str] = None, on_behalf_of: Optional[str] = None, reason: Optional[str] = None,
                 labels: Optional[Dict[str, str]] = None) -> types.UnenrollResponse:
        return self._call("Unenroll", locals())

    def get(self, student_id: str, *, collection: Optional[str] = None, set: Optional[str] = None,
            include_tombstones: bool = False) -> types.GetEnrollmentsResponse:
        members = locals()
        try:
            return self._call("GetEnrollments", members)
        except CollectionNotFound:
            return types.GetEnrollmentsResponse()

    def roster(self, class_name: str, *, collection: Optional[str] = None, set: Optional[str] = None, at_time: Optional[When] = None,
               page_size: Optional[int] = None) -> Iterator[types.RosterEntry]:
        return self._iterate(operations.pages(self._settings, "ListRoster", "students", locals()))

    def apply(self, each: Iterable[Union[Content, types.ApplyRequest]]) -> Iterator[types.ApplyResponse]:
        """Sends messages and gives their results, in their order; at most 1,000 are on their way."""
        return self._iterate(operations.apply(self._settings, self._connection.iterator(each)))

    def purge_tombstones(self, through_sequence_number: int, *, collection: Optional[str] = None, student_id: Optional[str] = None,
                         set: Optional[str] = None, queues: Iterable[str] = (), actor: Optional[str] = None,
                         on_behalf_of: Optional[str] = None, reason: Optional[str] = None,
                         labels: Optional[Dict[str, str]] = None) -> types.PurgeTombstonesResponse:
        return self._run(operations.purge_tombstones(self._settings, _given(locals())))


class Subscriptions(_Part):
    def create(self, name: str, *, collections: Iterable[str] = (), id_prefix: Optional[str] = None, kinds: Iterable[str] = (),
               filter: Optional[Content] = None, after_position: Optional[int] = None, start_time: Optional[When] = None,
               partitions: Optional[int] = None, max_attempts: Optional[int] = None, backoff_first: Optional[Span] = None,
               backoff_max: Optional[Span] = None, ack_timeout: Optional[Span] = None,
               lease_ttl: Optional[Span] = None) -> types.Subscription:
        return self._call("CreateSubscription", locals(), "subscription")

    def get(self, name: str) -> types.GetSubscriptionResponse:
        return self._call("GetSubscription", locals())

    def list(self, *, prefix: Optional[str] = None, page_size: Optional[int] = None) -> Iterator[types.Subscription]:
        return self._iterate(operations.pages(self._settings, "ListSubscriptions", "subscriptions", locals()))

    def delete(self, name: str) -> None:
        self._call("DeleteSubscription", locals())

    def consume(self, name: str, consumer: str, *, window: Optional[int] = None, include_content: bool = False,
                include_before: bool = False, include_changes: bool = False) -> Consumer:
        """Takes the subscription's events; iterate it, and acknowledge each. `consumer`: its name, shown to operators."""
        return Consumer(self._connection, dict(_given(locals(), "name"), subscription=name))

    def parked(self, subscription: str, *, page_size: Optional[int] = None) -> Iterator[types.ParkedDocument]:
        return self._iterate(operations.pages(self._settings, "ListParked", "documents", locals()))

    def replay_parked(self, subscription: str, *, collection: Optional[str] = None, id: Optional[str] = None) -> int:
        """The number of documents."""
        return self._call("ReplayParked", locals(), "documents")

    def discard_parked(self, subscription: str, *, collection: Optional[str] = None, id: Optional[str] = None) -> int:
        return self._call("DiscardParked", locals(), "documents")


class Leases(_Part):
    def acquire(self, name: str, holder: str, *, ttl: Optional[Span] = None, metadata: Optional[Dict[str, str]] = None,
                wait: Optional[Span] = None) -> types.Lease:
        """Raises LeaseHeld if another holder has it, after `wait`."""
        return self._call("Acquire", locals(), "lease", wait)

    def renew(self, name: str, token: int, *, ttl: Optional[Span] = None, position: Optional[int] = None) -> types.Lease:
        return self._call("Renew", locals(), "lease")

    def release(self, name: str, token: int) -> types.Lease:
        return self._call("Release", locals(), "lease")

    def get(self, name: str) -> types.Lease:
        return self._call("GetLease", locals(), "lease")

    def list(self, *, prefix: Optional[str] = None, page_size: Optional[int] = None) -> Iterator[types.Lease]:
        return self._iterate(operations.pages(self._settings, "ListLeases", "leases", locals()))

    def hold(self, name: str, holder: str, *, ttl: Optional[Span] = None, metadata: Optional[Dict[str, str]] = None,
             wait: Optional[Span] = None, on_lost: Optional[Callable[[StrataError], Any]] = None) -> Hold:
        """Acquires at the begin of a `with`, renews three times a ttl, and releases at its end.

        Raises LeaseLost at the end if it was lost, unless another exception is on its way. With `on_lost` it calls that as soon as the lease
        is lost (synchronously: in another thread), with the error, and raises nothing.
        """
        return Hold(self._connection, _given(locals(), "on_lost"), on_lost)


class Queues(_Part):
    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self.schedules = Schedules(connection)

    def create(self, name: str, settings: Union[None, Content, types.QueueSettings] = None) -> types.Queue:
        return self._call("CreateQueue", locals(), "queue")

    def get(self, name: str) -> types.Queue:
        return self._call("GetQueue", locals(), "queue")

    def list(self, *, page_size: Optional[int] = None) -> Iterator[types.Queue]:
        return self._iterate(operations.pages(self._settings, "ListQueues", "queues", locals()))

    def update(self, name: str, settings: Union[Content, types.QueueSettings], update_mask: Iterable[str]) -> types.Queue:
        """Sets the members of `settings` that `update_mask` names; a member that is not there returns to the server's default."""
        return self._call("UpdateQueue", locals(), "queue")

    def delete(self, name: str, *, force: bool = False) -> None:
        self._call("DeleteQueue", locals())

    def push(self, queue: str, payload: Optional[Content] = None, *, headers: Optional[Dict[str, str]] = None,
             priority: Optional[int] = None, ordering_key: Optional[str] = None, sequence_number: Optional[int] = None,
             delay: Optional[Span] = None, deliver_time: Optional[When] = None, expire_time: Optional[When] = None,
             request_id: Optional[str] = None) -> types.PushResult:
        return self._run(operations.push_one(self._settings, queue, _given(locals(), "queue")))

    def push_all(self, queue: str, each: Iterable[Union[Content, types.PushedMessage]]) -> List[types.PushResult]:
        return self._run(operations.push(self._settings, queue, each))

    def pop(self, queue: str, *, count: Optional[int] = None, wait: Optional[Span] = None) -> List[types.QueueMessage]:
        return self._call("Pop", locals(), "messages", wait)

    def reserve(self, queue: str, *, count: Optional[int] = None, timeout: Optional[Span] = None,
                wait: Optional[Span] = None) -> List[types.QueueMessage]:
        return self._call("Reserve", locals(), "messages", wait)

    def acknowledge(self, tokens: Iterable[str]) -> List[types.TokenResult]:
        return self._call("Acknowledge", locals(), "results")

    def rollback(self, tokens: Iterable[str], *, delay: Optional[Span] = None, not_counted: bool = False, dead: bool = False,
                 reason: Optional[str] = None) -> List[types.TokenResult]:
        return self._call("Rollback", locals(), "results")

    def extend(self, tokens: Iterable[str], *, timeout: Optional[Span] = None) -> List[types.TokenResult]:
        return self._call("Extend", locals(), "results")

    def move(self, token: str, queue: str, *, payload: Optional[Content] = None, headers: Optional[Dict[str, str]] = None,
             delay: Optional[Span] = None) -> types.QueueMessage:
        return self._call("Move", locals(), "message")

    def receive(self, queue: str, *, credits: int = 100, timeout: Optional[Span] = None,
                refused: Optional[Callable[[types.QueueMessage, StrataError], Any]] = None) -> Receiver:
        """Takes the queue's messages as they come; iterate it, and acknowledge each. At most `credits` are out.

        `refused` is called with the message and the error when the server finally refused a request about it, while the receiver is iterated
        or closed. Its exceptions are raised there. Without it such errors are logged as warnings of "strata_documents".
        """
        return Receiver(self._connection, _given(locals(), "refused"), refused)

    def message(self, queue: str, message_id: str) -> types.QueueMessage:
        return self._call("GetMessage", locals(), "message")

    def messages(self, queue: str, *, state: Optional[str] = None, page_size: Optional[int] = None) -> Iterator[types.QueueMessage]:
        return self._iterate(operations.pages(self._settings, "ListMessages", "messages", locals()))

    def replay(self, queue: str, *, message_ids: Iterable[str] = (), states: Iterable[str] = (), start_time: Optional[When] = None,
               end_time: Optional[When] = None, target_queue: Optional[str] = None) -> types.ReplayResponse:
        return self._call("Replay", locals())

    def purge(self, queue: str, *, message_ids: Iterable[str] = (), states: Iterable[str] = ()) -> types.PurgeMessagesResponse:
        return self._call("PurgeMessages", locals())


class Schedules(_Part):
    def create(self, queue: str, name: str, *, cron: Optional[str] = None, every: Optional[Span] = None,
               message: Union[None, Content, types.PushedMessage] = None) -> types.Schedule:
        return self._call("CreateSchedule", locals(), "schedule")

    def list(self, queue: str, *, page_size: Optional[int] = None) -> Iterator[types.Schedule]:
        return self._iterate(operations.pages(self._settings, "ListSchedules", "schedules", locals()))

    def delete(self, queue: str, name: str) -> None:
        self._call("DeleteSchedule", locals())


class Transaction(_Part):
    """Changes that take effect together or not at all: put together write by write, then committed. Each takes its write's arguments."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._request = messages.METHODS["Commit"].request()
        # Drawn once, so that a commit that is called again after an error takes effect once.
        self._request_id = new_request_id()

    def _add(self, kind: str, members: Dict[str, Any]) -> "Transaction":
        self._request.writes.append(operations.part(kind, members))
        return self

    def create(self, collection: str, id: str, content: Any, **options: Any) -> "Transaction":
        return self._add("create", dict(options, collection=collection, id=id, content=content))

    def update(self, collection: str, id: str, **options: Any) -> "Transaction":
        return self._add("update", dict(options, collection=collection, id=id))

    def delete(self, collection: str, id: str, **options: Any) -> "Transaction":
        return self._add("delete", dict(options, collection=collection, id=id))

    def restore(self, collection: str, id: str, version: int, **options: Any) -> "Transaction":
        return self._add("restore", dict(options, collection=collection, id=id, version=version))

    def check(self, collection: str, id: str, version: int) -> "Transaction":
        """The document must still be at this version when the transaction takes effect; 0: never written."""
        self._request.reads.add(collection=collection, id=id, version=version)
        return self

    def acknowledge(self, token: str) -> "Transaction":
        self._request.acknowledge.append(token)
        return self

    def push(self, queue: str, payload: Optional[Content] = None, **options: Any) -> "Transaction":
        message = operations.pushed(dict(options, payload=payload))
        # The transaction's id makes its repetition safe.
        message.request_id = options.get("request_id") or ""
        self._request.pushes.add(queue=queue, message=message)
        return self

    def commit(self, *, mode: Optional[str] = None, actor: Optional[str] = None, on_behalf_of: Optional[str] = None,
               reason: Optional[str] = None, labels: Optional[Dict[str, str]] = None, request_id: Optional[str] = None,
               max_attempts: Optional[int] = None, validate_only: bool = False, omit_content: bool = False,
               lease: Optional[Lease] = None) -> types.CommitResponse:
        request = operations.commit(self._settings, self._request, self._request_id, locals())
        answer = self._connection.call(messages.METHODS["Commit"], request)
        return messages.plain(answer)


class Watch(_Part, Iterator[Union[types.Event, types.Document[Any]]]):
    """The changes as they happen: iterate it. Nothing comes twice and nothing is missed, as long as no pause is longer than retry_for."""

    def __init__(self, connection: Connection, members: Dict[str, Any]) -> None:
        super().__init__(connection)
        self._watching = operations.Watching(self._settings, members)
        self._items = self._iterate(self._watching.steps())

    @property
    def resume_position(self) -> Optional[int]:
        """Save this, not `event.position`, once an item is done with, and begin the next watch with it as `after_position`.

        All items of commits up to this one were given. A commit of several documents has several events with one position: a watch that
        begins after it misses those that were not given yet. It moves on without events too, where a filter lets none through. None: nothing
        is known yet, or a copy is under way.
        """
        return self._watching.resume_position

    @property
    def snapshot(self) -> Optional[types.Snapshot]:
        """Of a copy: its progress, with which another watch goes on as long as there is no `resume_position`."""
        return self._watching.snapshot

    @property
    def last_position(self) -> Optional[int]:
        """The last commit of the store when the server said so last."""
        return self._watching.last_position

    @property
    def caught_up(self) -> bool:
        """Whether all commits up to `last_position` were given."""
        reached, last = self.resume_position, self.last_position
        return reached is not None and last is not None and reached >= last

    def __iter__(self) -> "Watch":
        return self

    def __next__(self) -> Union[types.Event, types.Document[Any]]:
        return self._items.__next__()

    def __enter__(self) -> "Watch":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Ends the iteration, another thread's or task's too."""
        self._run(self._watching.close())


class Consumer(_Part):
    """A subscription's events, over broken connections too. Unacknowledged events come again, so each comes at least once."""

    def __init__(self, connection: Connection, members: Dict[str, Any]) -> None:
        super().__init__(connection)
        self._session = operations.Consuming(self._settings, members)

    def __iter__(self) -> Iterator[operations.Delivery]:
        return self._iterate(self._session.steps())

    def __enter__(self) -> "Consumer":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def ack(self, delivery: operations.Delivery) -> None:
        """Acknowledges all events of its partition up to this one; of a replay, this event alone.

        `ack` and `nack` ignore a delivery that no longer counts: another consumer has the partition, or an event before it failed.
        It comes again.
        """
        self._session.answer("ack", delivery)

    def nack(self, delivery: operations.Delivery, reason: str, *, park: bool = False) -> None:
        """The event failed and comes again later; with `park`, only after a replay. All before it must have been acknowledged."""
        self._session.answer("nack", delivery, reason=reason, park=park)

    def close(self) -> None:
        """Gives the partitions back, after all acknowledgements are stored."""
        self._run(self._session.close())


class Receiver(_Part):
    """A queue's messages as they come, over broken connections too."""

    def __init__(self, connection: Connection, members: Dict[str, Any],
                 refused: Optional[Callable[[types.QueueMessage, StrataError], Any]]) -> None:
        super().__init__(connection)
        self._session = operations.Receiving(self._settings, members, refused)

    def __iter__(self) -> Iterator[types.QueueMessage]:
        return self._iterate(self._session.steps())

    def __enter__(self) -> "Receiver":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def acknowledge(self, message: types.QueueMessage) -> None:
        """Finishes the message. Repeated over a new connection and, within retry_for, after a refusal for a repeatable reason.
        Requests about one message are sent one after the other."""
        self._session.answer("acknowledge", message)

    def rollback(self, message: types.QueueMessage, *, delay: Optional[Span] = None, not_counted: bool = False, dead: bool = False,
                 reason: Optional[str] = None) -> None:
        self._session.answer("rollback", message, delay=delay, not_counted=not_counted, dead=dead, reason=reason)

    def extend(self, message: types.QueueMessage, *, timeout: Optional[Span] = None) -> None:
        self._session.answer("extend", message, timeout=timeout)

    def close(self) -> None:
        """Messages that are still out go to other consumers at once, and the attempt is not counted."""
        self._run(self._session.close())


class Hold(_Part):
    """A lease for the time of a `with`."""

    def __init__(self, connection: Connection, members: Dict[str, Any], on_lost: Optional[Callable[[StrataError], Any]]) -> None:
        super().__init__(connection)
        self._held = operations.Held(self._settings, members, on_lost)

    @property
    def lease(self) -> types.Lease:
        """As it was renewed last."""
        return self._held.lease

    @property
    def lost(self) -> Optional[StrataError]:
        """The error that ended it: another holder has it, or it could not be renewed in time. None: it is held."""
        return self._held.lost

    @property
    def token(self) -> types.LeaseToken:
        """For the writes that only the holder may make."""
        return types.LeaseToken(name=self.lease.name, token=self.lease.token)

    def __enter__(self) -> "Hold":
        self._run(self._held.acquire())
        self._renewal = self._connection.background(self._held.renewing())
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        self._run(self._renewal.stop())
        self._run(self._held.leave(kind is not None))


class Transactions(_Part):
    def read(self, documents: Iterable[Tuple[str, str]]) -> types.ReadResponse:
        """Documents, each a collection and an id, as of one moment."""
        named = [{"collection": collection, "id": id} for collection, id in documents]
        return self._call("Read", {"documents": named})

    def get(self, id: str) -> types.Transaction:
        return self._call("GetTransaction", locals(), "transaction")

    def list(self, *, status: Optional[str] = None, page_size: Optional[int] = None) -> Iterator[types.Transaction]:
        return self._iterate(operations.pages(self._settings, "ListTransactions", "transactions", locals()))

    def cancel(self, id: str, *, actor: Optional[str] = None, on_behalf_of: Optional[str] = None, reason: Optional[str] = None,
               labels: Optional[Dict[str, str]] = None) -> types.Transaction:
        return self._call("CancelTransaction", locals(), "transaction")

    def resume(self, id: str) -> types.Transaction:
        return self._call("ResumeTransaction", locals(), "transaction")
