package gateway

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"medusa/internal/httplimit"
	"medusa/serving/agent"
	"medusa/serving/agent/link"
	"medusa/serving/schedule"
)

// Node is the machine of an endpoint picker. It has a port for each GPU, and runs there the requests that the picker sends. Its only decision is
// which idle engine makes room. A request that comes too early is held until it has a place.
type Node struct {
	machine
	spec   *Spec
	setup  *setup
	secret link.Secret
	boot   string
	bodies *httplimit.Bodies
	cards  []*card
}

// card is a GPU, its port and its requests.
type card struct {
	node *Node
	gpu  int
	at   *net.TCPAddr // where it listens

	mu      sync.Mutex
	next    int        // number of the next request
	waiting []*visitor // held, in order of arrival
	inside  map[*visitor]bool

	news news
}

// visitor is a request at a GPU.
type visitor struct {
	id       string
	came     float64
	at       schedule.Decision
	admitted chan struct{} // closed once it has a place
	placed   bool
}

// NewNode makes a Node. No engine is started before a request needs it.
func NewNode(s *Spec, o Options) (*Node, error) {
	if s.Agent == nil {
		return nil, errors.New("check configuration: an agent needs the section agent, with its addresses and a secret")
	}
	secret, err := link.ReadSecret(s.Agent.Secret)
	if err != nil {
		return nil, err
	}
	now, err := firstSetup(s)
	if err != nil {
		return nil, err
	}
	n := &Node{machine: newMachine(s, o), spec: s, setup: now, secret: secret, boot: rand.Text(),
		bodies: httplimit.NewBodies(max(bodyRoom, s.MaxBody))}
	for gpu := range now.gpus {
		n.cards = append(n.cards, &card{node: n, gpu: gpu, inside: map[*visitor]bool{}, news: news{changed: make(chan struct{})}})
	}
	c := now.machines()
	c.Clock, c.Warn = n.clock, n.warn
	c.Changed = func() {
		for _, k := range n.cards {
			k.admit()
		}
	}
	c.Entered = func(gpu, _ int, _ agent.State) { n.cards[gpu].news.happened() }
	c.Make = func(gpu, fn int) agent.Engine { return n.engine(now.models[fn], now.gpus[gpu]) }
	n.agent, err = agent.New(c)
	return n, err
}

// come adds a request, and reports it at once.
func (k *card) come(id string, fn int) *visitor {
	k.mu.Lock()
	v := &visitor{id: id, came: k.node.clock(), admitted: make(chan struct{})}
	v.at = schedule.Decision{Request: schedule.Request{ID: k.next, Fn: fn}, GPU: k.gpu, Peer: schedule.Anywhere}
	k.next++
	k.inside[v] = true
	k.waiting = append(k.waiting, v)
	k.mu.Unlock()
	k.admit()
	k.news.happened()
	return v
}

// admit gives places to waiting requests, in order. If a request's engine is full, others may overtake it. If there is no room for its engine,
// only requests that need no new engine may overtake it, so that it gets its room.
func (k *card) admit() {
	k.mu.Lock()
	defer k.mu.Unlock()
	crowded := false
	left := k.waiting[:0]
	for _, v := range k.waiting {
		fn := v.at.Request.Fn
		switch o := k.node.agent.Obstacle(k.gpu, fn); {
		case o == agent.Full:
		case o == agent.Room:
			crowded = true
		case o == agent.Turn && crowded && !k.node.agent.Holds(k.gpu, fn):
		default:
			k.node.agent.Admit(v.at, func(int) bool { return false })
			v.placed = true
			close(v.admitted)
			continue
		}
		left = append(left, v)
	}
	clear(k.waiting[len(left):])
	k.waiting = left
}

// leave ends a request. service is its running time in seconds if it was answered, or 0.
func (k *card) leave(v *visitor, service float64) {
	k.mu.Lock()
	delete(k.inside, v)
	for i, w := range k.waiting {
		if w == v {
			k.waiting = append(k.waiting[:i], k.waiting[i+1:]...)
			break
		}
	}
	placed := v.placed
	k.mu.Unlock()
	if placed {
		k.node.agent.Release(v.at, service)
	}
	k.news.ended(link.Ended{ID: v.id, Service: service})
	// mutant: places of requests that are held
	k.admit()
}

// nodeLimits bound the connections of all GPUs. A gateway in front is one client, and each of its requests here has a connection.
var nodeLimits = httplimit.Limits{Connections: 2048, Client: 1024, Stall: 10 * time.Second}

// bodyRoom is the memory for the bodies of all requests of a node, unless one body may be larger.
const bodyRoom = 64 << 20

// Listen ends engines that an earlier agent has left, and opens the ports of all GPUs, or none.
func (n *Node) Listen() (list []net.Listener, err error) {
	if err := n.open(n.spec.State); err != nil {
		return nil, err
	}
	connections := httplimit.New(nodeLimits)
	for i, address := range n.spec.Agent.Listen {
		l, err := net.Listen("tcp", address)
		if err != nil {
			for _, open := range list {
				_ = open.Close()
			}
			return nil, fmt.Errorf("serve GPU: %w", err)
		}
		n.cards[i].at = l.Addr().(*net.TCPAddr)
		list = append(list, lined{connections.Listen(l)})
	}
	return list, nil
}

// Serve answers requests until ctx ends. It then announces its end to pickers, lets present requests end, and stops all engines.
func (n *Node) Serve(ctx context.Context, listeners []net.Listener) error {
	servers, served := make([]*http.Server, len(listeners)), make(chan error, len(listeners))
	for i, l := range listeners {
		servers[i] = &http.Server{Handler: n.cards[i].handler(), MaxHeaderBytes: 32 << 10, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute,
			IdleTimeout: 5 * time.Minute, ConnContext: withLine}
		go func() { served <- servers[i].Serve(l) }()
	}
	var err error
	left := len(listeners)
	select {
	case err = <-served:
		left--
	case <-ctx.Done():
	}
	limit, cancel := context.WithTimeout(context.Background(), drainLimit)
	defer cancel()
	for _, k := range n.cards {
		k.news.close()
	}
	for _, s := range servers {
		if s.Shutdown(limit) != nil {
			_ = s.Close()
		}
	}
	for range left {
		if e := <-served; err == nil {
			err = e
		}
	}
	n.Close()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
