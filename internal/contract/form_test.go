package contract

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func getenv(env []string) func(string) string {
	return func(name string) string {
		for _, kv := range env {
			if value, found := strings.CutPrefix(kv, name+"="); found {
				return value
			}
		}
		return ""
	}
}

// A start with every field set survives the way through an environment.
func TestStartThroughAnEnvironment(t *testing.T) {
	want := Start{Run: RunCheckRestored, Peers: PeersOther, Weights: ContentsCount, KVBytes: []uint64{1 << 40, 0}, WorkspaceBytes: []uint64{7}, Began: time.Unix(3, 5), Strict: true, Lazy: true, ReplaySeconds: 9, RankSeconds: 11, Engines: 2, Engine: 1}
	fields := reflect.ValueOf(&want).Elem()
	for i := range fields.NumField() {
		if f := fields.Field(i); f.Kind() == reflect.String && f.Len() == 0 {
			f.SetString(fields.Type().Field(i).Name + "=x, y")
		}
		if fields.Field(i).IsZero() {
			t.Fatalf("%s is not set", fields.Type().Field(i).Name)
		}
	}
	env := want.Environ()
	if len(env) != fields.NumField() {
		t.Errorf("%d variables of %d fields: %q", len(env), fields.NumField(), env)
	}
	got, err := ReadStart(getenv(env))
	if err != nil || !reflect.DeepEqual(*got, want) {
		t.Errorf("%v\ngot  %+v\nwant %+v", err, got, want)
	}
	if env := (Start{}).Environ(); len(env) != 0 {
		t.Errorf("%q sets no field", env)
	}
}

func TestStartAsText(t *testing.T) {
	env := Start{Run: RunCheckNative, KVBytes: []uint64{1, 2}, Began: time.Unix(1, 2), Strict: true}.Environ()
	if want := []string{"MEDUSA_RUN=check-native", "MEDUSA_KV_BYTES=1,2", "MEDUSA_STRICT=1", "MEDUSA_BEGAN=1000000002"}; !slices.Equal(env, want) {
		t.Errorf("%q, want %q", env, want)
	}
	env = Interposer{Mode: "record", GapSeed: 7, Exact: Range{0x1000, 0x20}, AtReady: true}.Environ()
	if want := []string{"MEDUSA_MODE=record", "MEDUSA_GAP_SEED=7", "MEDUSA_EXACT=0x1000:0x20", "MEDUSA_AT_READY=exit"}; !slices.Equal(env, want) {
		t.Errorf("%q, want %q", env, want)
	}
}

func TestReadStart(t *testing.T) {
	for _, row := range []struct{ env, err string }{
		{"", ""},
		{"MEDUSA_KV_BYTES=x MEDUSA_STATUS=s", ""}, // no run, so these are not read
		{"MEDUSA_BEGAN=x", "read MEDUSA_BEGAN: "},
		{"MEDUSA_RUN=check", `read MEDUSA_RUN: "check" is none of profile, record, check-native, check-restored, restore`},
		{"MEDUSA_RUN=record MEDUSA_KV_BYTES=1,x", "read MEDUSA_KV_BYTES: "},
		{"MEDUSA_RUN=record MEDUSA_WORKSPACE_BYTES=-1", "read MEDUSA_WORKSPACE_BYTES: "},
	} {
		start, err := ReadStart(getenv(strings.Fields(row.env)))
		if (err == nil) != (row.err == "") || err != nil && !strings.HasPrefix(err.Error(), row.err) {
			t.Errorf("%q: %v, want %q", row.env, err, row.err)
		}
		if row.err == "" && start.KVBytes != nil {
			t.Errorf("%q: %+v", row.env, start)
		}
	}
}
