package main

/*
#include <pthread.h>
#include <stdatomic.h>

static atomic_int forked;
static void in_child(void) { atomic_store(&forked, 1); }
static void watch_forks(void) { pthread_atfork(0, 0, in_child); }
static int has_forked(void) { return atomic_load(&forked); }
*/
import "C"

import "sync"

var watchForks = sync.OnceFunc(func() { C.watch_forks() })

// inForkedChild reports whether this process was forked after the session was opened. Neither the Go runtime nor a CUDA
// context works there; reading one flag does.
func inForkedChild() bool { return C.has_forked() != 0 }
