package simulate

import (
	"math"
	"slices"
	"sort"
)

// jain is Jain's fairness index: 1 if all values are equal, and 1/n if one has everything.
func jain(values []float64) float64 {
	sum, squares := 0.0, 0.0
	for _, v := range values {
		sum += v
		squares += v * v
	}
	if squares == 0 {
		return 1
	}
	return sum * sum / (float64(len(values)) * squares)
}

// gapWindow is the length of the windows of MQFQ's Figure 5. A backlog shorter than that is no test of fairness.
const gapWindow = 30.0

// interval is a stretch of time.
type interval struct{ from, to float64 }

// backlogs returns the intervals during which at least one of a function's requests is waiting at every moment. The requests are
// in order of arrival.
func backlogs(rs []*request) []interval {
	var out []interval
	for _, r := range rs {
		if last := len(out) - 1; last >= 0 && r.arrival <= out[last].to {
			out[last].to = math.Max(out[last].to, r.start)
		} else {
			out = append(out, interval{r.arrival, r.start})
		}
	}
	return out
}

func covers(all []interval, from, to float64) bool {
	return slices.ContainsFunc(all, func(i interval) bool { return i.from <= from && to <= i.to })
}

// account computes the service that a function has received up to any moment.
type account struct {
	starts, ends       []float64 // of its requests, each in order
	startsSum, endsSum []float64 // of the first n of them
	weight             float64
}

func newAccount(rs []*request, weight float64) account {
	a := account{weight: weight}
	for _, r := range rs {
		a.starts, a.ends = append(a.starts, r.start), append(a.ends, r.end)
	}
	a.startsSum, a.endsSum = sortAndSum(a.starts), sortAndSum(a.ends)
	return a
}

func sortAndSum(v []float64) []float64 {
	slices.Sort(v)
	sums := make([]float64, len(v)+1)
	for i, x := range v {
		sums[i+1] = sums[i] + x
	}
	return sums
}

// at is the service until t, in seconds divided by the weight. A request counts from its start until its end.
func (a *account) at(t float64) float64 {
	begun, ended := sort.SearchFloat64s(a.starts, t), sort.SearchFloat64s(a.ends, t)
	return (float64(begun-ended)*t - a.startsSum[begun] + a.endsSum[ended]) / a.weight
}

// fairness is FairnessGap and FairnessLag of a run.
func (s *sim) fairness(per [][]*request, span float64) (gap, lag float64) {
	var accounts []account
	var waiting [][]interval
	for i, rs := range per {
		long := slices.DeleteFunc(backlogs(rs), func(b interval) bool { return b.to-b.from < gapWindow })
		if len(long) == 0 {
			continue
		}
		weight := s.fns[i].Weight
		if weight == 0 {
			weight = 1
		}
		accounts = append(accounts, newAccount(rs, weight))
		waiting = append(waiting, long)
	}
	for i := range accounts {
		for j := range i {
			for _, a := range waiting[i] {
				for _, b := range waiting[j] {
					both := interval{math.Max(a.from, b.from), math.Min(a.to, b.to)}
					if both.to-both.from >= gapWindow {
						lag = math.Max(lag, widest(&accounts[i], &accounts[j], both))
					}
				}
			}
		}
	}
	return meanGap(accounts, waiting, span), lag
}

// widest is the largest difference in service between two functions over any part of an interval. It is the range of the
// difference of their accounts, which has its extremes at starts and ends of requests.
func widest(a, b *account, in interval) float64 {
	least, greatest := math.Inf(1), math.Inf(-1)
	look := func(t float64) {
		d := a.at(t) - b.at(t)
		least, greatest = math.Min(least, d), math.Max(greatest, d)
	}
	look(in.from)
	look(in.to)
	for _, times := range [][]float64{a.starts, a.ends, b.starts, b.ends} {
		for _, t := range times[sort.SearchFloat64s(times, in.from):sort.SearchFloat64s(times, in.to)] {
			look(t)
		}
	}
	return greatest - least
}

// meanGap measures fairness as MQFQ §6 does: per window, over the functions that wait for service during all of it.
func meanGap(accounts []account, waiting [][]interval, span float64) float64 {
	sum, windows := 0.0, 0
	for k := range int(span / gapWindow) {
		from, to := float64(k)*gapWindow, float64(k+1)*gapWindow
		least, greatest, count := math.Inf(1), 0.0, 0
		for i := range accounts {
			if covers(waiting[i], from, to) {
				count++
				v := accounts[i].at(to) - accounts[i].at(from)
				least, greatest = math.Min(least, v), math.Max(greatest, v)
			}
		}
		if count >= 2 {
			windows++
			sum += greatest - least
		}
	}
	if windows == 0 {
		return 0
	}
	return sum / float64(windows)
}
