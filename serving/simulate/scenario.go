// Package simulate predicts the latency tail of a cluster that starts workers on demand.
//
// In: a [Scenario] (cluster, cost profiles, workload, policy, start strategy) and a seed. Out: the result of every request and
// its summary. It is a discrete-event simulation of engine steps: continuous batching, one admission per step, cold starts from
// host memory, local files or remote artifacts. The same scenario and seed give the same result, bit for bit.
//
// Fails: a scenario, profile or trace file that is malformed or out of range gives a [*yamlfile.Error] with line and column. A valid
// scenario always runs.
package simulate

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"medusa/internal/yamlfile"
	"medusa/serving/schedule"
)

// Scenario is one experiment. Times are in seconds, sizes in GB (10^9 bytes).
type Scenario struct {
	Title     string      `yaml:"title"`
	Seed      uint64      `yaml:"seed"`
	Seeds     int         `yaml:"seeds"` // runs with seeds Seed, Seed+1, …; default 1
	Profiles  string      `yaml:"profiles"`
	Strategy  Strategy    `yaml:"strategy"`
	Policy    PolicySpec  `yaml:"policy"`
	Cluster   ClusterSpec `yaml:"cluster"`
	Functions []Function  `yaml:"functions"`
	Workload  Workload    `yaml:"workload"`
	Compare   []Variant   `yaml:"compare"`
	Figures   []Figure    `yaml:"figures"`
	Notes     string      `yaml:"notes"` // readings taken if a paper is silent or misprinted

	profiles *profiles
	dir      string
}

// PolicySpec names a policy of package schedule and its parameters; unset ones have the paper's defaults.
type PolicySpec struct {
	Name             string   `yaml:"name"`
	D                int      `yaml:"d"`
	T                *float64 `yaml:"t"`
	Alpha            *float64 `yaml:"alpha"`
	UtilizationLimit float64  `yaml:"utilization_limit"`
	WarmFirst        bool     `yaml:"warm_first"`
	UnitTau          bool     `yaml:"unit_tau"`
	O3Limit          *int     `yaml:"o3_limit"`
	MaxBatch         int      `yaml:"max_batch"`
}

// ClusterSpec describes equal nodes of equal GPUs.
type ClusterSpec struct {
	Nodes         int         `yaml:"nodes"` // default 1
	GPUs          int         `yaml:"gpus"`  // per node
	GPUMemoryGB   float64     `yaml:"gpu_memory_gb"`
	HostMemoryGB  float64     `yaml:"host_memory_gb"`  // for weights that are kept ready; 0: none are kept
	Pool          int         `yaml:"pool"`            // most workers kept per node, on GPUs and in host memory; 0: no limit
	Sleepers      bool        `yaml:"sleepers"`        // weights in host memory belong to an engine that sleeps on one GPU, as in medusa serve
	HostWarm      bool        `yaml:"host_warm"`       // all models are in host memory from the start
	Slots         int         `yaml:"slots"`           // batch slots of a worker; 0: no limit
	GPUSlots      int         `yaml:"gpu_slots"`       // requests a GPU runs at once, over all workers; 0: no limit
	WorkersPerGPU int         `yaml:"workers_per_gpu"` // 0: as memory allows
	OneWorker     bool        `yaml:"one_worker"`      // a GPU has at most one worker of a function, as in medusa serve
	Replicas      int         `yaml:"replicas"`        // workers a function may have at once; 0: no limit
	Interference  float64     `yaml:"interference"`    // share by which each further request on a GPU slows one down
	ObserveEvery  float64     `yaml:"observe_s"`       // completions and exits are seen at multiples of this; 0: at once
	IdleExit      bool        `yaml:"idle_exit"`       // a worker without work exits
	Keepalive     float64     `yaml:"keepalive_s"`     // a worker idle for this long exits; 0: never
	Static        bool        `yaml:"static"`          // the first workers stay, without eviction
	Prestarted    bool        `yaml:"prestarted"`      // the runtime of workers is initialised ahead
	Observed      bool        `yaml:"observed_loads"`  // use the profile's observed load times, not the sum of stages
	Eviction      string      `yaml:"eviction"`        // lru, global-lru, heavy-light, or sticky, which also prefetches (MQFQ-Sticky)
	Neighbours    []int       `yaml:"neighbours"`      // per GPU of a node: the GPU behind the same PCIe switch
	NVLink        [][]float64 `yaml:"nvlink"`          // relative bandwidth within a node
	Contention    [][]float64 `yaml:"contention"`      // slowdown of a host copy: [own class][neighbour's class], light to heavy
	NetworkGBps   float64     `yaml:"network_gbps"`    // GB/s of a node's link to the stores, used by one transfer at a time
	Artifacts     string      `yaml:"artifacts"`       // local (default), remote or absent
	ArtifactGB    float64     `yaml:"artifact_gb"`     // room for fetched artifacts on a node; 0: no limit
	Prebaked      [][]string  `yaml:"prebaked"`        // per node, models whose artifacts are there from the start and stay
	Weights       string      `yaml:"weights"`         // local (default) or remote
	WeightGB      float64     `yaml:"weight_gb"`       // room for fetched weights on a node's disk; 0: no limit
}

