package artifacts

import (
	"errors"
	"slices"
	"testing"
)

func TestDocument(t *testing.T) {
	id := Identity{{KeyModelConfig, "<a&b>"}, {KeyGPUName, `H"200`}, {KeyHostKernel, "6.1"}}
	want := `{"version":1,"factors":{"gpu.name":"H\"200","model.config":"<a&b>"}}`
	if got := string(id.Document()); got != want {
		t.Errorf("document\n%s\ninstead of\n%s", got, want)
	}
	const digest = "sha256:9b52e2373f05ea49f3cbedc3120869e010f1aca43e4e81efc3a51c4bb9edce1f"
	if got := id.Digest(); got != digest {
		t.Errorf("digest %s", got)
	}
	slices.Reverse(id)
	id[0].Value = "6.12"
	if got := id.Digest(); got != digest {
		t.Errorf("order or a noted factor changes the digest: %s", got)
	}
	id[1].Value = "H200"
	if got := id.Digest(); got == digest {
		t.Error("the GPU's name does not change the digest")
	}
}

func TestCompare(t *testing.T) {
	want := Identity{{KeyGPUName, "H200"}, {KeyDriverVersion, "580"}, {KeyHostKernel, "6.1"}, {"engine.flavour", "x"}, {"dso.libblas.so", "00"}}
	if m := Compare(want, slices.Clone(want), nil); m != nil {
		t.Errorf("equal identities: %v", m)
	}
	noted := slices.Clone(want)
	noted[2].Value = "6.12"
	if m := Compare(want, noted, nil); m != nil {
		t.Errorf("a noted factor: %v", m)
	}
	if Compare(Identity{{"env.X", ""}}, nil, nil) == nil {
		t.Error("an empty factor and none are the same")
	}
	contents := Factor{KeyModelCheckpoint, "sha256:1"}
	if Compare(want, append(slices.Clone(want), contents), nil) != nil || Compare(append(slices.Clone(want), contents), want, nil) == nil {
		t.Error("the contents of weights do not count exactly if the artifact has them")
	}
	got := Identity{{KeyDriverVersion, "590"}, {KeyGPUName, "B200"}, {KeyHostKernel, "6.12"}, {"dso.libblas.so", "01"}, {"env.X", "1"}}
	err := error(Compare(want, got, nil))
	var m *Mismatch
	if !errors.Is(err, ErrIncompatible) || !errors.As(err, &m) {
		t.Fatalf("got %v", err)
	}
	wanted := []Difference{
		{KeyGPUName, "H200", "B200", true, true, Fatal},
		{KeyDriverVersion, "580", "590", true, true, Relaxable},
		{KeyHostKernel, "6.1", "6.12", true, true, Noted},
		{"engine.flavour", "x", "", true, false, Fatal},
		{"dso.libblas.so", "00", "01", true, true, Relaxable},
		{"env.X", "", "1", false, true, Fatal},
	}
	if !slices.Equal(m.Differences, wanted) {
		t.Errorf("differences %v", m.Differences)
	}
	const text = `check artifact identity: gpu.name: want "H200", got "B200" (must be equal); driver.version: want "580", got "590" (--relax allows it); ` +
		`host.kernel: want "6.1", got "6.12" (no effect); engine.flavour: want "x", got nothing (must be equal); ` +
		`dso.libblas.so: want "00", got "01" (--relax allows it); env.X: want the default, got "1" (must be equal)`
	if err.Error() != text {
		t.Errorf("text\n%s\ninstead of\n%s", err, text)
	}
}

func TestChange(t *testing.T) {
	for _, row := range []struct {
		d    Difference
		want string
	}{
		{Difference{Key: "env.X", Want: "1", WantSet: true}, "set the variable X=1"},
		{Difference{Key: "env.X", Got: "1", GotSet: true}, "unset the variable X"},
		{Difference{Key: "setting.cache.block_size", Want: "16", WantSet: true, Got: "32", GotSet: true}, "give the engine cache.block_size=16"},
		{Difference{Key: "setting.cache.block_size", Got: "32", GotSet: true}, "leave the engine's cache.block_size at its default"},
		{Difference{Key: KeyGPUName, Want: "H200", WantSet: true, Got: "B200", GotSet: true}, ""},
	} {
		if got := row.d.Change(); got != row.want {
			t.Errorf("%+v: %q instead of %q", row.d, got, row.want)
		}
	}
}

