package simulate

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"medusa/serving/dispatch"
	"medusa/test/servedlog"
)

func advice(t *testing.T, models []dispatch.Model, list []servedlog.Request, profiles string) *Advice {
	t.Helper()
	var log bytes.Buffer
	if err := servedlog.Write(&log, models, list); err != nil {
		t.Fatal(err)
	}
	record, err := dispatch.ReadRecord(&log)
	if err != nil {
		t.Fatal(err)
	}
	a, err := Advise(record, profiles, 36)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// of returns the change of a model for a way.
func (a *Advice) of(t *testing.T, model, way string) Change {
	t.Helper()
	for _, c := range a.Changes {
		if c.Model == model && c.Way == way {
			return c
		}
	}
	t.Fatalf("no judgement of %s %s in %+v", model, way, a.Changes)
	return Change{}
}

// Ann is asked every 30 s and starts in 20. Keeping her saves 20 s of each request but the first.
func TestAdviceToKeep(t *testing.T) {
	models, list := servedlog.Ann(30, 1800)
	a := advice(t, models, list, "")
	if want := (Waited{61*20 + 2*61*2, 3 * 61}); a.Logged != want || math.Abs(a.Simulated.Seconds-want.Seconds) > 1e-6 || a.Simulated.Cold != want.Cold {
		t.Errorf("waited %+v, %+v simulated, want %+v", a.Logged, a.Simulated, want)
	}
	c := a.of(t, "ann", "awake")
	if want := 60 * 20 * 3600 / a.Seconds; math.Abs(c.Saves.Mean-want) > 1e-6*want || c.Saves.Half > want/5 {
		t.Errorf("keeping ann saves %+v s an hour, want %g", c.Saves, want)
	}
	if !c.Advised || c.Advice != "keep: true" || c.Without != 3*61 || c.With != 2*61+1 {
		t.Errorf("%+v", c)
	}
	if a.Together == nil || a.Together.Saves != c.Saves {
		t.Errorf("together: %+v", a.Together)
	}
	// Bob and carl leave no room for each other.
	if b := a.of(t, "bob", "awake"); b.Advised || b.Judged || !strings.Contains(b.Advice, "may leave no room for carl") {
		t.Errorf("%+v", b)
	}
	for _, way := range []string{"asleep", "baked"} {
		if c := a.of(t, "ann", way); c.Advised || !strings.HasPrefix(c.Advice, "not judged: ") {
			t.Errorf("%s: %+v", way, c)
		}
	}
}

// If ann is asked once a day, there are two starts to save in three days: too few for an interval. In 60 days there are 59: too small
// a saving.
func TestAdviceNotToKeep(t *testing.T) {
	const day = 24 * 3600
	for days, want := range map[float64]string{3: "no difference shown", 60: "too little: not more than 36 s an hour for sure"} {
		models, list := servedlog.Ann(day, days*day)
		a := advice(t, models, list, "")
		if c := a.of(t, "ann", "awake"); c.Advised || c.Advice != want || a.Together != nil {
			t.Errorf("%g days: %+v", days, c)
		}
	}
}

// Each way saves the seconds of the profiles. The best one is taken. Beside it, the others save too little.
func TestAdviceWithProfiles(t *testing.T) {
	file := filepath.Join(t.TempDir(), "profiles.yaml")
	text := "gpu: H200\nmodels: {ann: {service_s: 1, host_s: 4, weights_gb: 9, artifact_gb: 0.5, stages: {native: {weights: 10, capture: 10}, restored: {weights: 10, capture: 2}}}}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	models, list := servedlog.Ann(30, 1800)
	a := advice(t, models, list, file)
	for way, want := range map[string]struct{ saves, costs string }{"awake": {"20", "0.4 of a GPU"}, "asleep": {"16", "9 GB of host memory"}, "baked": {"8", "an artifact of 0.5 GB"}} {
		each := map[string]float64{"20": 60 * 20, "16": 60 * 16, "8": 61 * 8}[want.saves]
		c := a.of(t, "ann", way)
		if math.Abs(c.Saves.Mean-each*3600/a.Seconds) > 1e-3 || !strings.HasPrefix(c.Cost, want.costs) {
			t.Errorf("%s: %+v, want %g s", way, c, each)
		}
		if c.Advised != (way == "awake") {
			t.Errorf("%s: %+v", way, c)
		}
	}
}

// If a model is kept, asleep or baked already, the comparison is with a run without that.
func TestAdviceToLeave(t *testing.T) {
	models, list := servedlog.Ann(30, 1800)
	models[0].Keep = true
	for i := range list {
		if list[i].Model == 0 && i > 0 {
			list[i].Start = 0
		}
	}
	a := advice(t, models, list, "")
	c := a.of(t, "ann", "awake")
	if want := 60 * 20 * 3600 / a.Seconds; !c.Present || c.Advised || c.Advice != "leave it so" || math.Abs(c.Saves.Mean-want) > 1e-6*want || c.With != 2*61+1 || c.Without != 3*61 {
		t.Errorf("%+v", c)
	}
}

// If the log has starts that the simulator cannot explain, the result says so and has no advice.
func TestAdviceFromAnotherWorld(t *testing.T) {
	models, list := servedlog.Ann(30, 1800)
	models[1].Memory, models[2].Memory = 0.1, 0.1 // all fit: no engine had to go
	a := advice(t, models, list, "")
	if a.Follows || a.Changes != nil || a.Together != nil {
		t.Errorf("%+v", a)
	}
}

// A log needs five windows of two starts each.
func TestAdviceNeedsWindows(t *testing.T) {
	models, list := servedlog.Ann(30, 90)
	var log bytes.Buffer
	if err := servedlog.Write(&log, models, list); err != nil {
		t.Fatal(err)
	}
	record, err := dispatch.ReadRecord(&log)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Advise(record, "", 36); err == nil || !strings.Contains(err.Error(), "are not 5 windows of 40.0 s") {
		t.Errorf("%v", err)
	}
}
