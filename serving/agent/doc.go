// Package agent owns the engines of one machine: it starts them, puts them to sleep, wakes and stops them, as decisions and the
// memory of GPUs and host demand.
//
// In: models with the share of a GPU that each takes, GPUs, and a way to make engines; then decisions ([Agent.Admit]). Out: the
// addresses of engines that answer ([Agent.Acquire]), and the view of the machine that policies look at (schedule.Cluster), made of
// measurements. An engine is one process on one GPU ([Process]) or anything else that is an [Engine].
//
// Fails: an engine that does not start, dies, or does not answer ([EngineError]). Then only the requests that were admitted to it
// fail.
package agent
