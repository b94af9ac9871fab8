// Package schedule decides which request runs next, on which GPU, and which model makes room for it.
//
// In: arrivals and completions, each with the caller's time in seconds, and a [Cluster] to look at. Out: [Decision]s. The package
// has no clock and no goroutine, and its only randomness comes from given seeds. The same calls give the same decisions, so one
// implementation serves both the simulator and real workers. A request is admitted to a worker, and a worker batches: a free GPU or
// token in the papers is a free batch slot here ([Cluster.Accepts]). Service times exclude cold starts; a cold start is a separate
// cost ([Cluster.Start], [Cost]).
//
// No function here returns an error at run time. [New] refuses wrong parameters.
//
// Sources: MQFQ-Sticky ("MQFQ"), Torpor ("Torpor"), and the thesis on locality-aware load balancing for GPU functions ("thesis").
// Comments cite their sections. If a paper is misprinted, the comment says which reading is taken.
package schedule

import "slices"

// Request is one invocation of function Fn, a model served by workers. The caller chooses ID, and each is unique.
type Request struct {
	ID int
	Fn int
}

// Anywhere is the Peer of a decision that leaves the source of the weights to the caller.
const Anywhere = -1

// Decision admits Request to GPU. If GPU has no worker of the function, one is started. Peer then names the GPU from which to
// copy the weights, or is Anywhere.
type Decision struct {
	Request Request
	GPU     int
	Peer    int
}

// Completion reports a request that has left GPU. Service is its running time in seconds, without waiting and without its cold start.
// Latency is the time in seconds since its arrival, to which its deadline applies. Deadline is the request's own, or 0 for its
// function's.
type Completion struct {
	Request  Request
	GPU      int
	Service  float64
	Latency  float64
	Deadline float64
}

// Policy is a scheduler. After each Arrive, Cancel and Done the caller calls Next until it declines. It carries out each decision
// before the next call, so that the Cluster shows it.
type Policy interface {
	// Arrive queues a request.
	Arrive(now float64, r Request)
	// Cancel removes the request of a client that has left from the queue, and reports whether it was waiting. A request that was
	// decided already runs on and is reported to Done. A request that comes and leaves between two calls of Next changes no
	// decision, except for how soon MQFQ expects the function's next request. Consequences until then remain: turns of round
	// robin, counts of being passed over (LALBO3), deficits (SJF), global virtual time (MQFQ). No function is charged for it:
	// virtual times and Torpor's shares count served requests only.
	Cancel(r Request) bool
	// Next takes one request from the queue, or reports that none can start.
	Next(now float64, c Cluster) (Decision, bool)
	// Done accounts for a finished request.
	Done(now float64, d Completion)
	// Lost accounts for a decided request whose engine has died. Its place is free again. The function is not credited, and its
	// charge stays: it had the GPU until then. If the request has to run elsewhere, it arrives again under a new ID.
	Lost(now float64, r Request, gpu int)
	// Queued returns the number of requests that wait for a decision.
	Queued() int
}

// Rounds is a policy that looks at the GPUs once after each arrival and completion.
type Rounds interface {
	Policy
	// Again starts a new round, because a place became free without another call.
	Again()
}

// Binder is a policy that binds waiting requests to GPUs.
type Binder interface {
	Policy
	// Leave takes a GPU away. Requests that are bound to it are free again, and no later one is bound to it until it is back.
	Leave(gpu int)
	// Return gives a GPU back that was taken away.
	Return(gpu int)
}

// Anticipator is a policy that predicts which functions get requests soon, so that their workers are worth keeping.
type Anticipator interface {
	Policy
	// Active reports whether fn's queue has requests that may run, or has just become empty and expects more. Workers of other
	// functions may be evicted or swapped out.
	Active(now float64, fn int) bool
	// Woken lists the functions whose queues became active since the last call. Their memory is worth prefetching (MQFQ §4.3).
	Woken() []int
}

// Cluster is a policy's view of the machines. GPUs and functions count from 0.
type Cluster interface {
	// GPUs returns the number of GPUs.
	GPUs() int
	// Accepts reports whether gpu can admit one more request of fn now: its worker has a free batch slot, or a worker can be
	// started, evicting idle ones if necessary.
	Accepts(gpu, fn int) bool
	// Holds reports whether gpu has a worker of fn, serving or loading.
	Holds(gpu, fn int) bool
	// InFlight returns the number of requests admitted to gpu and not known to be complete.
	InFlight(gpu int) int
	// Start estimates the seconds until a worker of fn on gpu could serve, from the nearest weights and artifact;
	// 0 if gpu holds fn.
	Start(gpu, fn int) float64
	// Service estimates the running time of a request of fn in seconds.
	Service(fn int) float64
	// FinishTime estimates the seconds until gpu has finished all requests admitted to it.
	FinishTime(gpu int) float64
	// Traffic returns the current traffic on the host link of gpu.
	Traffic(gpu int) Traffic
	// Utilization returns the share of gpu's compute in use, 0 to 1.
	Utilization(gpu int) float64
}

// Traffic classifies the traffic on a GPU's links, from the least to the most disturbing to a neighbour (Torpor §5.2 and its
// controller).
type Traffic int

// The classes of traffic.
const (
	Quiet Traffic = iota
	Peer          // a copy from another GPU
	Light         // a light model from host memory
	Medium
	Heavy
	Cold // a cold start: reads files, then copies
)

// fifo is a queue of requests in arrival order.
type fifo struct {
	items []Request
	head  int
}

func (q *fifo) len() int       { return len(q.items) - q.head }
func (q *fifo) push(r Request) { q.items = append(q.items, r) }
func (q *fifo) front() Request { return q.items[q.head] }

func (q *fifo) pop() Request {
	r := q.items[q.head]
	q.head++
	if q.head > 64 && q.head*2 > len(q.items) {
		q.items = append(q.items[:0], q.items[q.head:]...)
		q.head = 0
	}
	return r
}

// cancel removes the request with this ID and returns its position from the front, or -1 if it is not in the queue.
func (q *fifo) cancel(id int) int {
	i := slices.IndexFunc(q.items[q.head:], func(r Request) bool { return r.ID == id })
	if i >= 0 {
		q.remove(i)
	}
	return i
}

// remove removes the i-th request from the front.
func (q *fifo) remove(i int) Request {
	if i == 0 {
		return q.pop()
	}
	r := q.items[q.head+i]
	q.items = append(q.items[:q.head+i], q.items[q.head+i+1:]...)
	return r
}

func (q *fifo) at(i int) Request { return q.items[q.head+i] }