// Function is one deployed model.
type Function struct {
	Name   string  `yaml:"name"`
	Model  string  `yaml:"model"` // in the profiles; default the name
	Rate   float64 `yaml:"rate"`  // requests per second, or a share if the workload gives the total
	SLO    float64 `yaml:"slo_s"`
	Weight float64 `yaml:"weight"`
	Start  float64 `yaml:"start_s"` // no requests before this
	Copies int     `yaml:"copies"`  // deploy this many, numbered from 1
	Slots  int     `yaml:"slots"`   // batch slots of a worker; 0: the cluster's
	Keep   bool    `yaml:"keep"`    // its first worker stays, once it was started
}

// Variant is the scenario with some fields replaced.
type Variant struct {
	Name string   `yaml:"name"`
	With ast.Node `yaml:"with"`
}

// limits keep a scenario small enough for a laptop.
const (
	maxGPUs      = 4096
	maxFunctions = 100_000
	maxRequests  = 50_000_000
)

// check reports the first field with an invalid value.
func (s *Scenario) check() error {
	at := func(path, format string, args ...any) error {
		return &yamlfile.FieldError{Path: path, Err: fmt.Errorf("check scenario: "+format, args...)}
	}
	c := &s.Cluster
	switch {
	case !slices.Contains(strategies(), s.Strategy):
		return at("$.strategy", "unknown strategy %q (native, async, no-graphs, kv-only, restored)", s.Strategy)
	case s.Seeds < 0 || s.Seeds > 10_000:
		return at("$.seeds", "seeds must be 1 to 10000")
	case c.Nodes < 1 || c.GPUs < 1 || c.Nodes > maxGPUs || c.GPUs > maxGPUs || c.Nodes*c.GPUs > maxGPUs:
		return at("$.cluster", "nodes × gpus must be 1 to %d", maxGPUs)
	case !slices.Contains([]string{"", "lru", "global-lru", "heavy-light", "sticky"}, c.Eviction):
		return at("$.cluster.eviction", "unknown eviction %q (lru, global-lru, heavy-light or sticky)", c.Eviction)
	case c.Eviction == "sticky" && s.Policy.Name != "mqfq":
		return at("$.cluster.eviction", "sticky eviction needs policy mqfq")
	case !slices.Contains([]string{"", "local", "remote", "absent"}, c.Artifacts):
		return at("$.cluster.artifacts", "unknown place %q (local, remote or absent)", c.Artifacts)
	case !slices.Contains([]string{"", "local", "remote"}, c.Weights):
		return at("$.cluster.weights", "unknown place %q (local or remote)", c.Weights)
	case (c.Artifacts == "remote" || c.Weights == "remote") && !(c.NetworkGBps > 0):
		return at("$.cluster", "remote artifacts or weights need network_gbps")
	case c.NetworkGBps > 0 && c.NetworkGBps < 1e-6:
		return at("$.cluster.network_gbps", "at least 0.000001")
	case len(c.Prebaked) > c.Nodes:
		return at("$.cluster.prebaked", "lists %d nodes of %d", len(c.Prebaked), c.Nodes)
	case c.Neighbours != nil && len(c.Neighbours) != c.GPUs:
		return at("$.cluster.neighbours", "needs one entry a GPU")
	case c.NVLink != nil && len(c.NVLink) != c.GPUs:
		return at("$.cluster.nvlink", "needs one row a GPU")
	case c.Contention != nil && len(c.Contention) != 3:
		return at("$.cluster.contention", "needs rows light, medium, heavy")
	case c.Pool > 0 && c.HostMemoryGB > 0:
		return at("$.cluster.pool", "a pool of processes and host memory for weights exclude each other")
	case len(s.Functions) == 0:
		return at("$.functions", "no functions")
	case c.Pool < 0 || c.Slots < 0 || c.GPUSlots < 0 || c.WorkersPerGPU < 0 || c.Replicas < 0:
		return at("$.cluster", "counts must not be negative")
	}
	for _, v := range []float64{c.GPUMemoryGB, c.HostMemoryGB, c.Interference, c.ObserveEvery, c.Keepalive, c.NetworkGBps, c.ArtifactGB, c.WeightGB} {
		if !(v >= 0 && v < 1e9) {
			return at("$.cluster", "value %g is out of range", v)
		}
	}
	if c.ObserveEvery > 0 && c.ObserveEvery < 1e-3 {
		return at("$.cluster.observe_s", "at least 0.001")
	}
	for i, n := range c.Neighbours {
		if n < -1 || n >= c.GPUs || n == i {
			return at("$.cluster.neighbours", "GPU %d has neighbour %d", i, n)
		}
	}
	for _, row := range append(slices.Clone(c.NVLink), c.Contention...) {
		for _, v := range row {
			if !(v >= 0 && v < 1e6) {
				return at("$.cluster", "value %g is out of range", v)
			}
		}
	}
	for _, row := range c.NVLink {
		if len(row) != c.GPUs {
			return at("$.cluster.nvlink", "needs one column a GPU")
		}
	}
	for _, row := range c.Contention {
		if len(row) != 3 {
			return at("$.cluster.contention", "needs columns light, medium, heavy")
		}
	}
	for _, models := range c.Prebaked {
		for _, m := range models {
			if _, ok := s.profiles.Models[m]; !ok {
				return at("$.cluster.prebaked", "no model %q in the profiles", m)
			}
		}
	}
	total := 0
	for i, f := range s.Functions {
		path := fmt.Sprintf("$.functions[%d]", i)
		m, ok := s.profiles.Models[f.Model]
		switch {
		case f.Name == "" || f.Copies < 0 || f.Copies > maxFunctions:
			return at(path, "a function needs a name, and copies of 1 or more")
		case !ok:
			return at(path, "no model %q in the profiles", f.Model)
		case !(f.Rate >= 0 && f.Rate < 1e6 && f.SLO >= 0 && f.SLO < 1e9 && f.Weight >= 0 && f.Weight < 1e9 && f.Start >= 0 && f.Slots >= 0):
			return at(path, "rate, slo_s, weight, start_s or slots is out of range")
		case c.GPUMemoryGB > 0 && m.MemoryGB > c.GPUMemoryGB:
			return at(path, "model %s needs %g GB, a GPU has %g", f.Model, m.MemoryGB, c.GPUMemoryGB)
		}
		if _, err := m.load(s.Strategy, c.Prestarted); err != nil {
			return at(path, "model %s: %v", f.Model, err)
		}
		if _, err := m.load(nativeStart, c.Prestarted); err != nil && c.Artifacts == "absent" {
			return at(path, "model %s without its artifact: %v", f.Model, err)
		}
		if total += max(f.Copies, 1); total > maxFunctions {
			return at("$.functions", "more than %d functions", maxFunctions)
		}
	}
	if err := s.Workload.check(s); err != nil {
		return err
	}
	_, err := schedule.New(s.Policy.Name, s.params(s.deployed(), 0))
	if err != nil {
		return &yamlfile.FieldError{Path: "$.policy", Err: err}
	}
	return s.checkFigures()
}

