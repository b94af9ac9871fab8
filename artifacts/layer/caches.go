package layer

import (
	"path/filepath"
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

// Linked says that a layer is a cache with such a path. A link leads from there to where it is unpacked.
func Linked(l *artifacts.Layer) bool {
	dir, name := filepath.Split(l.Path)
	dir = filepath.Clean(dir)
	return Variable(l.Name) != "" && name == l.Name && filepath.Dir(dir) == CachesDir && strings.HasPrefix(filepath.Base(dir), CachesPrefix)
}
