package simulate

// event is a future event of a worker, or of the observer if worker is nil.
type event struct {
	at     float64
	seq    uint64 // order of scheduling, which breaks ties
	kind   eventKind
	gen    uint32 // of the worker's phase; a stale event is dropped
	req    int32
	worker *worker
}

type eventKind uint8

const (
	loaded   eventKind = iota // the worker can serve
	stepped                   // its engine has finished a run of equal steps
	finished                  // a request with a fixed service time is done
	observed                  // the observer checks its workers
	expired                   // the worker's keep-alive has passed
)

// agenda is a binary heap of events, earliest first. It holds values, since a heap of pointers would be most of the run time.
type agenda struct {
	heap []event
	seq  uint64
}

func (a *agenda) before(i, j int) bool {
	x, y := &a.heap[i], &a.heap[j]
	return x.at < y.at || (x.at == y.at && x.seq < y.seq)
}

func (a *agenda) push(e event) {
	a.seq++
	e.seq = a.seq
	a.heap = append(a.heap, e)
	for i := len(a.heap) - 1; i > 0; {
		up := (i - 1) / 2
		if !a.before(i, up) {
			break
		}
		a.heap[i], a.heap[up] = a.heap[up], a.heap[i]
		i = up
	}
}

func (a *agenda) pop() event {
	e := a.heap[0]
	last := len(a.heap) - 1
	a.heap[0] = a.heap[last]
	a.heap[last].worker = nil
	a.heap = a.heap[:last]
	for i := 0; ; {
		c := 2*i + 1
		if c >= last {
			break
		}
		if c+1 < last && a.before(c+1, c) {
			c++
		}
		if !a.before(c, i) {
			break
		}
		a.heap[i], a.heap[c] = a.heap[c], a.heap[i]
		i = c
	}
	return e
}
