package gateway

import (
	"math"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// The least and the largest default of a body's size. A picture of 20 MB has 27 MB as base64.
const (
	leastBody = 32 << 20
	mostBody  = 256 << 20
)

// shareOfBodies is the part of the memory that all bodies together have by default: a 512th, and at least two of the largest size.
const shareOfBodies = 512

// size sets the sizes that the file leaves open, by the machine's memory.
func (s *Spec) size(memory int64) {
	if s.MaxBody == 0 {
		s.MaxBody = min(max(memory/shareOfBodies/2, leastBody), mostBody)
	}
	if s.MaxBodies == 0 {
		s.MaxBodies = max(memory/shareOfBodies, 2*leastBody, s.MaxBody)
	}
}

// totalMemory is the memory of the machine, or of the container if that is less.
func totalMemory() int64 {
	total := int64(math.MaxInt64)
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) == nil {
		total = int64(info.Totalram) * int64(info.Unit)
	}
	if text, err := os.ReadFile("/sys/fs/cgroup/memory.max"); err == nil {
		if limit, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil {
			total = min(total, limit)
		}
	}
	return total
}
