package gateway

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"medusa/internal/private"
	"medusa/internal/yamlfile"
	"medusa/serving/dispatch"
	"medusa/serving/schedule"
)

// Spec is a configuration. Times are in seconds.
type Spec struct {
	Listen     string     `yaml:"listen"`         // default 127.0.0.1:8080
	KeysFile   string     `yaml:"keys"`           // file with a key a line; without it there is no check
	GPUs       []string   `yaml:"gpus"`           // each for CUDA_VISIBLE_DEVICES
	Neighbours [][]string `yaml:"neighbours"`     // pairs of GPUs behind the same PCIe switch
	Policy     Policy     `yaml:"policy"`         //
	HostMemory float64    `yaml:"host_memory_gb"` // for engines that sleep at level 1
	MaxWaiting int        `yaml:"max_waiting"`    // requests of a model; default 256
	MaxBody    int64      `yaml:"max_body"`       // bytes of a decoded body; default by the machine's memory
	MaxBodies  int64      `yaml:"max_bodies"`     // bytes of all bodies in memory; default by the machine's memory
	State      string     `yaml:"state"`          // folder; without it, engines that an earlier server left are not ended
	Retry      float64    `yaml:"retry"`          // time until a model that has failed on a GPU is started there again; default 30
	Health     float64    `yaml:"health"`         // time between two health checks of an engine; default 10
	Agent      *Remote    `yaml:"agent"`          // only for a Node
	Models     []Model    `yaml:"models"`

	MaxConnections int      `yaml:"max_connections"` // of a client; default 4096
	Hosts          []string `yaml:"hosts"`           // names that a server on a loopback address is reached by, beside its own
	CORS           []string `yaml:"cors"`            // origins whose pages may use the server; *: all
	AccessLog      string   `yaml:"access_log"`      // file
	SignAfter      float64  `yaml:"sign_after"`      // seconds after which a stream that waits gets signs of life; default 10
	SignEvery      float64  `yaml:"sign_every"`      // seconds between them; default 10; 0: none

	dir string
}

// Remote has the addresses of a Node's GPUs, in their order.
type Remote struct {
	Listen    []string `yaml:"listen"`
	Advertise []string `yaml:"advertise"` // at which a picker asks them; default listen, or the machine's own addresses with its port
	Secret    string   `yaml:"secret"`    // file
}

// Policy names a policy of package schedule, and its parameters.
type Policy struct {
	Name             string   `yaml:"name"` // default mqfq
	D                int      `yaml:"d"`
	T                *float64 `yaml:"t"`
	Alpha            *float64 `yaml:"alpha"`
	UtilizationLimit float64  `yaml:"utilization_limit"`
	WarmFirst        bool     `yaml:"warm_first"`
	O3Limit          *int     `yaml:"o3_limit"`
}

// Model is a model and how to run it.
type Model struct {
	Name     string            `yaml:"name"`
	Command  []string          `yaml:"command"` // of the engine; {port}, {gpu} and {name} are filled in
	Env      map[string]string `yaml:"env"`
	Artifact string            `yaml:"artifact"` // starts are restored from it
	Pool     string            `yaml:"pool"`     // file of a pool; each restored start has its own pool
	Weights  []string          `yaml:"weights"`  // files and folders that a restored start reads into the page cache while its engine imports
	Memory   float64           `yaml:"memory"`   // share of a GPU's memory; default 1
	Slots    int               `yaml:"slots"`    // requests at a time; default 8
	Deadline float64           `yaml:"deadline"` // of an answer, for torpor
	Weight   float64           `yaml:"weight"`   // for mqfq; default 1
	Sleep    int               `yaml:"sleep"`    // level of sleep that makes room; 0: the engine is stopped
	Asleep   float64           `yaml:"asleep"`   // share of a GPU's memory that a sleeping engine keeps
	HostGB   float64           `yaml:"host_gb"`  // host memory of an engine that sleeps at level 1
	Keep     bool              `yaml:"keep"`     // its last engine does not make room for others
	Aliases  []string          `yaml:"aliases"`  // other names for clients
	Preload  bool              `yaml:"preload"`  // an engine is started with the server
	TTL      float64           `yaml:"ttl"`      // seconds without a request after which its engines are stopped; 0: never

	StartLimit float64 `yaml:"start_limit"` // default 600
	Timeout    float64 `yaml:"timeout"`     // of a request, waiting included; default 600
	Start      float64 `yaml:"start"`       // estimates until they are measured; defaults 10, 1 and 1
	Wake       float64 `yaml:"wake"`
	Service    float64 `yaml:"service"`
}

