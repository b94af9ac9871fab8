// Package restore is Medusa's side of an engine's start, in the engine's own process. restore/rebuild makes the executable graphs,
// restore/check proves them.
//
// In: an artifact (graphir.Spec, KV profile, identity), the maps that the interposer keeps of this process
// (interpose/preload/medusa.h) and the live device. Out: executable graphs, and, if verification asks for them,
// digests of the memory that each graph wrote. A failure before the first restored launch ends in a *Fallback: the engine
// then starts natively in the same process. If the process is to end, as after a sticky device error, a call returns an *Exit, which the
// engine follows: the package itself ends no process.
//
// An engine uses one Session in the order of its start:
//
//	s, err := restore.FromEnv(restore.Hooks{End: os.Exit}) // before anything is allocated
//	s.Identify(factors)                             // once the context exists and the model's configuration is read
//	bytes, given := s.KVBytes()                     // instead of a profile forward
//	for _, batch := range s.Triggers() {            // while the weights are copied
//		s.Trigger(func() error { return firstLayer(batch) }) // and again before Ready, in a native start that checks
//	}
//	graphs, err := s.Graphs()                       // instead of warm-up and capture; *Fallback: capture natively
//	s.Ready(selfTest)                               // after the mark "ready"
//	s.Close()
//
// All calls are made on one OS thread (runtime.LockOSThread) whose current context is the engine's. In a process without Medusa, a
// Session has no cost: Run is None, and Identify, Trigger and Ready only do the work that any engine would do without it.
package restore
