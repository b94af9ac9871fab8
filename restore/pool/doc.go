// Package pool keeps processes that have imported an engine's Python modules, and hands each to one start.
//
// In: a file that lists the engines ([Load]), and requests for a process on a Unix socket. Out: a process that is equal to a child of the caller, or
// the differences that forbid it. Fails: the file ([yamlfile.Error]), the socket, imports (the pool logs it and tries again). A request never makes a
// start fail: if the pool cannot serve it, the caller starts cold ([Cold]).
//
// # Processes
//
// Each process has a guard of package interpose as its parent. The holder of the guard's control owns the process, and the process ends with its
// owner. The pool owns waiting processes. It hands the control on with the process, and has no part in the process from then on. A pool that ends, or
// is killed, ends only its waiting processes.
//
// # Protocol
//
// A message is a length (4 bytes, big endian), a JSON object of that length, and descriptors that come with its first byte. The socket lies in a folder
// of mode 0700, and the pool answers its own user only. Texts that need not be UTF-8 (arguments, variables) are base64.
//
//	caller → pool     {"protocol": 1, "ask": "start", "argv", "executable", "environment", "descriptors": [0, 1, 2, ...], "like", "spawned", "arguments"}
//	                  with the working folder, then the descriptors in the order of their numbers
//	pool → process    {"argv", "environment", "umask", "limits", "mask", "ignored", ...} with the same descriptors
//	process → pool    {"applied": true}, or {"failed": "..."}
//	pool → caller     {"pid"} with the guard's control, the guard's report and the process's socket; or {"differences": [...]}, or {"error"}
//	caller → process  the byte G: only now does the program run
//
// "like" is a process of the caller's whose properties count, by default the caller's own. {"ask": "status"} is answered with a [Status].
package pool