// Load reads a configuration. Paths in it are relative to its folder.
func Load(path string) (*Spec, error) {
	data, err := yamlfile.Read(path)
	if err != nil {
		return nil, err
	}
	return parse(path, data)
}

func parse(path string, data []byte) (*Spec, error) {
	s := &Spec{Listen: "127.0.0.1:8080", MaxWaiting: 256, MaxConnections: 4096, SignAfter: 10, SignEvery: 10, Retry: 30, Health: 10, Policy: Policy{Name: "mqfq"}, dir: filepath.Dir(path)}
	file, err := yamlfile.Decode(path, data, s)
	if err != nil {
		return nil, err
	}
	s.complete()
	s.size(totalMemory())
	if err := s.check(); err != nil {
		return nil, yamlfile.Locate(path, file, err)
	}
	return s, nil
}

// UnmarshalYAML sets the defaults of a model before it is read, so that a 0 in the file stays 0.
func (m *Model) UnmarshalYAML(read func(any) error) error {
	type plain Model // without this method
	*m = Model{Memory: 1, Slots: 8, Weight: 1, StartLimit: 600, Timeout: 600, Start: 10, Wake: 1, Service: 1}
	return read((*plain)(m))
}

// complete makes paths relative to the file's folder.
func (s *Spec) complete() {
	for i := range s.Models {
		m := &s.Models[i]
		if strings.HasPrefix(m.Artifact, ".") {
			m.Artifact = filepath.Join(s.dir, m.Artifact)
			if !filepath.IsAbs(m.Artifact) {
				m.Artifact = "./" + m.Artifact
			}
		}
	}
	paths := []*string{&s.KeysFile, &s.State, &s.AccessLog}
	for i := range s.Models {
		paths = append(paths, &s.Models[i].Pool)
		for j := range s.Models[i].Weights {
			paths = append(paths, &s.Models[i].Weights[j])
		}
	}
	if s.Agent != nil {
		paths = append(paths, &s.Agent.Secret)
	}
	for _, path := range paths {
		if *path != "" && !filepath.IsAbs(*path) {
			*path = filepath.Join(s.dir, *path)
		}
	}
}

// The least time that is more than 0, and the largest values of fields. Larger ones would overflow durations and sizes.
const (
	minSeconds   = 0.001
	maxSeconds   = 1e8
	maxGigabytes = 1e6
	maxWeight    = 1e6
)

// number is a field of the mapping at path, with its range.
type number struct {
	name        string
	value       float64
	least, most float64
	positive    bool
}

func (n *number) check(path string) error {
	if n.value >= n.least && n.value <= n.most && (n.value > 0 || !n.positive) {
		return nil
	}
	from := fmt.Sprintf("%g", n.least)
	if n.positive && n.least == 0 {
		from = "more than 0"
	}
	return mistake(path+"."+n.name, "%s is %g, not from %s to %g", n.name, n.value, from, n.most)
}

func mistake(path, format string, args ...any) error {
	return &yamlfile.FieldError{Path: path, Err: fmt.Errorf("check configuration: "+format, args...)}
}

