// What jemalloc reads when the process begins; MALLOC_CONF in the environment goes before it.
//
// background_thread: pages that are free for ten seconds go back to the system also while nothing
// is allocated, as after a burst.
extern "C" {
extern const char* malloc_conf;
const char* malloc_conf = "background_thread:true";
}
