// Committing on threads that have other work: what an engine offers beside the port.
#pragma once

namespace strata::store {

// An engine that commits on a thread of its own makes each commit pay a hand-over to that thread
// and back. A thread that has other work, such as an event loop, saves it by committing between its
// own: it joins, and from then on calls CommitOneGroup soon whenever WorkWaits, until it leaves.
// What such a thread commits, it must not wait for: nobody else may be there to commit it.
//
// Thread-safe; several threads may have joined, and any other may commit beside them.
class CooperativeCommitter {
 public:
  // This thread commits from now on.
  virtual void Join() = 0;
  // It does no more, and what still waits is the engine's again. REQUIRES: this thread has joined.
  virtual void Leave() = 0;
  // Whether batches wait that nobody works on, and committing them here and now is worth it: it is
  // not while the disk is so slow that the thread's other work would suffer. Cheap: to be asked
  // between any two pieces of other work.
  virtual bool WorkWaits() const = 0;
  // Commits one group of what waits, if something does, and calls back, all on this thread.
  // REQUIRES: this thread has joined.
  virtual void CommitOneGroup() = 0;

 protected:
  ~CooperativeCommitter() = default;  // belongs to its store
};

}  // namespace strata::store