func (s *Spec) check() error {
	if _, _, err := net.SplitHostPort(s.Listen); err != nil {
		return mistake("$.listen", "%q is no address with a port", s.Listen)
	}
	switch {
	case len(s.GPUs) == 0:
		return mistake("$.gpus", "no GPU")
	case len(s.Models) == 0:
		return mistake("$.models", "no model")
	case s.MaxWaiting < 1:
		return mistake("$.max_waiting", "must be positive")
	case s.MaxBody < 1:
		return mistake("$.max_body", "must be positive")
	case s.MaxBodies < s.MaxBody:
		return mistake("$.max_bodies", "is less than max_body, %d", s.MaxBody)
	case s.MaxConnections < 1:
		return mistake("$.max_connections", "must be positive")
	}
	for i, id := range s.GPUs {
		switch at := fmt.Sprintf("$.gpus[%d]", i); {
		case id == "":
			return mistake(at, "the name of a GPU is empty")
		case slices.Contains(s.GPUs[:i], id):
			return mistake(at, "GPU %s is there twice", id)
		}
	}
	if err := s.checkNeighbours(); err != nil {
		return err
	}
	if _, err := origins(s.CORS); err != nil {
		return mistake("$.cors", "%v", err)
	}
	if err := s.Agent.check(len(s.GPUs)); err != nil {
		return err
	}
	for _, n := range []number{{"retry", s.Retry, 0, maxSeconds, false}, {"health", s.Health, minSeconds, maxSeconds, true},
		{"host_memory_gb", s.HostMemory, 0, maxGigabytes, false},
		{"sign_after", s.SignAfter, 0, maxSeconds, false}, {"sign_every", s.SignEvery, 0, maxSeconds, false}} {
		if err := n.check("$"); err != nil {
			return err
		}
	}
	seen := map[string]bool{}
	for i := range s.Models {
		m, at := &s.Models[i], fmt.Sprintf("$.models[%d]", i)
		if err := m.check(at); err != nil {
			return err
		}
		if strings.HasPrefix(s.Policy.Name, "torpor") && m.Deadline == 0 {
			return mistake(at, "model %s needs a deadline, for policy %s", m.Name, s.Policy.Name)
		}
		if m.Sleep == 1 && s.HostMemory == 0 {
			return mistake(at+".sleep", "model %s sleeps in host memory, which needs host_memory_gb", m.Name)
		}
		for _, name := range append([]string{m.Name}, m.Aliases...) {
			if seen[name] {
				return mistake(at, "the name %s is there twice", name)
			}
			seen[name] = true
		}
	}
	models := make([]*Model, len(s.Models))
	for i := range s.Models {
		models[i] = &s.Models[i]
	}
	if _, err := schedule.New(s.Policy.Name, params(s, models, s.GPUs)); err != nil {
		return &yamlfile.FieldError{Path: "$.policy", Err: err}
	}
	if err := dispatch.CheckKept(described(models), len(s.GPUs)); err != nil {
		return &yamlfile.FieldError{Path: "$.models", Err: err}
	}
	if _, err := s.keys(); err != nil {
		return &yamlfile.FieldError{Path: "$.keys", Err: err}
	}
	return nil
}

func (s *Spec) checkNeighbours() error {
	paired := map[string]bool{}
	for i, pair := range s.Neighbours {
		at := fmt.Sprintf("$.neighbours[%d]", i)
		if len(pair) != 2 {
			return mistake(at, "%d GPUs, neighbours are pairs", len(pair))
		}
		for _, id := range pair {
			if !slices.Contains(s.GPUs, id) {
				return mistake(at, "GPU %s is not in gpus", id)
			}
			if paired[id] {
				return mistake(at, "GPU %s has a neighbour already", id)
			}
			paired[id] = true
		}
	}
	return nil
}

