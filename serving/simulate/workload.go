package simulate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sort"

	"medusa/internal/yamlfile"
)

// Workload gives the arrival times and the lengths of requests.
type Workload struct {
	Kind     string  `yaml:"kind"`       // poisson, zipf, azure, table or trace
	Rate     float64 `yaml:"rate"`       // requests per second over all functions; 0: the sum of the functions' rates
	Duration float64 `yaml:"duration_s"` // not for traces, which end by themselves
	Exponent float64 `yaml:"exponent"`   // zipf: rate of the i-th function ∝ 1/i^exponent
	Burst    float64 `yaml:"burst"`      // azure: coefficient of variation of the gaps; 1 is Poisson
	Gaps     string  `yaml:"gaps"`       // table: exponential (default) or poisson-ms, whole milliseconds drawn from a Poisson distribution
	File     string  `yaml:"file"`       // table and trace
	Columns  int     `yaml:"columns"`    // table: use the first so many minutes
	Lengths  string  `yaml:"lengths"`    // sharegpt (default) or fixed
	Prompt   int     `yaml:"prompt"`     // fixed
	Output   int     `yaml:"output"`

	trace *recording
	table [][]float64
}

// ShareGPT-like lengths: log-normal with the moments of the logarithms in Medusa's shipped request logs, which draw from
// ShareGPT with prompt and output together below 2048 tokens.
const (
	promptMu, promptSigma = 3.857, 1.514
	outputMu, outputSigma = 5.476, 1.075
	maxTokens             = 2048
	meanOutput            = 357
)

func (w *Workload) check(s *Scenario) error {
	at := func(field, format string, args ...any) error {
		return &yamlfile.FieldError{Path: "$.workload" + field, Err: fmt.Errorf("check workload: "+format, args...)}
	}
	if !slices.Contains([]string{"poisson", "zipf", "azure", "table", "trace"}, w.Kind) {
		return at(".kind", "unknown kind %q (poisson, zipf, azure, table or trace)", w.Kind)
	}
	if !slices.Contains([]string{"", "sharegpt", "fixed"}, w.Lengths) {
		return at(".lengths", "unknown lengths %q (sharegpt or fixed)", w.Lengths)
	}
	if !slices.Contains([]string{"", "exponential", "poisson-ms"}, w.Gaps) {
		return at(".gaps", "unknown gaps %q (exponential or poisson-ms)", w.Gaps)
	}
	for _, v := range []float64{w.Rate, w.Duration, w.Exponent, w.Burst} {
		if !(v >= 0 && v < 1e8) {
			return at("", "value %g is out of range", v)
		}
	}
	if w.Prompt < 0 || w.Output < 0 || w.Prompt > 1e7 || w.Output > 1e7 {
		return at("", "prompt and output are 0 to 10 million tokens")
	}
	if w.Kind == "trace" {
		if w.trace == nil {
			return at(".file", "a trace needs a file")
		}
		return nil
	}
	if !(w.Duration > 0) {
		return at(".duration_s", "must be positive")
	}
	if w.Kind == "table" && len(w.table) == 0 {
		return at(".file", "a table needs a file")
	}
	if w.Columns < 0 {
		return at(".columns", "must not be negative")
	}
	total := w.Rate
	if total == 0 && w.Kind != "table" {
		for _, f := range s.deployed() {
			total += f.Rate
		}
		if total == 0 {
			return at(".rate", "no rate, neither here nor at the functions")
		}
	}
	if w.Kind == "table" {
		n := float64(len(s.deployed()))
		for _, row := range w.table {
			for _, v := range row {
				total = math.Max(total, v/60*n)
			}
		}
	}
	if total*w.Duration > maxRequests {
		return at("", "%.0f requests, at most %d", total*w.Duration, maxRequests)
	}
	return nil
}

// requests draws the workload for one seed, in order of arrival.
func (w *Workload) requests(functions []Function, seed uint64) []request {
	// Separate streams: a change in drawing lengths does not change arrivals.
	arrivals := rand.New(rand.NewPCG(seed, 0xa))
	lengths := rand.New(rand.NewPCG(seed, 0xb))
	var out []request
	switch w.Kind {
	case "trace":
		return w.trace.requests(functions)
	case "table":
		out = w.fromTable(len(functions), arrivals)
	default:
		for fn, rate := range w.rates(functions) {
			out = append(out, w.renewal(fn, functions[fn].Start, rate, arrivals)...)
		}
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].arrival < out[j].arrival })
	for i := range out {
		out[i].prompt, out[i].output = w.lengths(lengths)
	}
	return out
}

