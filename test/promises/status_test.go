package promises

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"medusa/restore"
	"medusa/restore/status"
)

// fields lists the JSON names of a struct with the kinds of their values, those of structs inside with a dot.
func fields(t reflect.Type, prefix string) (out []string) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		out = append(out, prefix+name+" "+f.Type.Kind().String())
		if k := f.Type.Kind(); (k == reflect.Slice || k == reflect.Pointer) && f.Type.Elem().Kind() == reflect.Struct {
			out = append(out, fields(f.Type.Elem(), prefix+name+".")...)
		}
	}
	return out
}

// Programs read the status: its fields keep their names and kinds. New ones are added to the list.
func TestStatusKeepsItsFields(t *testing.T) {
	golden, err := os.ReadFile(filepath.Join("testdata", "status.txt"))
	if err != nil {
		t.Fatal(err)
	}
	want, got := strings.Split(strings.TrimSpace(string(golden)), "\n"), fields(reflect.TypeFor[status.Status](), "")
	if !slices.Equal(got, want) {
		t.Errorf("fields are\n%s\nwant\n%s", strings.Join(got, "\n"), golden)
	}
	// A status of a later medusa is read by this one.
	data := []byte(`{"status":"restored","graphs":3,"of a later version":{"x":1}}`)
	var st status.Status
	if err := json.NewDecoder(bytes.NewReader(data)).Decode(&st); err != nil || st.Graphs != 3 {
		t.Error(st, err)
	}
}

// Programs compare values of the status, and exit codes.
func TestWordsOfTheStatus(t *testing.T) {
	for got, want := range map[any]any{
		status.Restored: "restored", status.Native: "native", status.Sticky: "sticky",
		status.NoSession: "no_session", status.Untrusted: "untrusted", status.SwitchedOff: "switched_off",
		status.Exact: "exact", status.Relocated: "relocated", status.OnDevice: "device", status.OnHost: "host",
		restore.ArtifactMissing: restore.Code("artifact_missing"), restore.ArtifactCorrupt: restore.Code("artifact_corrupt"),
		restore.Format: restore.Code("format"), restore.Incompatible: restore.Code("incompatible"), restore.Memory: restore.Code("memory"),
		restore.SequenceMismatch: restore.Code("sequence_mismatch"), restore.KernelNotFound: restore.Code("kernel_not_found"),
		restore.DriverError: restore.Code("driver_error"), restore.InterposerAbsent: restore.Code("interposer_absent"),
		restore.CheckFailed: restore.Code("check_failed"), restore.Engine: restore.Code("engine"),
		restore.Unsupported: restore.Code("unsupported"), restore.Internal: restore.Code("internal"),
		status.ExitSticky: 86,
	} {
		if got != want {
			t.Errorf("%v, want %v", got, want)
		}
	}
}
