package specfile

import (
	"reflect"
	"testing"
)

func TestParse(t *testing.T) {
	got, err := Parse("# of nothing\n\n# one\n# two\nrow a b # said\n\tm u8 # of m\n\n  n u8\nlast c\n")
	want := []Row{
		{Line: 5, Doc: []string{"one", "two"}, Words: []string{"row", "a", "b"},
			Members: []Member{{6, []string{"m", "u8"}, "of m"}, {8, []string{"n", "u8"}, ""}}},
		{Line: 9, Words: []string{"last", "c"}},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v\ngot  %+v\nwant %+v", err, got, want)
	}
	if _, err := Parse("\n\tm u8\n"); err == nil {
		t.Error("a member without a row is accepted")
	}
}

func TestGoName(t *testing.T) {
	for name, want := range map[string]string{"kv_profile": "KVProfile", "image_sha256": "ImageSHA256", "fn": "Fn"} {
		if got := GoName(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