func TestRelaxed(t *testing.T) {
	want := Identity{{KeyGPUName, "H200"}, {KeyDriverVersion, "580"}, {"dso.libblas.so", "00"}}
	for _, row := range []struct {
		list    string
		got     Identity
		allowed bool
	}{
		{"", Identity{{KeyGPUName, "H200"}, {KeyDriverVersion, "590"}, {"dso.libblas.so", "00"}}, false},
		{"driver.version", Identity{{KeyGPUName, "H200"}, {KeyDriverVersion, "590"}, {"dso.libblas.so", "00"}}, true},
		{"driver.version", Identity{{KeyGPUName, "H200"}, {KeyDriverVersion, "590"}, {"dso.libblas.so", "01"}}, false},
		{"driver.version, dso.*", Identity{{KeyGPUName, "H200"}, {KeyDriverVersion, "590"}, {"dso.libblas.so", "01"}}, true},
		{"dso.libblas.so", Identity{{KeyGPUName, "H200"}, {KeyDriverVersion, "580"}}, true},
		{"dso.lib", Identity{{KeyGPUName, "H200"}, {KeyDriverVersion, "580"}, {"dso.libblas.so", "01"}}, false},
		{"dso.*,driver.version", Identity{{KeyGPUName, "B200"}, {KeyDriverVersion, "580"}}, false},
		{"driver.version=590,dso.*", Identity{{KeyGPUName, "H200"}, {KeyDriverVersion, "590"}}, true},
		{"driver.version=570,driver.version=590,dso.*", Identity{{KeyGPUName, "H200"}, {KeyDriverVersion, "590"}}, true},
		{"driver.version=570,dso.*", Identity{{KeyGPUName, "H200"}, {KeyDriverVersion, "590"}}, false},
		{"driver.version=,dso.*", Identity{{KeyGPUName, "H200"}}, false},
	} {
		relaxed, err := ParseRelaxed(row.list)
		if err != nil {
			t.Fatal(err)
		}
		if m := Compare(want, row.got, relaxed); (m == nil) != row.allowed {
			t.Errorf("%q against %v: %v", row.list, row.got, m)
		}
	}
	if Compare(want, Identity{{KeyGPUName, "B200"}, want[1], want[2]}, Relaxed{KeyGPUName}) == nil {
		t.Error("a fatal difference was relaxed")
	}
	for _, list := range []string{"gpu.name", "*", "host.kernel", "driver.version,model.config", "gpu.name=B200"} {
		if r, err := ParseRelaxed(list); err == nil {
			t.Errorf("%q may be relaxed: %q", list, r)
		}
	}
}

// Only a driver of the same major version can be let pass by a check, and only if all other factors are
// equal.
func TestOnlyDriver(t *testing.T) {
	want := Identity{{KeyGPUName, "H200"}, {KeyDriverVersion, "12040"}, {KeyHostKernel, "6.1"}}
	for _, row := range []struct {
		got  Identity
		here string
		only bool
	}{
		{Identity{{KeyGPUName, "H200"}, {KeyDriverVersion, "12090"}, {KeyHostKernel, "6.1"}}, "12090", true},
		{Identity{{KeyGPUName, "H200"}, {KeyDriverVersion, "12090"}, {KeyHostKernel, "6.2"}}, "12090", true},
		{Identity{{KeyGPUName, "H200"}, {KeyDriverVersion, "13000"}, {KeyHostKernel, "6.1"}}, "", false},
		{Identity{{KeyGPUName, "H200"}, {KeyDriverVersion, "none"}, {KeyHostKernel, "6.1"}}, "", false},
		{Identity{{KeyGPUName, "H200"}, {KeyHostKernel, "6.1"}}, "", false},
		{Identity{{KeyGPUName, "B200"}, {KeyDriverVersion, "12090"}, {KeyHostKernel, "6.1"}}, "", false},
	} {
		m := Compare(want, row.got, nil)
		if m == nil {
			t.Fatalf("%v passes", row.got)
		}
		if here, only := m.OnlyDriver(); here != row.here || only != row.only {
			t.Errorf("%v: %q, %v; want %q, %v", row.got, here, only, row.here, row.only)
		}
	}
}

func TestIdentityValidate(t *testing.T) {
	for _, id := range []Identity{{{"", "x"}}, {{"\xff", "x"}}, {{"a", "\xff"}}, {{"a", "1"}, {"a", "1"}}} {
		if id.Validate() == nil {
			t.Errorf("%q is accepted", id)
		}
	}
	if err := (Identity{{"a", ""}, {"b", ""}}).Validate(); err != nil {
		t.Error(err)
	}
}
