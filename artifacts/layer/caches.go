package layer

import (
	"strings"

	"medusa/artifacts"
)

// Cache is where a JIT compiler keeps what it made: the folder that an environment variable names.
type Cache struct{ Name, Variable string }

// Caches travel with an artifact by themselves, each as a layer of its name.
var Caches = []Cache{
	{"flashinfer", "FLASHINFER_WORKSPACE_BASE"},
	{"inductor", "TORCHINDUCTOR_CACHE_DIR"},
	{"triton", "TRITON_CACHE_DIR"},
	{"vllm", "VLLM_CACHE_ROOT"},
}

// Variable returns the environment variable of a cache, or nothing where a layer's name is not that of one.
func Variable(name string) string {
	for _, c := range Caches {
		if c.Name == name {
			return c.Variable
		}
	}
	return ""
}

// CachesDir and CachesPrefix say where recording runs have their caches: in a folder with a random name that any machine
// can have. Compilers write absolute paths into what they keep, into binary files with checksums, too; so each start
// sees its caches at the path at which they were recorded, wherever they are unpacked.
const (
	CachesDir    = "/tmp"
	CachesPrefix = "medusa-caches-"
)

// Linked says that a layer is a cache with exactly such a path, which is the only kind of path in an artifact that a start
// uses. A link leads from there to where the cache is unpacked.
func Linked(l *artifacts.Layer) bool {
	rest, found := strings.CutPrefix(l.Path, CachesDir+"/"+CachesPrefix)
	digits, name, _ := strings.Cut(rest, "/")
	// mutant: paths of strangers are not written to
	return found && Variable(l.Name) != "" && name == l.Name &&
		digits != "" && len(digits) <= maxDigits && strings.Trim(digits, "0123456789") == ""
}

// maxDigits is more than os.MkdirTemp puts into a name.
const maxDigits = 20
