package importrules

import (
	"slices"
	"strings"
	"testing"
)

// pure packages turn values into values. All their imports are listed here, so that no import starts a process, opens a file or
// asks the machine.
var pure = map[string][]string{
	"medusa/graphir": {"bufio", "bytes", "cmp", "crypto/sha256", "encoding/binary", "errors", "fmt", "io",
		"maps", "math", "math/bits", "reflect", "slices", "sort", "strings", "unicode/utf8", "unsafe", "medusa/graphir/graphpb",
		"google.golang.org/protobuf/encoding/protowire", "google.golang.org/protobuf/proto"},
	"medusa/materialize/compile": {"bytes", "cmp", "crypto/sha256", "encoding/binary", "errors", "fmt", "hash/maphash", "maps", "math", "math/bits",
		"math/rand/v2", "slices", "sort", "strings", "medusa/graphir", "medusa/internal/contract", "medusa/internal/cubin", "medusa/internal/slab",
		"medusa/interpose/trace", "medusa/materialize/recording"},
}

func TestPurePackages(t *testing.T) {
	found := 0
	for _, p := range packages(t) {
		may, listed := pure[p.ImportPath]
		if !listed {
			continue
		}
		found++
		for _, wrong := range impure(p.Imports, may) {
			t.Errorf("%s imports %s, which is not on its list", p.ImportPath, wrong)
		}
	}
	if found != len(pure) {
		t.Errorf("%d pure packages, %d listed", found, len(pure))
	}
}

func TestWhatIsImpure(t *testing.T) {
	if got := impure([]string{"fmt", "os", "slices", "os/exec"}, []string{"fmt", "slices"}); strings.Join(got, " ") != "os os/exec" {
		t.Errorf("found %q", got)
	}
}

func impure(imports, may []string) (wrong []string) {
	for _, i := range imports {
		if !slices.Contains(may, i) {
			wrong = append(wrong, i)
		}
	}
	return wrong
}
