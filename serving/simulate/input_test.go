package simulate

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"medusa/internal/yamlfile"
)

// TestTraceFormats reads common formats. The rows are made up in each format's documented layout.
func TestTraceFormats(t *testing.T) {
	for _, c := range []struct{ name, text string }{
		{"Medusa's logs", "request_id,arrival_s,prompt_tokens,output_tokens,ttft_s\n0,0.5,100,20,1\n1,2.0,7,3,1\n"},
		{"Azure LLM inference 2023", "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,100,20\n2023-11-16 18:15:48.1805900,7,3\n"},
		{"Azure LLM inference 2024", "TIMESTAMP,ContextTokens,GeneratedTokens\n2024-05-10 00:00:00.009930+00:00,100,20\n2024-05-10 00:00:01.509930+00:00,7,3\n"},
		{"BurstGPT", "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,ChatGPT,100,20,120,Conversation log\n6.5,GPT-4,7,3,10,API log\n"},
		{"Mooncake", `{"timestamp": 3000, "input_length": 100, "output_length": 20, "hash_ids": [1, 2]}` + "\n\n" + `{"timestamp": 4500, "input_length": 7, "output_length": 3, "hash_ids": []}` + "\n"},
		{"out of order", "arrival_s,prompt_tokens,output_tokens\n2,7,3\n0.5,100,20\n"},
	} {
		tr, err := parseTrace("trace", strings.NewReader(c.text))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		a := tr.Arrivals
		if len(a) != 2 || a[0].Prompt != 100 || a[0].Output != 20 || a[1].Prompt != 7 || a[1].Output != 3 || math.Abs(a[1].At-a[0].At-1.5) > 1e-6 {
			t.Errorf("%s: %+v", c.name, a)
		}
		// arrival_s counts from the experiment's start. In other formats only differences of times have a meaning.
		if first := map[bool]float64{true: 0.5}[strings.Contains(c.text, "arrival_s")]; a[0].At != first {
			t.Errorf("%s: the first request arrives at %g, want %g", c.name, a[0].At, first)
		}
	}
}

func TestTraceNamesFunctions(t *testing.T) {
	tr, err := parseTrace("trace", strings.NewReader("arrival_s,function,prompt_tokens,output_tokens\n0,b,1,1\n1,x,1,1\n2,y,1,1\n3,x,1,1\n"))
	if err != nil {
		t.Fatal(err)
	}
	var got []int32
	for _, r := range tr.requests([]Function{{Name: "a"}, {Name: "b"}}) {
		got = append(got, r.fn)
	}
	if fmt.Sprint(got) != "[1 0 1 0]" {
		t.Errorf("functions %v: b is known, x and y take turns but stay together", got)
	}
}

func TestTraceErrorsHavePositions(t *testing.T) {
	for _, c := range []struct{ text, where, what string }{
		{"", "t:1:1", "empty"},
		{"a,b\n", "t:1:1", "unknown columns"},
		{"arrival_s,prompt_tokens,output_tokens\n", "t:2:1", "no requests"},
		{"arrival_s,prompt_tokens,output_tokens\n1,2,3\nx,2,3\n", "t:3:1", "neither seconds nor a time"},
		{"arrival_s,prompt_tokens,output_tokens\n1,2,-3\n", "t:2:5", "tokens"},
		{"arrival_s,prompt_tokens,output_tokens\n1,2\n", "t:2:1", "fields"},
		{"arrival_s,prompt_tokens,output_tokens\n1,\"2,3\n", "t:", "quote"},
		{"arrival_s,prompt_tokens,output_tokens\nNaN,2,3\n", "t:2:1", "range"},
		{"{\"timestamp\": 1}\n", "t:1:1", "needs timestamp"},
		{"{\"timestamp\": 1, \"input_length\": 1, \"output_length\": 1}\n{\"timestamp\": tru}\n", "t:2:", "invalid character"},
		{"{\"timestamp\": 1, \"input_length\": 1.5, \"output_length\": 1}\n", "t:1:1", "tokens"},
	} {
		_, err := parseTrace("t", strings.NewReader(c.text))
		var at *yamlfile.Error
		if !errors.As(err, &at) || !strings.HasPrefix(err.Error(), c.where) || !strings.Contains(err.Error(), c.what) {
			t.Errorf("%q: %v, want %s and %q", c.text, err, c.where, c.what)
		}
	}
}

func TestTable(t *testing.T) {
	rows, err := parseTable("t", strings.NewReader("f,m0,m1\na,1,2\nb,3,4.5\n"))
	if err != nil || fmt.Sprint(rows) != "[[1 2] [3 4.5]]" {
		t.Errorf("%v, %v", rows, err)
	}
	for text, where := range map[string]string{"": "t:1:1", "f,m0\n": "t:2:1", "f,m0\na,x\n": "t:2:3", "f,m0\na,-1\n": "t:2:3"} {
		if _, err := parseTable("t", strings.NewReader(text)); err == nil || !strings.HasPrefix(err.Error(), where) {
			t.Errorf("%q: %v, want %s", text, err, where)
		}
	}
}