// deployed expands copies.
func (s *Scenario) deployed() []Function {
	var out []Function
	for _, f := range s.Functions {
		n := max(f.Copies, 1)
		for i := range n {
			g := f
			if n > 1 {
				g.Name = fmt.Sprintf("%s-%d", f.Name, i+1)
			}
			out = append(out, g)
		}
	}
	return out
}

// params maps the scenario to the policy's parameters.
func (s *Scenario) params(functions []Function, seed uint64) schedule.Params {
	p := s.Policy
	out := schedule.Params{
		Functions: len(functions), D: p.D, T: p.T, Alpha: p.Alpha, Limit: p.UtilizationLimit, WarmFirst: p.WarmFirst,
		UnitTau: p.UnitTau, O3Limit: p.O3Limit, MaxBatch: p.MaxBatch, Seed: seed,
	}
	for _, f := range functions {
		if f.Weight == 0 {
			f.Weight = 1
		}
		out.Weights = append(out.Weights, f.Weight)
		if strings.HasPrefix(p.Name, "torpor") {
			out.Deadline = append(out.Deadline, f.SLO)
		}
	}
	for n := range s.Cluster.Nodes {
		for g := range s.Cluster.GPUs {
			neighbour := -1
			if s.Cluster.Neighbours != nil && s.Cluster.Neighbours[g] >= 0 {
				neighbour = n*s.Cluster.GPUs + s.Cluster.Neighbours[g]
			}
			out.Topology.Neighbour = append(out.Topology.Neighbour, neighbour)
			if s.Cluster.NVLink != nil {
				row := make([]float64, s.Cluster.Nodes*s.Cluster.GPUs)
				copy(row[n*s.Cluster.GPUs:], s.Cluster.NVLink[g])
				out.Topology.NVLink = append(out.Topology.NVLink, row)
			}
		}
	}
	return out
}

// finite reports whether v is a usable number.
func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
