// What jemalloc reads when the process begins; MALLOC_CONF in the environment goes before it.
//
// Pages that have been free for two seconds go back to the system, by a thread of jemalloc's own
// and so also while nothing is allocated: after a burst others need the memory.
extern "C" {
extern const char* malloc_conf;
const char* malloc_conf = "background_thread:true,dirty_decay_ms:2000";
}
