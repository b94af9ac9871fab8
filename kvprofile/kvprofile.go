// Package kvprofile is the KV-cache memory profile (paper §3): the number of bytes that remain for the KV cache, and the
// measurements on which it depends.
//
// In: measurements of the engine in its profiling run. Out: the recorded bytes, and a check whether a device still has room for
// them. What can fail: a profile that contradicts itself (*InvalidError), and a device with other memory than recorded
// (*MemoryError). The engine does the measuring, not this package.
package kvprofile

import (
	"fmt"
	"math"
)

// Profile is the result of one profiling run. Sizes are in bytes. The zero Profile means that none was recorded.
type Profile struct {
	KVBytes       uint64  // for the KV cache
	TotalMemory   uint64  // of the device (cuMemGetInfo)
	FreeBefore    uint64  // free before the engine's first allocation: Check compares at this moment
	FreeAfter     uint64  // free after the profile forward, its activations released, before the KV cache is allocated
	PeakForward   uint64  // peak of the profile forward, beyond the memory that stayed allocated
	Utilization   float64 // share of the memory that the engine may use, 0 to 1
	ProfileTokens int64   // tokens in the profile forward
	Workspace     uint64  // size of the buffers that the profile forward has grown and that stay: part of FreeBefore - FreeAfter

	// Of an elastic cache. KVBytes are its addresses.
	Least   uint64 // memory that each start maps for it; 0: the cache has one size
	Block   uint64 // of a block, over all layers
	Reserve uint64 // memory that a start takes until it is ready, beyond the least part and what stays after the profile forward: graphs, for example
}

// Elastic says that the cache may have less memory than addresses.
func (p *Profile) Elastic() bool { return p.Least != 0 }

// Measured sets the reserve of an elastic cache by the memory that was free once an engine with the least part mapped was ready.
func (p *Profile) Measured(free uint64) {
	used := p.FreeBefore - min(free, p.FreeBefore)
	// mutant: memory that a start takes beside its KV cache
	p.Reserve = used - min(p.Least+p.resident(), used)
}

// Blocks is the number of blocks of an elastic cache in a number of bytes.
func (p *Profile) Blocks(bytes uint64) uint64 {
	if p.Block == 0 {
		return 0
	}
	return bytes / p.Block
}

// required is the memory that must be free, at the moment of FreeBefore, for the engine to fit again: the KV cache, the engine's
// permanent allocations (weights, workspaces), and one forward. It is at most FreeBefore, because that was enough, and what a start with an
// elastic cache was seen to take beyond.
func (p *Profile) required() uint64 {
	// mutant: memory that a start needs
	return min(p.KVBytes+p.resident()+p.PeakForward, p.FreeBefore) + p.Reserve
}

func (p *Profile) resident() uint64 {
	// mutant: memory that stays allocated
	return p.FreeBefore - min(p.FreeAfter, p.FreeBefore)
}

// Share is one part of the device's memory by the profile, for people to read.
type Share struct {
	Name  string
	Bytes uint64
}

// Shares lists what was measured and what follows from it. free is the memory that was free once an engine with this profile was ready, or
// 0 if nobody has measured that: it is the headroom.
func (p *Profile) Shares(free uint64) []Share {
	if *p == (Profile{}) {
		return nil
	}
	allowed := uint64(p.Utilization * float64(p.TotalMemory))
	// mutant: memory that the engine leaves for graphs
	left := allowed - min(allowed, p.KVBytes+p.resident()+p.PeakForward)
	shares := []Share{
		{"device", p.TotalMemory},
		{"free before the engine's first allocation", p.FreeBefore},
		{"allowed to the engine by its own setting", allowed},
		{"stays allocated after the profile forward: weights, workspaces", p.resident()},
		{"peak of the profile forward beyond that", p.PeakForward},
		{"KV cache, as the engine has sized it", p.KVBytes},
		{"left by the engine within its allowance: graphs and reserves", left},
	}
	if p.Elastic() {
		shares = append(shares,
			Share{"least part of the KV cache, which each start maps", p.Least},
			Share{"needed free by a restored start with the least part", p.required() - min(p.KVBytes-p.Least, p.required())},
			Share{"needed free by a restored start with all of it", p.required()})
	} else {
		shares = append(shares, Share{"needed free by a restored start", p.required()})
	}
	// mutant: headroom that was measured
	if free > 0 {
		shares = append(shares, Share{"headroom: free once the engine was ready", free})
	}
	return shares
}