// TestTimesOfASimulatedDeviceAreRefused, under either of its names.
func TestTimesOfASimulatedDeviceAreRefused(t *testing.T) {
	for _, device := range []string{"Simulated GPU", "simulated"} {
		for _, field := range []string{"gpu", "device"} {
			text := strings.Replace(testProfiles, field+": Test", field+": "+device, 1)
			if _, err := parseProfiles("p.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), "not those of hardware") {
				t.Errorf("%s %q: %v", field, device, err)
			}
		}
	}
}

func TestProfileErrorsHavePositions(t *testing.T) {
	for _, c := range []struct{ old, new, where, what string }{
		{"service_s: 2,", "", "p.yaml:9:", "either engine or service_s"},
		{"class: heavy", "class: huge", "p.yaml:9:", "unknown class"},
		{"memory_gb: 4", "memory_gb: -4", "p.yaml:9:", "out of range"},
		{"{native: {runtime: 3}}", "{nativ: {runtime: 3}}", "p.yaml:9:", "unknown strategy"},
		{"{native: {runtime: 3}}", "{native: {runtim: 3}}", "p.yaml:9:", "unknown stage"},
		{"gpu: Test", "gpuu: Test", "p.yaml:2:1", "unknown field"},
		{"models:", "models: [", "p.yaml:", ""},
	} {
		_, err := parseProfiles("p.yaml", []byte(strings.Replace(testProfiles, c.old, c.new, 1)))
		if err == nil || !strings.HasPrefix(err.Error(), c.where) || !strings.Contains(err.Error(), c.what) {
			t.Errorf("%s: %v, want %s and %q", c.new, err, c.where, c.what)
		}
	}
}

const testScenario = `title: test
profiles: p.yaml
policy: {name: fcfs, d: 4}
cluster: {gpus: 2, gpu_memory_gb: 16, slots: 4}
workload: {kind: poisson, rate: 1, duration_s: 20}
functions:
  - {name: a}
  - {name: b, slo_s: 5}
compare:
  - {name: native, with: {}}
  - {name: restored, with: {strategy: restored}}
figures:
  - {id: x, paper: none, claim: faster, compare: order, metric: ttft_p99, variants: [restored, native]}
`

// withFiles writes the test scenario and its profiles to a folder.
func withFiles(t testing.TB, scenario string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"p.yaml": testProfiles, "s.yaml": scenario} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "s.yaml")
}

func TestScenarioErrorsHavePositions(t *testing.T) {
	for _, c := range []struct{ old, new, where, what string }{
		{"name: fcfs", "name: nope", ":3:9", "unknown name"},
		{"gpus: 2", "gpus: 0", ":4:10", "nodes × gpus"},
		{"gpus: 2", "gpus: two", ":4:17", ""},
		{"slots: 4", "slotz: 4", ":4:39", "unknown field"},
		{"kind: poisson", "kind: poison", ":5:18", "unknown kind"},
		{"duration_s: 20", "duration_s: 0", ":5:48", "must be positive"},
		{"duration_s: 20", "duration_s: 9e7", ":5:", "requests"},
		{"{name: b, slo_s: 5}", "{name: c}", ":8:", "no model"},
		{"{strategy: restored}", "{strategy: restord}", ":11:", "unknown strategy"},
		{"{strategy: restored}", "{strategie: restored}", ":11:29", "unknown field"},
		{"{strategy: restored}", "{cluster: {slots: 7.9}}", ":11:46", "whole number, not 7.9"},
		{"{strategy: restored}", "{cluster: {slots: 010}}", ":11:46", "010 begins with 0"},
		{"compare: order", "compare: older", ":13:", "unknown compare"},
		{"metric: ttft_p99", "metric: ttft_p100", ":13:", "no metric"},
		{"[restored, native]", "[restored, nativ]", ":13:", "no variant"},
		{"profiles: p.yaml", "profiles: q.yaml", ":2:11", "q.yaml"},
		{"gpu_memory_gb: 16", "gpu_memory_gb: 8", ":7:", "a GPU has 8"},
	} {
		path := withFiles(t, strings.Replace(testScenario, c.old, c.new, 1))
		_, err := LoadScenario(path)
		if err == nil || !strings.HasPrefix(err.Error(), path+c.where) || !strings.Contains(err.Error(), c.what) {
			t.Errorf("%s: %v, want %s and %q", c.new, err, c.where, c.what)
		}
	}
}

