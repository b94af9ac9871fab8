package pool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"medusa/internal/printable"
	"medusa/internal/private"
)

var background = context.Background()

// Pool serves a configuration.
type Pool struct {
	spec *Spec
	log  io.Writer

	mu      sync.Mutex
	changed *sync.Cond
	waiting map[*Engine][]*waiter
	filling map[*waiter]bool // those that still import
	counts  map[*Engine]*Counts
	last    time.Time // of the last start
	closed  bool
	made    map[*Engine]bool // of a pool for one start: engines whose process is made; nil: the pool serves any number of starts
}

// New returns a pool that has no process yet. Failures go to log.
func New(spec *Spec, log io.Writer) *Pool {
	p := &Pool{spec: spec, log: log, waiting: map[*Engine][]*waiter{}, filling: map[*waiter]bool{}, counts: map[*Engine]*Counts{}}
	p.changed = sync.NewCond(&p.mu)
	for i := range spec.Engines {
		p.counts[&spec.Engines[i]] = &Counts{}
	}
	return p
}

// Listen makes the socket, in a folder that only this user may open. It removes an old socket that no pool serves.
func Listen(path string) (*net.UnixListener, error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make socket: %w", err)
	}
	if err := checkFolder(dir); err != nil {
		return nil, fmt.Errorf("make socket: %w", err)
	}
	if c, err := net.Dial("unix", path); err == nil {
		_ = c.Close()
		return nil, fmt.Errorf("make socket %s: another pool serves it", path)
	}
	if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSocket != 0 {
		_ = os.Remove(path)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("make socket: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("make socket: %w", err), l.Close())
	}
	return l, nil
}

// checkFolder checks that no other user may open the folder, or replace it.
func checkFolder(dir string) error {
	if err := private.Check(dir); err != nil {
		return err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if st, ok := sysStat(info); !ok || int(st.Uid) != os.Geteuid() || info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("folder %s has mode %#o (chmod 700; the socket needs a folder of this user's alone)", dir, info.Mode().Perm())
	}
	return nil
}

// Serve answers requests until the context ends. Then it answers the requests that have arrived, ends the waiting processes, and returns. Processes
// that were handed over go on.
func (p *Pool) Serve(ctx context.Context, l *net.UnixListener) error {
	var requests, filling sync.WaitGroup
	if p.made == nil {
		filling.Go(func() { p.fill(ctx) })
	} else {
		for _, e := range p.engines() {
			// mutant: imports side by side
			filling.Go(func() { p.once(e) })
		}
	}
	stop := context.AfterFunc(ctx, func() {
		_ = l.Close()
		p.mu.Lock()
		p.closed = true
		for w := range p.filling {
			w.close()
		}
		p.changed.Broadcast()
		p.mu.Unlock()
	})
	defer stop()
	var failed error
	for {
		c, err := l.AcceptUnix()
		if err != nil {
			if ctx.Err() == nil {
				failed = fmt.Errorf("serve pool: %w", err)
			}
			break
		}
		requests.Go(func() { p.answer(c) })
	}
	_ = l.Close()
	requests.Wait()
	p.mu.Lock()
	p.closed = true
	all := p.waiting
	p.waiting = map[*Engine][]*waiter{}
	p.changed.Broadcast()
	p.mu.Unlock()
	for _, list := range all {
		for _, w := range list {
			w.close()
			<-w.gone
		}
	}
	filling.Wait()
	return failed
}

const requestLimit = 30 * time.Second

// answer serves one request.
func (p *Pool) answer(c *net.UnixConn) {
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(requestLimit))
	peer, err := credentials(c)
	if err != nil {
		return
	}
	// mutant: requests of other users
	if int(peer.Uid) != os.Geteuid() {
		_ = send(c, answer{Error: fmt.Sprintf("this pool is user %d's", os.Geteuid())})
		return
	}
	var r request
	files, err := receive(c, &r)
	defer closeAll(files)
	switch {
	case err != nil:
		if !errors.Is(err, io.EOF) {
			_ = send(c, answer{Error: err.Error()})
		}
	case r.Protocol != protocol:
		_ = send(c, answer{Error: fmt.Sprintf("protocol %d is not known here (the pool has %d)", r.Protocol, protocol)})
	case r.Ask == "status":
		_ = send(c, answer{Status: p.Status()})
	case r.Ask == "start":
		p.start(c, &r, int(peer.Pid), files)
	default:
		_ = send(c, answer{Error: fmt.Sprintf("request %q is not known", r.Ask)})
	}
}