// InvalidError names the field with an impossible value.
type InvalidError struct {
	Field  string
	Reason string
}

func (e *InvalidError) Error() string {
	return fmt.Sprintf("check KV profile: %s %s", e.Field, e.Reason)
}

// Validate returns nil for the zero Profile, and otherwise an *InvalidError for the first contradiction.
func (p *Profile) Validate() error {
	if *p == (Profile{}) {
		return nil
	}
	for _, f := range []struct {
		name  string
		value uint64
	}{{"KV bytes", p.KVBytes}, {"free before", p.FreeBefore}, {"free after", p.FreeAfter}, {"forward's peak", p.PeakForward}, {"workspace", p.Workspace},
		{"least part", p.Least}, {"block", p.Block}, {"reserve", p.Reserve}} {
		// mutant: sizes fit the device
		if f.value > p.TotalMemory {
			return &InvalidError{f.name, fmt.Sprintf("of %d bytes on a device of %d", f.value, p.TotalMemory)}
		}
	}
	switch {
	// mutant: a least part of the KV cache
	case p.Least > p.KVBytes:
		return &InvalidError{"least part", fmt.Sprintf("of %d bytes is more than the KV cache, %d", p.Least, p.KVBytes)}
	case p.KVBytes == 0:
		return &InvalidError{"KV bytes", "are 0"}
	// mutant: KV cache that was never free
	case p.KVBytes > p.FreeBefore:
		return &InvalidError{"KV bytes", fmt.Sprintf("are %d, but only %d were free", p.KVBytes, p.FreeBefore)}
	case math.IsNaN(p.Utilization) || p.Utilization < 0 || p.Utilization > 1:
		return &InvalidError{"utilization", fmt.Sprintf("%v is not between 0 and 1", p.Utilization)}
	case p.ProfileTokens < 0:
		return &InvalidError{"profile tokens", fmt.Sprintf("are %d", p.ProfileTokens)}
	}
	return nil
}

// MemoryError means that a device's memory differs from the recorded one.
type MemoryError struct {
	What      string // "total" or "free"
	Want, Got uint64 // bytes
}

func (e *MemoryError) Error() string {
	if e.What == "total" {
		return fmt.Sprintf("check KV profile: device has %d bytes of memory, recorded with %d", e.Got, e.Want)
	}
	return fmt.Sprintf("check KV profile: %d bytes of device memory are free, at least %d needed (another process may hold the rest)",
		e.Got, e.Want)
}

// Check compares the device with the recorded one before the profile is used. total and free are the numbers of cuMemGetInfo
// before the engine's first allocation. It returns nil or a *MemoryError.
func (p *Profile) Check(total, free uint64) error {
	_, err := p.Room(total, free, p.KVBytes)
	return err
}

// Room is Check for an engine that serves with any KV cache from a least number of bytes on. It returns for how many of the recorded bytes
// there is room.
func (p *Profile) Room(total, free, least uint64) (uint64, error) {
	// mutant: the whole memory of a device
	if total != p.TotalMemory {
		return 0, &MemoryError{"total", p.TotalMemory, total}
	}
	required := p.required()
	spare := p.KVBytes - min(least, p.KVBytes)
	need := required - min(spare, required)
	// mutant: memory that is free
	if free < need {
		return 0, &MemoryError{"free", need, free}
	}
	// mutant: room for an elastic KV cache
	return p.KVBytes - (required - min(free, required)), nil
}