func TestVariantsLeaveTheScenarioAlone(t *testing.T) {
	s, err := LoadScenario(withFiles(t, strings.Replace(testScenario, "with: {strategy: restored}", "with: {strategy: restored, cluster: {slots: 9}, functions: [{name: b}]}", 1)))
	if err != nil {
		t.Fatal(err)
	}
	v, err := s.variant(1)
	if err != nil {
		t.Fatal(err)
	}
	if v.Strategy != restoredStart || v.Cluster.Slots != 9 || v.Cluster.GPUs != 2 || v.Cluster.GPUMemoryGB != 16 || len(v.Functions) != 1 || v.Functions[0].Model != "b" {
		t.Errorf("variant %+v", v)
	}
	if s.Strategy != nativeStart || s.Cluster.Slots != 4 || len(s.Functions) != 2 || s.Functions[0].Name != "a" {
		t.Errorf("the scenario has changed: %+v", s)
	}
}

func TestOverrides(t *testing.T) {
	path := withFiles(t, testScenario)
	s, err := Load(path, Overrides{Policy: "lalbo3", Rate: 3, GPUs: 5, Seeds: 2, Compare: []string{"lb+restored", "native"}})
	if err != nil {
		t.Fatal(err)
	}
	if s.Policy.Name != "lalbo3" || s.Workload.Rate != 3 || s.Cluster.GPUs != 5 || s.Seeds != 2 || len(s.Compare) != 2 {
		t.Errorf("%+v", s)
	}
	v, err := s.variant(0)
	if err != nil || v.Policy.Name != "lb" || v.Strategy != restoredStart {
		t.Errorf("variant %+v, %v", v, err)
	}
	profiles := filepath.Join(filepath.Dir(path), "p.yaml")
	if s, err = Load("", Overrides{Profiles: profiles, Models: []string{"a", "b"}, Rate: 1}); err != nil || len(s.deployed()) != 2 {
		t.Errorf("without a file: %+v, %v", s, err)
	}
	for _, o := range []Overrides{{}, {Profiles: profiles}, {Profiles: profiles, Models: []string{"zz"}, Rate: 1}, {Profiles: profiles, Models: []string{"a"}, Rate: 1, Compare: []string{"x+y"}}} {
		if _, err := Load("", o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
}

// requirePosition checks that an error names a place, as every error in a file's content must.
func requirePosition(t *testing.T, err error) {
	t.Helper()
	var at *yamlfile.Error
	if !errors.As(err, &at) || at.Line < 1 || at.Column < 1 {
		t.Errorf("error without a position: %v", err)
	}
}

func FuzzScenario(f *testing.F) {
	f.Add(testScenario)
	files, _ := filepath.Glob("scenarios/*.yaml")
	for _, file := range files {
		if data, err := os.ReadFile(file); err == nil && len(data) < 4096 {
			f.Add(strings.ReplaceAll(string(data), "../profiles/medusa-a100.yaml", "p.yaml"))
		}
	}
	dir := f.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "p.yaml"), []byte(testProfiles), 0o644); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "/") {
			return // it names files elsewhere
		}
		s, err := parseScenario(filepath.Join(dir, "s.yaml"), []byte(text))
		if err != nil {
			requirePosition(t, err)
			return
		}
		// A valid scenario must run; the test runs the small ones.
		s.Compare, s.Figures = nil, nil
		n := 0
		if s.Workload.Kind != "trace" && s.Workload.Duration <= 1000 && s.Cluster.GPUs*s.Cluster.Nodes <= 16 && len(s.deployed()) <= 32 && s.Seeds <= 2 && (s.Cluster.ObserveEvery == 0 || s.Cluster.ObserveEvery > 0.1) {
			for _, r := range s.Workload.rates(s.deployed()) {
				n += int(r * s.Workload.Duration)
			}
			if n <= 500 {
				if _, err := Run(s, nil, nil); err != nil {
					t.Errorf("a valid scenario does not run: %v", err)
				}
			}
		}
	})
}

func FuzzProfiles(f *testing.F) {
	f.Add(testProfiles)
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := parseProfiles("p.yaml", []byte(text)); err != nil {
			requirePosition(t, err)
		}
	})
}

func FuzzTrace(f *testing.F) {
	f.Add("arrival_s,prompt_tokens,output_tokens\n0.5,100,20\n")
	f.Add("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,100,20\n")
	f.Add("Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,ChatGPT,100,20,120,Conversation log\n")
	f.Add(`{"timestamp": 3000, "input_length": 100, "output_length": 20}`)
	f.Fuzz(func(t *testing.T, text string) {
		tr, err := parseTrace("t", strings.NewReader(text))
		if err != nil {
			requirePosition(t, err)
			return
		}
		last := math.Inf(-1)
		for _, a := range tr.Arrivals {
			if a.At < last || a.At < 0 || a.Prompt < 0 || a.Output < 0 {
				t.Fatalf("arrival %+v after %g", a, last)
			}
			last = a.At
		}
	})
}
