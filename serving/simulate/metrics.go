package simulate

import (
	"math"
	"slices"
)

// Summary is the result of one run. Times are in seconds.
type Summary struct {
	Seed     uint64 `json:"seed"`
	Requests int    `json:"requests"`
	Served   int    `json:"served"` // less than Requests only if some could never run

	Spread
	// FairnessGap is the difference in service between the most and the least served of the functions that are backlogged for all
	// of a 30 s window, as the mean over windows. FairnessLag is the largest difference in service, divided by the weights,
	// between two functions over any interval in which both are backlogged throughout. Jain is Jain's index over the functions'
	// service rates.
	FairnessGap float64 `json:"fairness_gap_s"`
	FairnessLag float64 `json:"fairness_lag_s"`
	Jain        float64 `json:"jain_index"`
	// LatencyVariance is over requests; FunctionVariance over the functions' mean latencies.
	LatencyVariance  float64 `json:"latency_variance"`
	FunctionVariance float64 `json:"function_variance"`
	// FalseMissRatio is the share of starts while another GPU had a worker of the function.
	FalseMissRatio float64 `json:"false_miss_ratio"`
	// Complying is the number of functions that met the deadline with at least 98 % of their requests.
	Complying      int     `json:"complying_functions"`
	ComplyingRatio float64 `json:"complying_ratio"`
	Executed       int     `json:"executed_functions"` // functions with at least one request served

	Functions []FunctionSummary `json:"functions"`
	Models    []FunctionSummary `json:"models"` // over all functions of a model
	Series    []Point           `json:"series"`
	Quantiles []float64         `json:"ttft_quantiles"` // at 0 %, 1 %, … 100 %
}

// Spread is the part of a summary that each function has too.
type Spread struct {
	TTFTMean    float64 `json:"ttft_mean"`
	TTFTP50     float64 `json:"ttft_p50"`
	TTFTP90     float64 `json:"ttft_p90"`
	TTFTP98     float64 `json:"ttft_p98"`
	TTFTP99     float64 `json:"ttft_p99"`
	LatencyMean float64 `json:"latency_mean"`
	LatencyP99  float64 `json:"latency_p99"`
	Throughput  float64 `json:"throughput"` // requests per second, first arrival to last completion
	ColdRatio   float64 `json:"cold_ratio"`
	MissRatio   float64 `json:"miss_ratio"` // any start: cold, from host memory or from another GPU
	GPUSeconds  float64 `json:"gpu_seconds"`
	SLO         float64 `json:"slo_attainment"` // share of requests within their function's deadline; 1 without one
}

// FunctionSummary is one function's part.
type FunctionSummary struct {
	Name     string  `json:"name"`
	Requests int     `json:"requests"`
	Service  float64 `json:"service_s"`
	Replicas float64 `json:"replicas"` // workers on GPUs, mean over the run
	Spread
}

// Point is one interval of the time series.
type Point struct {
	At      float64 `json:"at"`
	Arrived int     `json:"arrived"`
	Served  int     `json:"served"`
	Cold    int     `json:"cold"`
	Waiting int     `json:"waiting"` // at the interval's end: arrived, but without a first token
	P99     float64 `json:"ttft_p99"`
}

// seriesPoints is the number of points of a run's time series.
const seriesPoints = 120

// quantile is the q-th quantile of sorted values with linear interpolation, as in numpy. It is 0 if there are no values.
func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	at := q * float64(len(sorted)-1)
	lo := int(at)
	hi := min(lo+1, len(sorted)-1)
	return sorted[lo] + (sorted[hi]-sorted[lo])*(at-float64(lo))
}

func (s *sim) summarize(seed uint64) *Summary {
	out := &Summary{Seed: seed, Requests: len(s.requests)}
	per := make([][]*request, len(s.fns))
	var all []*request
	for i := range s.requests {
		if r := &s.requests[i]; r.done {
			all = append(all, r)
			per[r.fn] = append(per[r.fn], r)
		}
	}
	out.Served = len(all)
	span := 0.0
	for _, r := range all {
		span = math.Max(span, r.end)
	}
	out.Spread = s.spread(all, span)
	var starts, stray int
	var service, means []float64
	deployed := 0
	asked := make([]int, len(s.fns))
	for i := range s.requests {
		asked[s.requests[i].fn]++
	}
	for i, rs := range per {
		f := &s.fns[i]
		fs := FunctionSummary{Name: f.Name, Requests: asked[i], Spread: s.spread(rs, span)}
		fs.GPUSeconds = f.busy + f.loading
		fs.Replicas = s.replicas(f, span)
		out.GPUSeconds += fs.GPUSeconds
		inTime := 0
		for _, r := range rs {
			fs.Service += r.end - r.start
			starts += int(b2u(r.kind != warm))
			stray += int(b2u(r.stray))
			inTime += int(b2u(f.SLO == 0 || r.first-r.arrival <= f.SLO))
		}
		out.Functions = append(out.Functions, fs)
		if asked[i] == 0 {
			continue
		}
		deployed++
		if len(rs) > 0 {
			out.Executed++
			means = append(means, fs.LatencyMean)
		}
		service = append(service, fs.Service)
		if float64(inTime) >= 0.98*float64(asked[i]) {
			out.Complying++
		}
	}
	out.Models = s.models(per, asked, span)
	out.ComplyingRatio = share(out.Complying, deployed)
	out.FalseMissRatio = share(stray, starts)
	out.Jain = jain(service)
	out.LatencyVariance = variance(all, func(r *request) float64 { return r.end - r.arrival })
	out.FunctionVariance = variance(means, func(v float64) float64 { return v })
	out.FairnessGap, out.FairnessLag = s.fairness(per, span)
	ttft := make([]float64, len(all))
	for i, r := range all {
		ttft[i] = r.first - r.arrival
	}
	slices.Sort(ttft)
	for p := range 101 {
		out.Quantiles = append(out.Quantiles, quantile(ttft, float64(p)/100))
	}
	out.Series = s.series(span)
	return out
}