func credentials(c *net.UnixConn) (cred *unix.Ucred, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	if controlled := raw.Control(func(fd uintptr) { cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); controlled != nil {
		return nil, controlled
	}
	return cred, err
}

// start hands a process over, or sends the reasons why not.
func (p *Pool) start(c *net.UnixConn, r *request, pid int, files []*os.File) {
	s, err := readStart(r, pid, len(files))
	if err != nil {
		_ = send(c, answer{Error: err.Error()})
		return
	}
	w, differences := p.take(s)
	_ = c.SetDeadline(time.Now().Add(requestLimit)) // a pool for one start may have waited for imports
	if w == nil {
		_ = send(c, answer{Differences: texts(differences)})
		return
	}
	// mutant: a caller that has died
	defer w.close()
	if err := w.become(s, r, files, p.spawnedSocket()); err != nil {
		p.count(w.engine, func(n *Counts) { n.Failed++ })
		_ = send(c, answer{Error: err.Error()})
		return
	}
	link, err := w.link.File()
	if err != nil {
		_ = send(c, answer{Error: err.Error()})
		return
	}
	defer link.Close()
	if err := send(c, answer{Pid: w.facts.Pid, Engine: w.engine.Name}, w.control, w.ended, link); err != nil {
		p.count(w.engine, func(n *Counts) { n.Failed++ })
		return
	}
	p.count(w.engine, func(n *Counts) { n.Started++ })
}

// readStart reads a request, and the properties of the process whose child the start has to equal.
func readStart(r *request, pid, files int) (*start, error) {
	if files != len(r.Descriptors)+1 {
		return nil, fmt.Errorf("read request: %d descriptors came, and %d are named beside the folder", files, len(r.Descriptors))
	}
	if sorted := slices.Sorted(slices.Values(r.Descriptors)); len(sorted) < 3 || sorted[0] != 0 || sorted[2] != 2 || len(slices.Compact(sorted)) != len(r.Descriptors) {
		return nil, errors.New("read request: descriptors need numbers of their own, and 0, 1 and 2")
	}
	if len(r.Argv) == 0 {
		return nil, errors.New("read request: there is no command")
	}
	if r.Like != 0 {
		pid = r.Like
	}
	like, err := readProcess(pid)
	if err != nil {
		return nil, err
	}
	program, err := readProgram(r.Executable, unpacked(r.Argv))
	if err != nil {
		return nil, err
	}
	s := &start{program: program, environment: environ(r.Environment), descriptors: r.Descriptors, spawned: r.Spawned, like: like}
	if s.arguments = program.sysArgv(); r.Spawned {
		if s.arguments = unpacked(r.Arguments); len(s.arguments) == 0 {
			return nil, errors.New("read request: there are no arguments")
		}
	}
	return s, nil
}

// take returns a process that can become the start. If there is none, it returns the differences from the engine with the fewest.
func (p *Pool) take(s *start) (*waiter, []Difference) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		w, differences, closest := p.find(s)
		// mutant: imports beside the command
		if w == nil && p.coming(s) {
			p.changed.Wait()
			continue
		}
		if w == nil && closest != nil {
			p.counts[closest].Refused++
		}
		return w, differences
	}
}

// find looks through the waiting processes. If none fits, it returns the engine with the fewest differences, and these.
func (p *Pool) find(s *start) (*waiter, []Difference, *Engine) {
	nearest, found := []Difference{{What: "no engine of the pool has this role"}}, false
	var closest *Engine
	for i := range p.spec.Engines {
		e := &p.spec.Engines[i]
		if e.Spawned != s.spawned {
			continue
		}
		w, differences := p.pick(e, s)
		if w != nil {
			p.last = time.Now()
			p.changed.Broadcast()
			return w, nil, e
		}
		if !found || len(differences) < len(nearest) {
			nearest, closest, found = differences, e, true
		}
	}
	return nil, nearest, closest
}

func (p *Pool) engines() []*Engine {
	var all []*Engine
	for i := range p.spec.Engines {
		all = append(all, &p.spec.Engines[i])
	}
	return all
}

// pick takes the first process that fits. It ends those whose files have changed.
func (p *Pool) pick(e *Engine, s *start) (*waiter, []Difference) {
	key := e.keyDifferences(s)
	differences := slices.Concat(key, []Difference{{What: "no process is ready"}})
	for i := 0; i < len(p.waiting[e]); i++ {
		w := p.waiting[e][i]
		if len(changed(w.facts.Files)) > 0 {
			differences = changed(w.facts.Files)
			p.waiting[e] = slices.Delete(p.waiting[e], i, i+1)
			p.counts[e].Stale++
			p.changed.Broadcast()
			w.close()
			i--
			continue
		}
		have, err := readProcess(w.facts.Pid)
		if err != nil {
			continue // it has ended, and is about to be removed
		}
		differences = slices.Concat(key, e.factDifferences(w.facts, s), processDifferences(w.facts, have, s.like))
		if len(differences) == 0 {
			// mutant: used once
			p.waiting[e] = slices.Delete(p.waiting[e], i, i+1)
			return w, nil
		}
	}
	return nil, differences
}

// spawnedSocket is the socket if the pool has processes for children that an engine spawns.
func (p *Pool) spawnedSocket() string {
	if slices.ContainsFunc(p.spec.Engines, func(other Engine) bool { return other.Spawned }) {
		return p.spec.Socket
	}
	return ""
}

func (p *Pool) count(e *Engine, f func(*Counts)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f(p.counts[e])
}

func texts(differences []Difference) []string {
	var out []string
	for _, d := range differences {
		out = append(out, printable.Line(d.String()))
	}
	return out
}
