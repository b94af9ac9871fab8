// Package schedule decides which request runs next, on which GPU, and which model makes room for it.
//
// In come arrivals and completions, each with the caller's time in seconds, and a [Cluster] to look at. Out come
// [Decision]s. The package has no clock, no goroutine and no source of randomness but seeds it is given: the same calls give
// the same decisions, so one implementation serves the simulator and real workers. A request is admitted to a worker, and
// a worker batches: what the papers call a free GPU or token is here a free batch slot ([Cluster.Accepts]). Service times
// exclude cold starts; a cold start is a cost of its own ([Cluster.Start], [Cost]).
//
// Nothing here returns an error at run time. Wrong parameters are found by [New].
//
// Sources: MQFQ-Sticky ("MQFQ"), Torpor ("Torpor"), and the thesis on locality-aware load balancing for GPU functions
// ("thesis"). Comments cite their sections; where a paper is misprinted the comment says which reading is taken.
package schedule

import "slices"

// Request is one invocation of function Fn, a model served by workers. ID is the caller's and unique.
type Request struct {
	ID int
	Fn int
}

// Anywhere is the Peer of a decision that leaves the source of the weights to the caller.
const Anywhere = -1

// Decision admits Request to GPU. If GPU has no worker of the function, one is started; Peer then names the GPU whose
// copy of the weights to take, or is Anywhere.
type Decision struct {
	Request Request
	GPU     int
	Peer    int
}

// Completion reports a request that has left GPU. Service is the seconds it ran, without waiting and without its
// cold start; Latency is the seconds since its arrival that its deadline counts.
type Completion struct {
	Request Request
	GPU     int
	Service float64
	Latency float64
}

// Policy is a scheduler. After each Arrive, Cancel and Done the caller calls Next until it declines, carrying out each
// decision before the next call, so that the Cluster shows it.
type Policy interface {
	// Arrive queues a request.
	Arrive(now float64, r Request)
	// Cancel takes a request whose client has left out of the queue, and reports whether it waited: one that was decided
	// runs on, and is reported to Done. A request that comes and goes between two calls of Next changes no decision, but
	// for how soon MQFQ expects the next of its function. What has followed from it by then stays: turns of round robin,
	// counts of being passed over (LALBO3), deficits (SJF), global virtual time (MQFQ). Nobody is charged for it: virtual
	// times and Torpor's shares count what was served.
	Cancel(r Request) bool
	// Next takes one request from the queue, or reports that none can start.
	Next(now float64, c Cluster) (Decision, bool)
	// Done accounts for a finished request.
	Done(now float64, d Completion)
	// Queued is the number of requests that wait for a decision.
	Queued() int
}

// Anticipator is a policy that says for which functions it expects requests soon, so that their workers are worth keeping.
type Anticipator interface {
	Policy
	// Active reports whether fn's queue has requests that may run, or has just run empty and expects more. Workers of
	// others may be evicted or swapped out.
	Active(now float64, fn int) bool
	// Woken lists the functions whose queues became active since the last call: their memory is worth prefetching
	// (MQFQ §4.3).
	Woken() []int
}

// Cluster is what a policy may know about the machines. GPUs and functions count from 0.
type Cluster interface {
	// GPUs is the number of GPUs.
	GPUs() int
	// Accepts reports whether one more request of fn can be admitted to gpu now: its worker has a free batch slot, or
	// a worker can be started, evicting idle ones where needed.
	Accepts(gpu, fn int) bool
	// Holds reports whether gpu has a worker of fn, serving or loading.
	Holds(gpu, fn int) bool
	// InFlight is the number of requests admitted to gpu and not known to be complete.
	InFlight(gpu int) int
	// Start estimates the seconds until a worker of fn on gpu could serve, from the nearest weights and artifact;
	// 0 if gpu holds fn.
	Start(gpu, fn int) float64
	// Service estimates the seconds a request of fn runs.
	Service(fn int) float64
	// FinishTime estimates the seconds until gpu has finished all that was admitted to it.
	FinishTime(gpu int) float64
	// Traffic is what the host link of gpu carries now.
	Traffic(gpu int) Traffic
	// Utilization is the share of gpu's compute in use, 0 to 1.
	Utilization(gpu int) float64
}

// Traffic classifies what a GPU's links carry, from the least to the most disturbing to a neighbour (Torpor §5.2 and its
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

// cancel takes out the request with an id and tells its place from the front, -1 if it is not here.
func (q *fifo) cancel(id int) int {
	i := slices.IndexFunc(q.items[q.head:], func(r Request) bool { return r.ID == id })
	if i >= 0 {
		q.remove(i)
	}
	return i
}

// remove takes out the i-th request from the front.
func (q *fifo) remove(i int) Request {
	if i == 0 {
		return q.pop()
	}
	r := q.items[q.head+i]
	q.items = append(q.items[:q.head+i], q.items[q.head+i+1:]...)
	return r
}

func (q *fifo) at(i int) Request { return q.items[q.head+i] }