// models summarizes functions that share a model, in the order of their first function.
func (s *sim) models(per [][]*request, asked []int, span float64) []FunctionSummary {
	var out []FunctionSummary
	index := map[string]int{}
	var requests [][]*request
	for i := range s.fns {
		f := &s.fns[i]
		k, ok := index[f.Model]
		if !ok {
			k = len(out)
			index[f.Model] = k
			out = append(out, FunctionSummary{Name: f.Model})
			requests = append(requests, nil)
		}
		out[k].Requests += asked[i]
		requests[k] = append(requests[k], per[i]...)
	}
	for k := range out {
		out[k].Spread = s.spread(requests[k], span)
		for _, r := range requests[k] {
			out[k].Service += r.end - r.start
		}
	}
	for i := range s.fns {
		m := &out[index[s.fns[i].Model]]
		m.GPUSeconds += s.fns[i].busy + s.fns[i].loading
		m.Replicas += s.replicas(&s.fns[i], span)
	}
	return out
}

func (s *sim) replicas(f *function, span float64) float64 {
	held := f.held
	for _, w := range f.workers {
		held += span - w.born
	}
	return held / math.Max(span, 1e-9)
}

func share(a, b int) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

func (s *sim) spread(rs []*request, span float64) Spread {
	out := Spread{SLO: 1}
	if len(rs) == 0 {
		return out
	}
	ttft, latency := make([]float64, len(rs)), make([]float64, len(rs))
	var colds, misses, inTime int
	for i, r := range rs {
		ttft[i], latency[i] = r.first-r.arrival, r.end-r.arrival
		out.TTFTMean += ttft[i] / float64(len(rs))
		out.LatencyMean += latency[i] / float64(len(rs))
		colds += int(b2u(r.kind == cold))
		misses += int(b2u(r.kind != warm))
		if slo := s.fns[r.fn].SLO; slo == 0 || ttft[i] <= slo {
			inTime++
		}
	}
	slices.Sort(ttft)
	slices.Sort(latency)
	out.TTFTP50, out.TTFTP90 = quantile(ttft, 0.5), quantile(ttft, 0.9)
	out.TTFTP98, out.TTFTP99 = quantile(ttft, 0.98), quantile(ttft, 0.99)
	out.LatencyP99 = quantile(latency, 0.99)
	if span > 0 {
		out.Throughput = float64(len(rs)) / span
	}
	out.ColdRatio, out.MissRatio, out.SLO = share(colds, len(rs)), share(misses, len(rs)), share(inTime, len(rs))
	return out
}

func variance[T any](items []T, value func(T) float64) float64 {
	if len(items) == 0 {
		return 0
	}
	mean, sum := 0.0, 0.0
	for _, it := range items {
		mean += value(it) / float64(len(items))
	}
	for _, it := range items {
		d := value(it) - mean
		sum += d * d
	}
	return sum / float64(len(items))
}

func (s *sim) series(span float64) []Point {
	if span == 0 {
		return nil
	}
	step := span / seriesPoints
	out := make([]Point, seriesPoints)
	ttft := make([][]float64, seriesPoints)
	slot := func(t float64) int { return min(int(t/step), seriesPoints-1) }
	change := make([]int, seriesPoints)
	for i := range s.requests {
		r := &s.requests[i]
		a := slot(r.arrival)
		out[a].Arrived++
		change[a]++
		if !r.done {
			continue
		}
		f := slot(r.first)
		change[f]--
		out[f].Served++
		out[a].Cold += int(b2u(r.kind == cold))
		ttft[a] = append(ttft[a], r.first-r.arrival)
	}
	waiting := 0
	for i := range out {
		waiting += change[i]
		slices.Sort(ttft[i])
		out[i].At, out[i].Waiting, out[i].P99 = float64(i)*step, waiting, quantile(ttft[i], 0.99)
	}
	return out
}
