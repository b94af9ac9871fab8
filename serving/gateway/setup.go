package gateway

import (
	"fmt"
	"maps"
	"net/http"
	"slices"

	"medusa/serving/agent"
	"medusa/serving/dispatch"
	"medusa/serving/schedule"
)

// setup is a configuration in force. Engines and requests know models and GPUs by their places. A model or GPU that a later configuration
// keeps keeps its place. A setup never changes.
type setup struct {
	spec      *Spec
	keys      map[string]bool
	functions map[string]int // places by name, of the models of the file
	models    []*Model       // by place, with those that leave
	gpus      []string       // by place, with those that leave
	fresh     []int          // places of models that had another model before
	loopback  bool           // only programs of this machine reach the server
	origins   *http.CrossOriginProtection
}

func firstSetup(s *Spec) (*setup, error) {
	return (&setup{}).next(s, nil)
}

// next makes the setup that follows. vacant tells which places of models are free.
func (u *setup) next(s *Spec, vacant func(place int) bool) (*setup, error) {
	keys, err := s.keys()
	if err != nil {
		return nil, err
	}
	trusted, err := origins(s.CORS)
	if err != nil {
		return nil, err
	}
	n := &setup{spec: s, keys: keys, loopback: isLoopback(s.Listen) && hostOf(s.Listen) != "", origins: trusted, functions: map[string]int{}, models: slices.Clone(u.models), gpus: slices.Clone(u.gpus)}
	defer func() {
		for i := range s.Models {
			for _, alias := range s.Models[i].Aliases {
				n.functions[alias] = n.functions[s.Models[i].Name]
			}
		}
	}()
	for _, id := range s.GPUs {
		if !slices.Contains(n.gpus, id) {
			n.gpus = append(n.gpus, id)
		}
	}
	taken := make([]bool, len(u.models))
	var others []*Model
	for i := range s.Models {
		m := &s.Models[i]
		place := slices.IndexFunc(u.models, m.sameEngine)
		if place < 0 {
			others = append(others, m)
			continue
		}
		taken[place] = true
		n.models[place], n.functions[m.Name] = m, place
	}
	for _, m := range others {
		place := 0
		for place < len(taken) && (taken[place] || !vacant(place)) {
			place++
		}
		if place < len(taken) {
			taken[place] = true
			n.models[place] = m
			n.fresh = append(n.fresh, place)
		} else {
			place = len(n.models)
			n.models = append(n.models, m)
		}
		n.functions[m.Name] = place
	}
	return n, nil
}

// sameEngine reports whether an engine of one model may go on as an engine of the other.
func (m *Model) sameEngine(other *Model) bool {
	return m.Name == other.Name && slices.Equal(m.Command, other.Command) && maps.Equal(m.Env, other.Env) && m.Artifact == other.Artifact && m.Pool == other.Pool && slices.Equal(m.Weights, other.Weights) &&
		m.Memory == other.Memory && m.Asleep == other.Asleep && m.HostGB == other.HostGB
}

// leaving reports whether the file no longer has the model at a place.
func (u *setup) leaving(place int) bool {
	now, ok := u.functions[u.models[place].Name]
	return !ok || now != place
}

// has reports whether the file has a GPU.
func (u *setup) has(gpu string) bool { return slices.Contains(u.spec.GPUs, gpu) }

// gone lists the places of GPUs that the file no longer has.
func (u *setup) gone() (list []int) {
	for place, id := range u.gpus {
		if !u.has(id) {
			list = append(list, place)
		}
	}
	return list
}

// machines is the agent's configuration.
func (u *setup) machines() agent.Config {
	s := u.spec
	c := agent.Config{GPUs: len(u.gpus), Leaving: u.gone(), HostMemory: gigabytes(s.HostMemory), Victim: victim(s.Policy.Name), Retry: seconds(s.Retry),
		Health: seconds(s.Health)}
	for place, m := range u.models {
		c.Models = append(c.Models, agent.Model{Name: m.Name, Memory: m.Memory, Slots: m.Slots, Sleep: m.Sleep, Asleep: m.Asleep, Keep: m.Keep, Idle: m.TTL,
			Host: gigabytes(m.HostGB), StartLimit: seconds(m.StartLimit), Start: m.Start, Wake: m.Wake, Service: m.Service, Leaving: u.leaving(place)})
	}
	return c
}

// policy is the queue's configuration.
func (u *setup) policy() dispatch.Config {
	c := dispatch.Config{Policy: u.spec.Policy.Name, Params: params(u.spec, u.models, u.gpus), GPUs: len(u.gpus), Models: described(u.models), HostGB: u.spec.HostMemory}
	for place := range u.models {
		c.Models[place].Leaving = u.leaving(place)
	}
	return c
}

// described are the models in the form of a log.
func described(models []*Model) (list []dispatch.Model) {
	for _, m := range models {
		list = append(list, dispatch.Model{Name: m.Name, Memory: m.Memory, Slots: m.Slots, Sleep: m.Sleep, HostGB: m.HostGB, Keep: m.Keep, Restored: m.Artifact != "",
			Start: m.Start, Wake: m.Wake, Service: m.Service})
	}
	return list
}

// params returns the parameters for package schedule, for models and GPUs by place.
func params(s *Spec, models []*Model, gpus []string) schedule.Params {
	policy := s.Policy
	p := schedule.Params{Functions: len(models), D: policy.D, T: policy.T, Alpha: policy.Alpha, Limit: policy.UtilizationLimit,
		WarmFirst: policy.WarmFirst, O3Limit: policy.O3Limit}
	for _, m := range models {
		p.Weights = append(p.Weights, m.Weight)
		if m.Deadline > 0 {
			p.Deadline = append(p.Deadline, m.Deadline)
		} else { // a model that leaves may have none
			p.Deadline = append(p.Deadline, m.Timeout)
		}
	}
	for range gpus {
		p.Topology.Neighbour = append(p.Topology.Neighbour, -1)
	}
	for _, pair := range s.Neighbours {
		a, b := slices.Index(gpus, pair[0]), slices.Index(gpus, pair[1])
		// mutant: neighbours of GPUs
		p.Topology.Neighbour[a], p.Topology.Neighbour[b] = b, a
	}
	return p
}

// Reload puts another configuration in force. Each request is answered under the configuration at its arrival: it keeps its model and
// engine. An engine that the new configuration lacks ends with its last request. If Reload fails, the old configuration stays in force.
func (g *Server) Reload(s *Spec) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	old := g.setup.Load()
	switch {
	case s.Listen != old.spec.Listen:
		return fmt.Errorf("reload configuration: listen is %s, a running server keeps %s", s.Listen, old.spec.Listen)
	case s.State != old.spec.State:
		return fmt.Errorf("reload configuration: state is %q, a running server keeps %q", s.State, old.spec.State)
	}
	now, err := old.next(s, g.free)
	if err != nil {
		return err
	}
	for len(g.using) < len(now.models) {
		g.using, g.waiting = append(g.using, 0), append(g.waiting, 0)
	}
	log, err := openAccess(s.AccessLog)
	if err != nil {
		return fmt.Errorf("reload configuration: %w", err)
	}
	err = g.queue.Reconfigure(now.policy(), now.gone(), func() {
		g.setup.Store(now)
		g.agent.Reconfigure(now.machines(), now.fresh)
		g.access.use(log)
	})
	if err != nil && log != nil {
		_ = log.Close() // nothing was written
	}
	return err
}

// free reports whether a place has no request and no engine.
func (g *Server) free(place int) bool {
	// mutant: places of models that requests know
	return g.using[place] == 0 && g.agent.Vacant(place)
}
