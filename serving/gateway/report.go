package gateway

import (
	"fmt"
	"strings"

	"medusa/serving/agent"
)

// Report is the state of the server at one moment, for display.
type Report struct {
	Time   float64       `json:"time"` // seconds since the server's start
	Policy string        `json:"policy"`
	GPUs   []GPUReport   `json:"gpus"`
	Models []ModelReport `json:"models"`
}

// GPUReport is a GPU, and the engines on it that have a process or have failed.
type GPUReport struct {
	ID      string         `json:"id"`
	Memory  float64        `json:"memory"` // share that its engines have now
	Engines []EngineReport `json:"engines"`
}

// EngineReport is a model on a GPU.
type EngineReport struct {
	Model    string      `json:"model"`
	State    agent.State `json:"state"`
	Since    float64     `json:"since"` // seconds since the server's start
	Requests int         `json:"requests"`
	Memory   float64     `json:"memory"`          // share of the GPU's
	Error    string      `json:"error,omitempty"` // the reason of a failure
	Start    *Start      `json:"start,omitempty"` // how its last start went
}

// ModelReport is a model of the file.
type ModelReport struct {
	Name     string  `json:"name"`
	Deadline float64 `json:"deadline"` // seconds; 0: none
	Waiting  int     `json:"waiting"`  // requests without a turn
	Why      string  `json:"why"`      // the reason why they wait
	Running  int     `json:"running"`  // requests with a turn
	Answered int     `json:"answered"`
	Failed   int     `json:"failed"`  // status 500 and above
	Refused  int     `json:"refused"` // status 400 to 498
	Left     int     `json:"left"`    // clients that left before an answer
	InTime   int     `json:"in_time"`
	Late     int     `json:"late"`
	Starts   int     `json:"starts"`
	Wakes    int     `json:"wakes"`
	Failures int     `json:"failures"` // of engines
}

func (g *Server) report() *Report {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.setup.Load()
	out := &Report{Time: g.clock(), Policy: now.spec.Policy.Name}
	running := make([]int, len(now.models))
	for gpu, id := range now.gpus {
		r := GPUReport{ID: id, Engines: []EngineReport{}}
		for place, m := range now.models {
			at := g.agent.Standing(gpu, place)
			r.Memory += at.Memory
			running[place] += at.Requests
			if at.State == agent.Cold {
				continue
			}
			e := EngineReport{Model: m.Name, State: at.State, Since: at.Since, Requests: at.Requests, Memory: at.Memory, Start: g.starts.of(m.Name, id)}
			if at.Failure != nil {
				e.Error = at.Failure.Error()
			}
			r.Engines = append(r.Engines, e)
		}
		if now.has(id) || len(r.Engines) > 0 {
			out.GPUs = append(out.GPUs, r)
		}
	}
	for i := range now.spec.Models {
		m := &now.spec.Models[i]
		place := now.functions[m.Name]
		r := ModelReport{Name: m.Name, Deadline: m.Deadline, Waiting: g.waiting[place], Running: running[place]}
		if r.Waiting > 0 {
			r.Why = g.why(now, place)
		}
		out.Models = append(out.Models, r)
	}
	g.fill(out.Models)
	return out
}

// fill copies the counters into the models.
func (g *Server) fill(models []ModelReport) {
	changes := map[entered]int{}
	for _, c := range g.history.counts() {
		changes[c.entered] = c.n
	}
	g.count.mu.Lock()
	defer g.count.mu.Unlock()
	for i := range models {
		r := &models[i]
		r.InTime, r.Late = g.count.inTime[r.Name], g.count.late[r.Name]
		r.Starts, r.Wakes = changes[entered{r.Name, agent.Starting}], changes[entered{r.Name, agent.Waking}]
		r.Failures = changes[entered{r.Name, agent.Failed}]
		for status, n := range g.count.answers[r.Name] {
			switch {
			case status >= 500:
				r.Failed += n
			case status == statusLeft:
				r.Left += n
			case status >= 400:
				r.Refused += n
			default:
				r.Answered += n
			}
		}
	}
}

// why returns the reason of each GPU why a model's requests wait.
func (g *Server) why(now *setup, place int) string {
	var reasons []string
	for gpu, id := range now.gpus {
		if !now.has(id) {
			continue
		}
		switch o := g.agent.Obstacle(gpu, place); o {
		case agent.Turn:
			reasons = append(reasons, fmt.Sprintf("GPU %s: others come first", id))
		case agent.Full:
			reasons = append(reasons, fmt.Sprintf("GPU %s: its engine has as many requests as it takes", id))
		case agent.Room:
			reasons = append(reasons, fmt.Sprintf("GPU %s: engines with requests, and kept ones, leave too little memory", id))
		case agent.Broken:
			again := g.agent.Standing(gpu, place).Retry - g.clock()
			reasons = append(reasons, fmt.Sprintf("GPU %s: its engine has failed, no new one is started for %.0f s", id, max(0, again)))
		}
	}
	return strings.Join(reasons, "; ")
}
