package dispatch

import "medusa/serving/schedule"

// steady is a view of live machines that stays the same during a decision: it repeats its first answer to a question. Machines change
// at any time, but a policy relies on the answer that a GPU accepts a request, and a log has one answer.
type steady struct {
	schedule.Cluster
	known map[asked]float64 // of this decision
}

func (s steady) ask(q asked, live func() float64) float64 {
	// mutant: one answer a decision
	if answer, ok := s.known[q]; ok {
		return answer
	}
	answer := live()
	s.known[q] = answer
	return answer
}

// truth is 1 for true, else 0.
func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

func (s steady) Accepts(gpu, fn int) bool {
	return s.ask(asked{accepts, gpu, fn}, func() float64 { return truth(s.Cluster.Accepts(gpu, fn)) }) != 0
}
func (s steady) Holds(gpu, fn int) bool {
	return s.ask(asked{holds, gpu, fn}, func() float64 { return truth(s.Cluster.Holds(gpu, fn)) }) != 0
}
func (s steady) InFlight(gpu int) int {
	return int(s.ask(asked{inFlight, gpu, -1}, func() float64 { return float64(s.Cluster.InFlight(gpu)) }))
}
func (s steady) Start(gpu, fn int) float64 {
	return s.ask(asked{start, gpu, fn}, func() float64 { return s.Cluster.Start(gpu, fn) })
}
func (s steady) Service(fn int) float64 {
	return s.ask(asked{service, -1, fn}, func() float64 { return s.Cluster.Service(fn) })
}
func (s steady) FinishTime(gpu int) float64 {
	return s.ask(asked{finishTime, gpu, -1}, func() float64 { return s.Cluster.FinishTime(gpu) })
}
func (s steady) Traffic(gpu int) schedule.Traffic {
	return schedule.Traffic(s.ask(asked{traffic, gpu, -1}, func() float64 { return float64(s.Cluster.Traffic(gpu)) }))
}
func (s steady) Utilization(gpu int) float64 {
	return s.ask(asked{utilization, gpu, -1}, func() float64 { return s.Cluster.Utilization(gpu) })
}
