package gateway

import (
	"os"
	"sort"
	"strings"

	"medusa/agent"
	"medusa/internal/contract"
)

// process makes the engine of a model on a GPU: its command, or the command behind `medusa restore` if there is an artifact.
func (g *machine) process(m *Model, gpu string) agent.Engine {
	fill := strings.NewReplacer("{gpu}", gpu, "{name}", m.Name)
	argv := make([]string, len(m.Command))
	for i, word := range m.Command {
		argv[i] = fill.Replace(word)
	}
	env := contract.Inherited()
	if m.Artifact != "" {
		self, err := os.Executable()
		if err != nil {
			self = "medusa"
		}
		argv = append([]string{self, "restore", m.Artifact, "--"}, argv...)
		env = os.Environ()
	}
	if g.home != nil {
		env = append(env, g.home.Environ())
	}
	// Numbers of GPUs are those of nvidia-smi, which measures them.
	env = append(env, "CUDA_DEVICE_ORDER=PCI_BUS_ID", "CUDA_VISIBLE_DEVICES="+gpu)
	var own []string
	for name, value := range m.Env {
		own = append(own, name+"="+fill.Replace(value))
	}
	sort.Strings(own)
	meter, err := agent.NewMeter(gpu)
	if err != nil {
		meter = nil // the server has said so at its start
	}
	return agent.NewProcess(m.Name, argv, append(env, own...), meter, g.out)
}
