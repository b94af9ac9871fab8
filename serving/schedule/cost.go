package schedule

import "math"

// Locality is the place of a model's artifact, as seen from a node.
type Locality int

// The places of an artifact.
const (
	Absent Locality = iota
	Remote
	Local
)

// Cost is the cost of starting one (model, GPU type) pair, in seconds.
type Cost struct {
	Native  float64 // a cold start with no artifact
	Restore float64 // a cold start that restores a local artifact
	Fetch   float64 // bringing a remote artifact to the node
}

// Start is the cheapest cold start for an artifact at l. A remote artifact is fetched only if that pays.
func (c Cost) Start(l Locality) float64 {
	switch l {
	case Local:
		return c.Restore
	case Remote:
		return math.Min(c.Native, c.Fetch+c.Restore)
	}
	return c.Native
}