func (r *Remote) check(gpus int) error {
	if r == nil {
		return nil
	}
	if len(r.Listen) != gpus {
		return mistake("$.agent.listen", "%d addresses for %d GPUs", len(r.Listen), gpus)
	}
	for i, address := range r.Listen {
		if _, _, err := net.SplitHostPort(address); err != nil {
			return mistake(fmt.Sprintf("$.agent.listen[%d]", i), "%q is no address with a port", address)
		}
	}
	if len(r.Advertise) != 0 && len(r.Advertise) != gpus {
		return mistake("$.agent.advertise", "%d addresses for %d GPUs", len(r.Advertise), gpus)
	}
	for i, address := range r.Advertise {
		// Endpoints of a picker are addresses, not names.
		if _, err := netip.ParseAddrPort(address); err != nil {
			return mistake(fmt.Sprintf("$.agent.advertise[%d]", i), "%q is not an IP address with a port", address)
		}
	}
	if r.Secret == "" {
		return mistake("$.agent", "secret is missing: agents answer only those who know it")
	}
	return nil
}

func (m *Model) check(at string) error {
	switch {
	case m.Name == "":
		return mistake(at, "a model needs a name")
	case len(m.Command) == 0:
		return mistake(at, "model %s needs a command", m.Name)
	case !m.named("{port}"):
		return mistake(at+".command", "{port} is not in the command or the environment of %s", m.Name)
	case !(m.Memory > 0 && m.Memory <= 1):
		return mistake(at+".memory", "is a share of a GPU, above 0 and at most 1")
	case m.Pool != "" && m.Artifact == "":
		return mistake(at+".pool", "only restored starts have a pool, and model %s has no artifact", m.Name)
	case len(m.Weights) > 0 && m.Artifact == "":
		return mistake(at+".weights", "only restored starts read weights ahead, and model %s has no artifact", m.Name)
	case slices.Contains(m.Weights, ""):
		return mistake(at+".weights", "one of the paths is empty")
	case m.Slots < 1:
		return mistake(at+".slots", "slots must be positive")
	case slices.Contains(m.Aliases, ""):
		return mistake(at+".aliases", "one of the names is empty")
	case m.TTL > 0 && m.Keep:
		return mistake(at+".ttl", "model %s is kept, so that it has no ttl", m.Name)
	case m.Sleep < 0 || m.Sleep > 2:
		return mistake(at+".sleep", "is 0, 1 or 2")
	case !(m.Asleep >= 0 && m.Asleep < m.Memory):
		return mistake(at+".asleep", "is a share of a GPU, less than memory")
	}
	for _, n := range []number{{"deadline", m.Deadline, 0, maxSeconds, false}, {"weight", m.Weight, 1 / maxWeight, maxWeight, true},
		{"start_limit", m.StartLimit, minSeconds, maxSeconds, true}, {"timeout", m.Timeout, minSeconds, maxSeconds, true}, {"start", m.Start, 0, maxSeconds, true},
		{"wake", m.Wake, 0, maxSeconds, true}, {"service", m.Service, 0, maxSeconds, true}, {"host_gb", m.HostGB, 0, maxGigabytes, false}, {"ttl", m.TTL, 0, maxSeconds, false}} {
		if err := n.check(at); err != nil {
			return err
		}
	}
	return nil
}

// named reports whether a placeholder is in the command or the environment.
func (m *Model) named(placeholder string) bool {
	for _, s := range m.Command {
		if strings.Contains(s, placeholder) {
			return true
		}
	}
	for _, s := range m.Env {
		if strings.Contains(s, placeholder) {
			return true
		}
	}
	return false
}

// keys reads the API keys. nil means that requests need none.
func (s *Spec) keys() (map[string]bool, error) {
	if s.KeysFile == "" {
		return nil, nil
	}
	// mutant: API keys of others
	if err := private.Check(s.KeysFile); err != nil {
		return nil, err
	}
	data, err := yamlfile.Read(s.KeysFile)
	if err != nil {
		return nil, err
	}
	keys := map[string]bool{}
	for _, line := range strings.Split(string(data), "\n") {
		if key := strings.TrimSpace(line); key != "" && !strings.HasPrefix(key, "#") {
			keys[key] = true
		}
	}
	if len(keys) == 0 {
		return nil, errors.New("read keys: the file has none")
	}
	return keys, nil
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
