package kvprofile

import (
	"errors"
	"math"
	"testing"
)

const gib = 1 << 30

func recorded() Profile {
	return Profile{KVBytes: 50 * gib, TotalMemory: 80 * gib, FreeBefore: 79 * gib, FreeAfter: 65 * gib, PeakForward: 6 * gib,
		Utilization: 0.9, ProfileTokens: 8192}
}

func TestCheck(t *testing.T) {
	tight := recorded()
	tight.KVBytes = 60 * gib // 60 + 14 + 6 GiB exceed the free memory, but the recorded start succeeded with that
	for _, test := range []struct {
		name        string
		profile     Profile
		total, free uint64
		want        *MemoryError
	}{
		{"the same device", recorded(), 80 * gib, 79 * gib, nil},
		{"just enough", recorded(), 80 * gib, 70 * gib, nil},
		{"a byte too little", recorded(), 80 * gib, 70*gib - 1, &MemoryError{"free", 70 * gib, 70*gib - 1}},
		{"a smaller device", recorded(), 40 * gib, 79 * gib, &MemoryError{"total", 80 * gib, 40 * gib}},
		{"a larger device", recorded(), 96 * gib, 95 * gib, &MemoryError{"total", 80 * gib, 96 * gib}},
		{"tight, as free as recorded", tight, 80 * gib, 79 * gib, nil},
		{"tight, less free", tight, 80 * gib, 79*gib - 1, &MemoryError{"free", 79 * gib, 79*gib - 1}},
	} {
		err := test.profile.Check(test.total, test.free)
		var got *MemoryError
		errors.As(err, &got)
		if (err == nil) != (test.want == nil) || got != nil && *got != *test.want {
			t.Errorf("%s: got %v, want %v", test.name, err, test.want)
		}
	}
}

// An elastic cache has room for as much less as is missing, down to its least size.
func TestRoom(t *testing.T) {
	for _, test := range []struct {
		name        string
		free, least uint64
		room, need  uint64 // need: what the error wants
	}{
		{"enough for all", 70 * gib, 2 * gib, 50 * gib, 0},
		{"more than enough", 79 * gib, 2 * gib, 50 * gib, 0},
		{"half", 45 * gib, 2 * gib, 25 * gib, 0},
		{"the least", 22 * gib, 2 * gib, 2 * gib, 0},
		{"a byte less", 22*gib - 1, 2 * gib, 0, 22 * gib},
		{"a least size above the recorded one", 70*gib - 1, 60 * gib, 0, 70 * gib},
	} {
		p := recorded()
		room, err := p.Room(80*gib, test.free, test.least)
		var refused *MemoryError
		if errors.As(err, &refused) != (test.need != 0) || refused != nil && refused.Want != test.need || room != test.room {
			t.Errorf("%s: got %d, %v; want %d", test.name, room, err, test.room)
		}
	}
}

// What a restored start takes beyond a native one is room that the cache does not have.
func TestReserve(t *testing.T) {
	p := recorded()
	p.Least, p.Block = 2*gib, gib/2
	p.Measured(60 * gib) // of 79, 14 of which stay allocated
	for free, want := range map[uint64]uint64{79 * gib: 50 * gib, 73 * gib: 50 * gib, 70 * gib: 47 * gib, 25 * gib: 2 * gib, 25*gib - 1: 0} {
		if room, err := p.Room(80*gib, free, p.Least); room != want || (err == nil) != (want != 0) {
			t.Errorf("%d bytes free: room for %d, %v; want %d", free, room, err, want)
		}
	}
	more := p
	if more.Measured(70 * gib); more.Reserve != 0 {
		t.Errorf("less is in use than the profile says, but the reserve is %d", more.Reserve)
	}
	shares := map[string]uint64{}
	for _, s := range p.Shares(0) {
		shares[s.Name] = s.Bytes
	}
	for name, want := range map[string]uint64{"least part of the KV cache, which each start maps": 2 * gib,
		"needed free by a restored start with the least part": 25 * gib, "needed free by a restored start with all of it": 73 * gib} {
		if shares[name] != want {
			t.Errorf("%s: %d, want %d", name, shares[name], want)
		}
	}
	if p.Blocks(p.Least) != 4 || !p.Elastic() || (&Profile{KVBytes: 1}).Blocks(1) != 0 {
		t.Errorf("%d blocks in the least part", p.Blocks(p.Least))
	}
}

