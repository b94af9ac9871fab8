package bundled

import (
	"path"
	"strings"

	"medusa/artifacts"
)

// Cache is the folder in which a JIT compiler stores its output. An environment variable names the folder.
type Cache struct{ Name, Variable string }

// Caches are bundled with every artifact, each as a bundled directory of this name.
var Caches = []Cache{
	{"flashinfer", "FLASHINFER_WORKSPACE_BASE"},
	{"inductor", "TORCHINDUCTOR_CACHE_DIR"},
	{"triton", "TRITON_CACHE_DIR"},
	{"vllm", "VLLM_CACHE_ROOT"},
}

// Variable returns the environment variable of a cache, or "" if the directory is not a cache.
func Variable(name string) string {
	for _, c := range Caches {
		if c.Name == name {
			return c.Variable
		}
	}
	return ""
}

// CachesDir and CachesPrefix name the folder of the caches in recording runs: a folder with a random name that any machine can
// have. Compilers write absolute paths into their output, also into binary files with checksums. Each start therefore sees its
// caches at the recorded path, wherever they are unpacked.
const (
	CachesDir    = "/tmp"
	CachesPrefix = "medusa-caches-"
)

// Linked says whether a bundled directory is a cache with such a path. A start uses no other path out of an artifact. A symbolic link leads
// from the recorded path to the unpacked cache.
func Linked(l *artifacts.Directory) bool {
	folder, name := path.Split(l.Path)
	return Variable(l.Name) != "" && name == l.Name && RecordedPath(strings.TrimSuffix(folder, "/"))
}

// RecordedPath says whether a path is that of a folder of caches in recording runs.
func RecordedPath(path string) bool {
	digits, found := strings.CutPrefix(path, CachesDir+"/"+CachesPrefix)
	// mutant: paths of strangers are not written to
	return found && digits != "" && len(digits) <= maxDigits && strings.Trim(digits, "0123456789") == ""
}

// maxDigits exceeds the number of digits that os.MkdirTemp puts into a name.
const maxDigits = 20
