package main

import (
	"os"
	"strconv"

	"medusa/artifacts"
	"medusa/internal/cuda"
	"medusa/restore"
)

// checkpoint is the file of weights that the engine loads, if ZOO_CHECKPOINT has its number: equal shapes, other values in each. The engine then says
// nothing of their contents unless it is asked. ZOO_BAKES names the place at which graphs hold a value made from them: "parameter", "struct" (a
// parameter), "buffer" (memory of the capture phase), "nodes" (their
// number), "branch" (the same, of one checkpoint that no recording loads).
type checkpoint struct {
	number int
	bakes  string
	scale  float32
	scales cuda.DevicePtr
}

// otherNumber is of a checkpoint that no test uses.
const otherNumber = 44

// open returns what the identity says of the weights.
func (c *checkpoint) open(s *restore.Session) artifacts.Identity {
	n, err := strconv.Atoi(os.Getenv("ZOO_CHECKPOINT"))
	if err != nil {
		return nil
	}
	c.number, c.bakes = n, os.Getenv("ZOO_BAKES")
	told := ""
	switch s.Weights() {
	case restore.OtherWeights:
		c.number, told = otherNumber, "other"
	case restore.CountedWeights:
		told = strconv.Itoa(n)
	}
	c.scale = float32(c.number%7) + 0.5
	if told == "" {
		return nil
	}
	return artifacts.Identity{{Key: artifacts.KeyModelCheckpoint, Value: told}}
}

// bake is the value of the parameter at a place.
func (c *checkpoint) bake(place string, plain float32) float32 {
	if c.bakes == place {
		return c.scale
	}
	return plain
}

// fill makes the memory of the capture phase.
func (c *checkpoint) fill() (err error) {
	if c.bakes != "buffer" {
		return nil
	}
	if c.scales, err = cuda.MemAlloc(size); err != nil {
		return err
	}
	return cuda.CopyToDevice(c.scales, floats(func(k int) float32 { return c.scale * float32(k%3) }))
}

// nodes are those that only some graphs have.
func (c *checkpoint) nodes(z *zoo) []func() error {
	var all []func() error
	if c.bakes == "buffer" {
		all = append(all, func() error {
			return z.on(z.stream, z.add, z.args.Reset().Ptr(z.output).Ptr(c.scales).Ptr(z.output).I32(elements))
		})
	}
	if c.bakes == "nodes" && c.number%2 == 1 || c.bakes == "branch" && c.number == 3 {
		all = append(all, func() error {
			return z.on(z.stream, z.add, z.args.Reset().Ptr(z.output).Ptr(z.input).Ptr(z.output).I32(elements))
		})
	}
	return all
}