func TestValidate(t *testing.T) {
	for _, test := range []struct {
		field string
		spoil func(p *Profile)
	}{
		{"", func(*Profile) {}},
		{"", func(p *Profile) { *p = Profile{} }},
		{"", func(p *Profile) { p.FreeBefore = p.TotalMemory }}, // all of it was free
		{"KV bytes", func(p *Profile) { p.KVBytes = 0 }},
		{"KV bytes", func(p *Profile) { p.KVBytes = 81 * gib }},
		{"KV bytes", func(p *Profile) { p.KVBytes = 79*gib + 1 }},
		{"free before", func(p *Profile) { p.FreeBefore = 81 * gib }},
		{"free after", func(p *Profile) { p.FreeAfter = 81 * gib }},
		{"forward's peak", func(p *Profile) { p.PeakForward = 81 * gib }},
		{"workspace", func(p *Profile) { p.Workspace = 81 * gib }},
		{"", func(p *Profile) { p.Least = p.KVBytes }},
		{"least part", func(p *Profile) { p.Least = p.KVBytes + 1 }},
		{"block", func(p *Profile) { p.Block = 81 * gib }},
		{"reserve", func(p *Profile) { p.Reserve = 81 * gib }},
		{"utilization", func(p *Profile) { p.Utilization = math.NaN() }},
		{"utilization", func(p *Profile) { p.Utilization = 1.01 }},
		{"profile tokens", func(p *Profile) { p.ProfileTokens = -1 }},
	} {
		p := recorded()
		test.spoil(&p)
		err := p.Validate()
		var got *InvalidError
		if errors.As(err, &got); (test.field == "") != (err == nil) || got != nil && got.Field != test.field {
			t.Errorf("%+v: got %v, want %q", p, err, test.field)
		}
	}
}

func TestShares(t *testing.T) {
	p := recorded()
	want := map[string]uint64{ // of 80 GiB, 79 free before and 65 after
		"device": 80 * gib, "free before the engine's first allocation": 79 * gib, "allowed to the engine by its own setting": 72 * gib,
		"stays allocated after the profile forward: weights, workspaces": 14 * gib, "peak of the profile forward beyond that": 6 * gib,
		"KV cache, as the engine has sized it": 50 * gib, "left by the engine within its allowance: graphs and reserves": 2 * gib,
		"needed free by a restored start": 70 * gib, "headroom: free once the engine was ready": 7 * gib,
	}
	shares := p.Shares(7 * gib)
	if len(shares) != len(want) {
		t.Errorf("got %d shares, want %d", len(shares), len(want))
	}
	for _, s := range shares {
		if s.Bytes != want[s.Name] {
			t.Errorf("%s: got %d, want %d", s.Name, s.Bytes, want[s.Name])
		}
	}
	if unmeasured := p.Shares(0); len(unmeasured) != len(want)-1 {
		t.Errorf("without a measured headroom: got %d shares, want %d", len(unmeasured), len(want)-1)
	}
	p.KVBytes = 60 * gib // more than the engine would allow itself
	for _, s := range p.Shares(0) {
		if s.Name == "left by the engine within its allowance: graphs and reserves" && s.Bytes != 0 {
			t.Errorf("left by an engine that takes more than it may: %d", s.Bytes)
		}
	}
	if none := (&Profile{}).Shares(1); none != nil {
		t.Errorf("without a profile: %v", none)
	}
}
