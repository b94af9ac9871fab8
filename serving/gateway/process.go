package gateway

import (
	"os"
	"sort"
	"strings"

	"medusa/internal/contract"
	"medusa/serving/agent"
)

// command returns the engine's command on a GPU, and whether its starts are restored. Then the command begins with `medusa restore`;
// self is the path of medusa, status the file for its account of the start.
func (m *Model) command(self, gpu, status string) (argv []string, restored bool) {
	if restored = m.Artifact != ""; restored {
		argv = []string{self, "restore"}
		if status != "" {
			argv = append(argv, "--status", status)
		}
		if m.Pool != "" {
			argv = append(argv, "--pool", m.Pool)
		}
		for _, path := range m.Weights {
			argv = append(argv, "--weights", path)
		}
		argv = append(argv, m.Artifact, "--")
	}
	for _, word := range m.Command {
		argv = append(argv, m.fill(gpu).Replace(word))
	}
	return argv, restored
}

func (m *Model) fill(gpu string) *strings.Replacer {
	return strings.NewReplacer("{gpu}", gpu, "{name}", m.Name)
}

// process makes the engine of a model on a GPU. status is the file for its account of its start.
func (g *machine) process(m *Model, gpu, status string) agent.Engine {
	self, err := os.Executable()
	if err != nil {
		self = "medusa"
	}
	argv, restored := m.command(self, gpu, status)
	env := contract.Inherited()
	if restored {
		env = os.Environ()
	}
	if g.home != nil {
		env = append(env, g.home.Environ())
	}
	// GPU numbers are in the order of nvidia-smi, which measures them.
	env = append(env, "CUDA_DEVICE_ORDER=PCI_BUS_ID", "CUDA_VISIBLE_DEVICES="+gpu)
	var own []string
	for name, value := range m.Env {
		own = append(own, name+"="+m.fill(gpu).Replace(value))
	}
	sort.Strings(own)
	meter, err := agent.NewMeter(gpu)
	if err != nil {
		meter = nil // the server has warned of this at its start
	}
	return agent.NewProcess(m.Name, argv, append(env, own...), meter, g.out)
}
