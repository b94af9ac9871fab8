package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"medusa/test/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// Each total that shows no equal restored start has its own reason.
func TestJudge(t *testing.T) {
	good := compared{tokens: 4, collectives: 6, truth: truthCounts{calls: 6}}
	for _, tt := range []struct {
		change func(c *compared)
		want   string
	}{
		{func(*compared) {}, ""},
		{func(c *compared) { c.differences = 1 }, "differ"},
		{func(c *compared) { c.tokens = 0 }, "there are none"},
		{func(c *compared) { c.truth.calls = 5 }, "the artifacts have 6, the device's truth has 5"},
	} {
		c := good
		tt.change(&c)
		if err := c.judge(); (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v, want %q", c, err, tt.want)
		}
	}
}

func TestCost(t *testing.T) {
	o := outcome{stderr: "cost of rank 1: 300 us\nother\ncost of rank 0: 100 us\ncost of rank 2: 200 us\n"}
	if got := median(o.costs()); got != 200 {
		t.Errorf("median of %v: %d", o.costs(), got)
	}
	for _, tt := range []struct {
		one, many int
		good      bool
	}{{100, 114, true}, {100, 116, false}, {100, 0, false}, {0, 100, false}} {
		if err := judgeCost(tt.one, tt.many); (err == nil) != tt.good {
			t.Errorf("%+v: %v", tt, err)
		}
	}
}

// Two ranks restore, and the controls about agreement of ranks end as they have to. make test-ranks has the others.
func TestRanks(t *testing.T) {
	testenv.Build(t, "lib", "bin", "build/ranks")
	t.Chdir(testenv.Root(t))
	var seen compared
	ranks := test{ranks: 2, artifact: filepath.Join(t.TempDir(), "2.medusa"), seen: &seen}
	if err := ranks.make(); err != nil {
		t.Fatal(err)
	}
	t.Run("restored", func(t *testing.T) {
		for _, addresses := range []string{"exact", "relocate"} {
			if err := ranks.restore(addresses); err != nil {
				t.Error(err)
			}
		}
		if seen.tokens == 0 || seen.differences != 0 {
			t.Errorf("%d of %d tokens differ", seen.differences, seen.tokens)
		}
	})
	for _, c := range controls {
		if !slices.Contains([]string{"add", "memory", "level", "lazy", "error-early", "error-connect", "leave-out-all", "exchange-all", "parts", "contents"}, c.how) {
			continue
		}
		t.Run(c.how, func(t *testing.T) {
			if err := ranks.control(c); err != nil {
				t.Error(err)
			}
		})
	}
	// Each run of materialize ends at ready. An engine that sees a worker gone ends the others.
	t.Run("slow", func(t *testing.T) {
		slow := ranks
		slow.artifact = filepath.Join(t.TempDir(), "slow.medusa")
		if made := slow.start([]string{"RANKS_SLOW=2"}, "build/medusa", "materialize", "-o", slow.artifact, "--", "build/ranks"); made.err != nil {
			t.Error(made)
		}
	})
	t.Run("calls of each kind", func(t *testing.T) {
		var seen compared
		kinds := test{ranks: 2, kinds: true, artifact: filepath.Join(t.TempDir(), "kinds.medusa"), seen: &seen}
		if err := kinds.make(); err != nil {
			t.Fatal(err)
		}
		if err := kinds.restore("exact"); err != nil || seen.collectives != 2*wantKinds || seen.judge() != nil {
			t.Errorf("%v, %+v", err, seen)
		}
	})
}