// rates gives each function its requests per second.
func (w *Workload) rates(functions []Function) []float64 {
	out := make([]float64, len(functions))
	sum := 0.0
	for i, f := range functions {
		out[i] = f.Rate
		if w.Kind == "zipf" {
			out[i] = math.Pow(float64(i+1), -w.Exponent)
		}
		sum += out[i]
	}
	if w.Rate > 0 {
		for i := range out {
			if sum == 0 {
				out[i] = w.Rate / float64(len(out))
			} else {
				out[i] *= w.Rate / sum
			}
		}
	}
	return out
}

// renewal draws one function's arrivals: with exponential gaps, or for azure with gamma-distributed gaps. A high coefficient of
// variation makes bursts, because Azure's functions arrive in bursts (coefficients of 1 to 10 are common there).
func (w *Workload) renewal(fn int, start, rate float64, rng *rand.Rand) []request {
	if rate <= 0 {
		return nil
	}
	gap := rng.ExpFloat64
	if w.Kind == "azure" && w.Burst > 0 && w.Burst != 1 {
		shape := 1 / (w.Burst * w.Burst)
		gap = func() float64 { return gamma(rng, shape) / shape }
	}
	var out []request
	for t := start + gap()/rate; t < w.Duration; t += gap() / rate {
		out = append(out, request{arrival: t, fn: int32(fn)})
	}
	return out
}

// gamma draws from a gamma distribution of unit scale (Marsaglia and Tsang; below shape 1 by their boost).
func gamma(rng *rand.Rand, shape float64) float64 {
	if shape < 1 {
		return gamma(rng, shape+1) * math.Pow(rng.Float64(), 1/shape)
	}
	d := shape - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := rng.NormFloat64()
		v := 1 + c*x
		if v <= 0 {
			continue
		}
		v = v * v * v
		if math.Log(rng.Float64()) < 0.5*x*x+d-d*v+d*math.Log(v) {
			return d * v
		}
	}
}

// fromTable draws from requests per minute. Each function takes a random row, with replacement, as in the load generator of
// Torpor's authors. Within a minute all arrivals share one stream of gaps.
func (w *Workload) fromTable(functions int, rng *rand.Rand) []request {
	rows := make([]int, functions)
	for i := range rows {
		rows[i] = rng.IntN(len(w.table))
	}
	columns := len(w.table[0])
	if w.Columns > 0 {
		columns = min(columns, w.Columns)
	}
	var out []request
	cumulated := make([]float64, functions)
	for minute := 0; float64(minute)*60 < w.Duration; minute++ {
		total := 0.0
		for i, r := range rows {
			total += w.table[r][minute%columns]
			cumulated[i] = total
		}
		if total == 0 {
			continue
		}
		end := math.Min(float64(minute+1)*60, w.Duration)
		for t := float64(minute)*60 + w.gap(rng, total); t < end; t += w.gap(rng, total) {
			fn := sort.SearchFloat64s(cumulated, rng.Float64()*total)
			out = append(out, request{arrival: t, fn: int32(min(fn, functions-1))})
		}
	}
	return out
}

// gap is the time to the next of perMinute arrivals. The authors of Torpor draw whole milliseconds from a Poisson distribution,
// which is much smoother than a Poisson process.
func (w *Workload) gap(rng *rand.Rand, perMinute float64) float64 {
	mean := 60 / perMinute
	if w.Gaps != "poisson-ms" {
		return rng.ExpFloat64() * mean
	}
	return math.Max(poisson(rng, mean*1000), 0.001) / 1000
}

// poisson draws from a Poisson distribution: by inversion, or for large means by the normal limit.
func poisson(rng *rand.Rand, mean float64) float64 {
	if mean > 200 {
		return math.Max(0, math.Round(mean+math.Sqrt(mean)*rng.NormFloat64()))
	}
	limit, n, p := math.Exp(-mean), 0.0, rng.Float64()
	for p > limit {
		n++
		p *= rng.Float64()
	}
	return n
}

func (w *Workload) lengths(rng *rand.Rand) (prompt, output int32) {
	if w.Lengths == "fixed" {
		return int32(max(w.Prompt, 1)), int32(max(w.Output, 1))
	}
	for {
		p := math.Round(math.Exp(promptMu + promptSigma*rng.NormFloat64()))
		o := math.Round(math.Exp(outputMu + outputSigma*rng.NormFloat64()))
		if p >= 1 && o >= 1 && p+o < maxTokens {
			return int32(p), int32(o)
		}
	}
}

// open reads the files that the workload names, relative to dir.
func (w *Workload) open(dir string) error {
	switch {
	case w.File == "":
		return nil
	case w.Kind == "trace":
		t, err := readTrace(filepath.Join(dir, w.File))
		w.trace = t
		return err
	case w.Kind == "table":
		t, err := readTable(filepath.Join(dir, w.File))
		w.table = t
		return err
	}
	return nil
}
