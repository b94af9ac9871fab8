package gateway

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"medusa/internal/apierror"
	"medusa/serving/agent"
	"medusa/serving/agent/link"
)

// news wakes requests for a report when it has changed.
type news struct {
	mu      sync.Mutex
	version uint64
	changed chan struct{} // closed at the next change
	latest  []link.Ended
	at      []uint64 // versions of latest
	over    bool
}

// keepEnded is the number of ended requests that reports repeat. If more have ended since a picker's last request, it learns of the others by
// their absence.
const keepEnded = 4096

func (n *news) happened() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.step()
}

func (n *news) step() {
	n.version++
	close(n.changed)
	n.changed = make(chan struct{})
}

func (n *news) ended(e link.Ended) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.step()
	n.latest, n.at = append(n.latest, e), append(n.at, n.version)
	if len(n.latest) > 2*keepEnded {
		n.latest, n.at = append([]link.Ended(nil), n.latest[keepEnded:]...), append([]uint64(nil), n.at[keepEnded:]...)
	}
}

func (n *news) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.over = true
	n.step()
}

// since returns the present version, and the requests that have ended since another version.
func (n *news) since(version uint64) (now uint64, ended []link.Ended, over bool, changed <-chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	i := len(n.at)
	for i > 0 && n.at[i-1] > version {
		i--
	}
	return n.version, append([]link.Ended{}, n.latest[i:]...), n.over, n.changed
}

// The longest time that a request for a report may wait for a change, and the time in which changes are collected.
const (
	maxReportWait = 30 * time.Second
	gather        = 2 * time.Millisecond
)

// report answers a picker. It answers at once if the picker has seen no report of this process (boot) or an older version (after). Otherwise it
// answers at the next change or after some seconds (wait).
func (k *card) report(w http.ResponseWriter, r *http.Request) {
	n := k.node
	proof := r.Header.Get(link.HeaderProof)
	if err := n.secret.CheckAsk(proof, time.Now(), k.addresses()); err != nil {
		(&apierror.Error{Status: http.StatusUnauthorized, Kind: apierror.Authentication, Code: "invalid_proof", Message: err.Error()}).Write(w)
		return
	}
	after, wait, err := asking(r, n.boot)
	if err != nil {
		(&apierror.Error{Status: http.StatusBadRequest, Kind: apierror.Request, Message: err.Error()}).Write(w)
		return
	}
	late := time.NewTimer(wait)
	defer late.Stop()
	for over := false; !over; {
		version, _, closing, changed := k.news.since(after)
		if version > after || closing {
			break
		}
		select {
		case <-changed:
			time.Sleep(gather)
		case <-late.C:
			over = true
		case <-r.Context().Done():
			return
		}
	}
	data, err := json.Marshal(k.state(after))
	if err != nil {
		classify(err).Write(w)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set(link.HeaderProof, n.secret.Seal(proof, data))
	_, _ = w.Write(data)
}

// asking returns the version that a picker has seen, and its waiting time. Both are 0 if it has seen no report of this process.
func asking(r *http.Request, boot string) (after uint64, wait time.Duration, err error) {
	q := r.URL.Query()
	if q.Get("boot") != boot {
		return 0, 0, nil
	}
	if after, err = strconv.ParseUint(q.Get("after"), 10, 64); err != nil {
		return 0, 0, fmt.Errorf("read after: %w", err)
	}
	if wait, err = time.ParseDuration(q.Get("wait")); err != nil {
		return 0, 0, fmt.Errorf("read wait: %w", err)
	}
	return after, min(wait, maxReportWait), nil
}

// state makes a report. Its version is read before its contents, so the next report has each change that this one lacks.
func (k *card) state(after uint64) link.Report {
	n := k.node
	out := link.Report{Boot: n.boot, GPU: n.setup.gpus[k.gpu], Models: []link.Model{}, Engines: []link.Engine{}, Requests: []link.Request{}}
	out.Version, out.Ended, out.Leaving, _ = k.news.since(after)
	now := n.clock()
	k.mu.Lock()
	for v := range k.inside {
		out.Requests = append(out.Requests, link.Request{ID: v.id, Model: n.setup.models[v.at.Request.Fn].Name, Age: now - v.came, Held: !v.placed})
	}
	k.mu.Unlock()
	for place, m := range n.setup.models {
		e := n.agent.Estimates(place)
		out.Models = append(out.Models, link.Model{Name: m.Name, Memory: m.Memory, Slots: m.Slots, Keep: m.Keep, Start: e.Start, Wake: e.Wake, Service: e.Service})
		at := n.agent.Standing(k.gpu, place)
		if at.State == agent.Cold && !at.Wanted {
			continue
		}
		engine := link.Engine{Model: m.Name, State: at.State, Since: now - at.Since, Wanted: at.Wanted, Idle: now - at.LastUsed, Memory: at.Memory, Delay: at.Delay}
		if at.Failure != nil {
			engine.Error, engine.Retry = at.Failure.Error(), max(0, at.Retry-now)
		}
		out.Engines = append(out.Engines, engine)
	}
	return out
}
