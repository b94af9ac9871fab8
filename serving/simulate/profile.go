package simulate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"medusa/internal/yamlfile"
)

// Strategy is a way to start a worker cold.
type Strategy string

// The strategies that Medusa's evaluation compares.
const (
	nativeStart   Strategy = "native"    // vLLM unchanged
	asyncStart    Strategy = "async"     // weights beside tokenizer and KV cache
	noGraphsStart Strategy = "no-graphs" // native without CUDA graphs: starts sooner, decodes slower
	kvOnlyStart   Strategy = "kv-only"   // KV profile restored, graphs captured
	restoredStart Strategy = "restored"  // Medusa: KV profile and graphs restored
)

// strategies lists all strategies.
func strategies() []Strategy {
	return []Strategy{nativeStart, asyncStart, noGraphsStart, kvOnlyStart, restoredStart}
}

// profiles is the cost of each model on one type of GPU, all times in seconds. It comes from a file or from artifacts.
type profiles struct {
	GPU    string             `yaml:"gpu" json:"gpu"`
	Device string             `yaml:"device" json:"device"` // the device name as measured
	Source string             `yaml:"source" json:"source"`
	Models map[string]profile `yaml:"models" json:"models"`
}

// profile is the cost of one model. A language model has an Engine; any other function has a Service time per request.
type profile struct {
	MemoryGB   float64                         `yaml:"memory_gb" json:"memory_gb"`     // on the device while serving
	WeightsGB  float64                         `yaml:"weights_gb" json:"weights_gb"`   // read by a cold start
	ArtifactGB float64                         `yaml:"artifact_gb" json:"artifact_gb"` // moved when the artifact is remote
	Engine     *engine                         `yaml:"engine" json:"engine,omitempty"`
	Service    float64                         `yaml:"service_s" json:"service_s,omitempty"`
	Artifact   string                          `yaml:"artifact" json:"artifact,omitempty"` // file whose stage times replace stages
	Stages     map[Strategy]map[string]float64 `yaml:"stages" json:"stages,omitempty"`     // of a start on an idle host
	Observed   map[Strategy]observedLoad       `yaml:"observed" json:"observed,omitempty"`
	Host       float64                         `yaml:"host_s" json:"host_s,omitempty"`           // weights in host memory to the device
	Peer       float64                         `yaml:"peer_s" json:"peer_s,omitempty"`           // from another GPU
	Class      string                          `yaml:"class" json:"class,omitempty"`             // light, medium or heavy to copy
	Load       float64                         `yaml:"utilization" json:"utilization,omitempty"` // share of the device one request uses; default 0.5
}

// observedLoad is the load time observed while serving: of the first worker of an idle node, and of further ones.
type observedLoad struct {
	First float64 `yaml:"first" json:"first"`
	Later float64 `yaml:"later" json:"later"`
}

// engine is the time of one engine step. One request is admitted per step; other steps decode one token for all.
type engine struct {
	Prefill       float64 `yaml:"prefill_s" json:"prefill_s"`
	PrefillToken  float64 `yaml:"prefill_token_s" json:"prefill_token_s"`
	Decode        float64 `yaml:"decode_s" json:"decode_s"`
	DecodeRequest float64 `yaml:"decode_request_s" json:"decode_request_s"`
	// The same without CUDA graphs.
	EagerDecode        float64 `yaml:"eager_decode_s" json:"eager_decode_s"`
	EagerDecodeRequest float64 `yaml:"eager_decode_request_s" json:"eager_decode_request_s"`
}

// runtimeStage initializes the runtime. A pre-started worker has done this stage already, and no other.
const runtimeStage = "runtime"

var stageNames = []string{runtimeStage, "structure", "tokenizer", "kv_profile", "kv_cache", "weights", "warmup", "capture", "ready"}

// load is the time from the request for a worker until it serves, on an idle host.
func (p *profile) load(s Strategy, prestarted bool) (float64, error) {
	stages, ok := p.Stages[s]
	if !ok && s == noGraphsStart {
		// Eager mode is native without the capture stage.
		stages, ok = p.Stages[nativeStart]
		stages = maps.Clone(stages)
		delete(stages, "capture")
	}
	if !ok {
		return 0, fmt.Errorf("look up start times: no stages for strategy %q", s)
	}
	total := 0.0
	for _, name := range slices.Sorted(maps.Keys(stages)) {
		if name != runtimeStage || !prestarted {
			total += stages[name]
		}
	}
	return total, nil
}

// simulatedDevice recognizes the names of the simulated GPU. Its times are not those of hardware.
func simulatedDevice(name string) bool {
	return strings.Contains(strings.ToLower(name), "simulated")
}

// check reports the first value that cannot come from a measurement, as a path into the profile file.
func (p *profiles) check() error {
	for _, s := range []string{p.GPU, p.Device} {
		if simulatedDevice(s) {
			return &yamlfile.FieldError{Path: "$", Err: fmt.Errorf("refuse profile of %q: its times are not those of hardware", s)}
		}
	}
	if len(p.Models) == 0 {
		return &yamlfile.FieldError{Path: "$", Err: fmt.Errorf("read profile: no models")}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Models)) {
		m := p.Models[name]
		at := func(field, format string, args ...any) error {
			return &yamlfile.FieldError{Path: "$.models." + name + field, Err: fmt.Errorf("check model %s: "+format, append([]any{name}, args...)...)}
		}
		if (m.Engine == nil) == (m.Service == 0) {
			return at("", "needs either engine or service_s")
		}
		for _, v := range []float64{m.MemoryGB, m.WeightsGB, m.ArtifactGB, m.Service, m.Host, m.Peer, m.Load} {
			if !(v >= 0 && v < 1e6) {
				return at("", "value %g is out of range", v)
			}
		}
		if e := m.Engine; e != nil {
			for _, v := range []float64{e.Prefill, e.PrefillToken, e.Decode, e.DecodeRequest, e.EagerDecode, e.EagerDecodeRequest} {
				if !(v >= 0 && v < 1e3) {
					return at(".engine", "value %g is out of range", v)
				}
			}
			if e.Prefill+e.PrefillToken == 0 || e.Decode+e.DecodeRequest == 0 {
				return at(".engine", "a step must take time")
			}
		}
		if !slices.Contains([]string{"", "light", "medium", "heavy"}, m.Class) {
			return at(".class", "unknown class %q (light, medium or heavy)", m.Class)
		}
		for s, stages := range m.Stages {
			if !slices.Contains(strategies(), s) {
				return at(".stages", "unknown strategy %q", s)
			}
			for stage, v := range stages {
				if !slices.Contains(stageNames, stage) {
					return at(".stages", "unknown stage %q (known: %s)", stage, strings.Join(stageNames, ", "))
				}
				if !(v >= 0 && v < 1e5) {
					return at(".stages", "stage %s takes %g s", stage, v)
				}
			}
		}
		for s, o := range m.Observed {
			if !slices.Contains(strategies(), s) || !(o.First > 0 && o.First < 1e5 && o.Later > 0 && o.Later < 1e5) {
				return at(".observed", "strategy %q needs positive first and later", s)
			}
		}
	}
	return nil
}
