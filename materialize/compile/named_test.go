package compile

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"medusa/graphir"
	"medusa/internal/contract"
	"medusa/interpose/trace"
	"medusa/materialize/recording"
)

func TestNotes(t *testing.T) {
	type note struct{ name, value string }
	for _, tt := range []struct {
		name string
		a, b []note
		want []note
		err  string
	}{
		{"none", nil, nil, nil, ""},
		{"the last value, by name", []note{{"b", "1"}, {"a", "2"}, {"b", "3"}}, []note{{"a", "2"}, {"b", "3"}}, []note{{"a", "2"}, {"b", "3"}}, ""},
		{"another value", []note{{"a", "1"}}, []note{{"a", "2"}}, nil, `note "a": it differs`},
		{"another name", []note{{"a", "1"}}, []note{{"b", "1"}}, nil, `note "a": it differs`},
		{"one more", []note{{"a", "1"}}, []note{{"a", "1"}, {"b", "1"}}, nil, "1 in record-a, 2 in record-b"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var runs [2]*recording.Recording
			for i, notes := range [][]note{tt.a, tt.b} {
				tp := newTape(byte(i + 1))
				tp.phase("capture")
				for _, n := range notes {
					tp.add(&trace.Note{Name: n.name, Value: []byte(n.value)})
				}
				tp.phase("ready")
				runs[i] = tp.recording(t)
			}
			notes, err := compileNotes(runs[0].Notes, runs[1].Notes)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("got %v, want %q", err, tt.err)
				}
				return
			}
			var got []note
			for _, n := range notes {
				got = append(got, note{n.Name, string(n.Value)})
			}
			if err != nil || !slices.Equal(got, tt.want) {
				t.Errorf("got %v, %v, want %v", got, err, tt.want)
			}
		})
	}
}

// A result belongs to the next graph whose capture ends on its thread, and only if that graph was instantiated.
func TestResults(t *testing.T) {
	const size = 512
	on := func(thread uint32) trace.Head { return trace.Head{Thread: thread} }
	build := func(seed byte, more ...trace.Record) *recording.Recording {
		tp, at := newTape(seed), uint64(seed)<<20
		tp.phase("structure")
		tp.alloc(at, size)
		tp.function(1, trace.ModuleModule, "k", 8)
		tp.phase("capture")
		for i, name := range []string{"one", "two"} {
			tp.add(&trace.Tensor{Name: name, Addr: at + 8*uint64(i), Size: 8, Role: contract.RoleOutput, Dtype: contract.DtypeF32})
		}
		tp.add(&trace.Result{Head: on(0), Tensor: "one"}, &trace.Result{Head: on(3), Tensor: "two"})
		tp.capture("first", 1, tp.kernel(1, at))
		tp.add(&trace.Result{Head: on(0), Tensor: "two"}, &trace.Result{Head: on(0), Tensor: "one"}, &trace.Result{Head: on(0), Tensor: "two"})
		tp.add(more...)
		tp.capture("second", 2, tp.kernel(1, at))
		tp.phase("ready")
		return tp.recording(t)
	}
	compile := func(more ...trace.Record) (*graphir.Spec, error) {
		spec, _, err := Compile(build(1, more...), build(2, more...), nil)
		return spec, err
	}
	other := build(2)
	other.Graphs[0].Results = append(other.Graphs[0].Results, "two")
	if _, _, err := Compile(build(1), other, nil); err == nil || !strings.Contains(err.Error(), `tensor "two": it is a result of graphs [1] in record-a, of [0 1] in record-b`) {
		t.Errorf("a result of another graph in record-b: %v", err)
	}
	spec, err := compile()
	if err != nil {
		t.Fatal(err)
	}
	if one, two := spec.Tensors[0].Graphs, spec.Tensors[1].Graphs; !slices.Equal(one, []uint32{0, 1}) || !slices.Equal(two, []uint32{1}) {
		t.Errorf("results of the graphs %d and %d, want [0 1] and [1]", one, two)
	}
	if _, err := compile(&trace.Result{Tensor: "three"}); err == nil || !strings.Contains(err.Error(), `results of graph "second": no tensor is named "three"`) {
		t.Errorf("a result without a name: %v", err)
	}
}

// A tenth of the cache is looked at: of a table's blocks a tenth, at least one, and other values as before.
func TestBlocksThatVerificationLooksAt(t *testing.T) {
	build := func(seed byte) *recording.Recording {
		tp, at := newTape(seed), uint64(seed)<<40
		tp.phase("structure")
		tp.alloc(at, 10*graphir.CheckedKV+1<<20)
		tp.function(1, trace.ModuleModule, "k", 8)
		for i := range uint64(2) {
			tp.add(&trace.Tensor{Name: fmt.Sprint("kv", i), Addr: at + 5*i*graphir.CheckedKV, Size: 5 * graphir.CheckedKV, Role: contract.RoleKV, Dtype: contract.DtypeF32})
		}
		at += 10 * graphir.CheckedKV
		for i, x := range []trace.Tensor{{Name: "table", Hi: 1000, Fill: contract.FillBlock}, {Name: "few", Hi: 5, Fill: contract.FillBlock}, {Name: "tokens", Hi: 1000}} {
			x.Addr, x.Size, x.Role, x.Dtype = at+512*uint64(i), 8, contract.RoleInput, contract.DtypeI32
			tp.add(&x)
		}
		tp.phase("capture")
		tp.capture("first", 1, tp.kernel(1, at))
		tp.phase("ready")
		return tp.recording(t)
	}
	spec, _, err := Compile(build(1), build(2), nil)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{}
	for _, x := range spec.Tensors {
		got[x.Name] = x.Hi
	}
	if want := map[string]int64{"kv0": 0, "kv1": 0, "table": 100, "few": 1, "tokens": 1000}; !maps.Equal(got, want) {
		t.Errorf("upper bounds %v, want %v", got, want)
	}
}
