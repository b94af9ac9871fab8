package trust

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A signature of version 0 has the form from before versions existed, byte by byte.
func TestOlderSignatures(t *testing.T) {
	public, private, _ := ed25519.GenerateKey(nil)
	old := ed25519.Sign(private, []byte("medusa signature v1\n"+digest+"\n"))
	if err := Verify(public, digest, 0, old); err != nil {
		t.Error(err)
	}
	for _, version := range []uint64{1, 7} {
		if Verify(public, digest, version, old) == nil || Verify(public, digest, 0, Sign(private, digest, version)) == nil {
			t.Errorf("version %d counts as another", version)
		}
	}
	if Verify(public, digest, 2, Sign(private, digest, 1)) == nil {
		t.Error("a version can be changed")
	}
}

const file = "sha256:1111111111111111111111111111111111111111111111111111111111111111"

// signed returns a proof that a key signed a manifest of file, with a version.
func signed(private ed25519.PrivateKey, reference string, version uint64) Proof {
	manifest := fmt.Appendf(nil, `{"layers":[{"digest":%q}]}`, file)
	return Proof{Reference: reference, Manifest: manifest, Signatures: []Signature{{
		Key: KeyID(private.Public().(ed25519.PublicKey)), Version: version, Bytes: Sign(private, digestOf(manifest), version)}}}
}

func TestJudge(t *testing.T) {
	now = func() time.Time { return time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC) }
	t.Cleanup(func() { now = time.Now })
	a, privateA, _ := ed25519.GenerateKey(nil)
	b, privateB, _ := ed25519.GenerateKey(nil)
	const ref, repo = "registry.example/llm/llama:v1", "registry.example/llm/llama"
	moved := signed(privateA, ref, 3)
	moved.Manifest = []byte(strings.ReplaceAll(string(moved.Manifest), "1111", "2222"))
	bumped := signed(privateA, ref, 3)
	bumped.Signatures[0].Version = 9
	renamed := signed(privateB, ref, 3)
	renamed.Signatures[0].Key = KeyID(a)
	key := func(k Key) Policy { k.Public = a; k.Name = "a"; return Policy{Keys: []Key{k}} }
	for _, row := range []struct {
		name   string
		policy Policy
		proofs []Proof
		asked  string
		why    string // empty: the artifact is accepted
	}{
		{name: "signed", policy: key(Key{}), proofs: []Proof{signed(privateA, ref, 0)}},
		{name: "made here", policy: key(Key{}), why: "no valid signature"},
		{name: "pulled unsigned", policy: key(Key{}), proofs: []Proof{{Reference: ref, Manifest: signed(privateA, ref, 0).Manifest}}, why: "no valid signature"},
		{name: "by another key", policy: key(Key{}), proofs: []Proof{signed(privateB, ref, 0)}, why: "no valid signature"},
		{name: "by another key with this one's name", policy: key(Key{}), proofs: []Proof{renamed}, why: "no valid signature"},
		{name: "another artifact's", policy: key(Key{}), proofs: []Proof{moved}, why: "not this artifact's"},
		{name: "in scope", policy: key(Key{Scopes: []string{"registry.example/x", "registry.example/llm/*"}}), proofs: []Proof{signed(privateA, ref, 0)}},
		{name: "out of scope", policy: key(Key{Scopes: []string{"registry.example/other/*"}}), proofs: []Proof{signed(privateA, ref, 0)}, why: "may not sign for " + repo},
		{name: "expired", policy: key(Key{Expires: now()}), proofs: []Proof{signed(privateA, ref, 0)}, why: "expired on 2030-01-01"},
		{name: "expires tomorrow", policy: key(Key{Expires: now().Add(time.Hour)}), proofs: []Proof{signed(privateA, ref, 0)}},
		{name: "old", policy: Policy{Keys: key(Key{}).Keys, Minimum: map[string]uint64{repo: 4}}, proofs: []Proof{signed(privateA, ref, 3)}, why: "below the least, 4"},
		{name: "new enough", policy: Policy{Keys: key(Key{}).Keys, Minimum: map[string]uint64{repo: 3}}, proofs: []Proof{signed(privateA, ref, 3)}},
		{name: "another's least", policy: Policy{Keys: key(Key{}).Keys, Minimum: map[string]uint64{"registry.example/x": 9}}, proofs: []Proof{signed(privateA, ref, 3)}},
		{name: "claims a version", policy: Policy{Keys: key(Key{}).Keys, Minimum: map[string]uint64{repo: 4}}, proofs: []Proof{bumped}, why: "no valid signature"},
		{name: "rotation", policy: Policy{Keys: []Key{{Name: "a", Public: a, Expires: now()}, {Name: "b", Public: b}}}, proofs: []Proof{signed(privateB, ref, 0)}},
		{name: "pulled by another name too, old by this", policy: Policy{Keys: key(Key{}).Keys, Minimum: map[string]uint64{repo: 4}}, asked: ref,
			proofs: []Proof{signed(privateA, "registry.example/other:1", 3), signed(privateA, ref, 3)}, why: "below the least"},
	} {
		s := Subject{Name: "x", Digest: file, Proofs: row.proofs, Reference: row.asked}
		row.policy.Required = true
		warning, err := row.policy.Judge(s)
		if warning != "" || (err == nil) != (row.why == "") || err != nil && (!errors.Is(err, ErrUntrusted) || !strings.Contains(err.Error(), row.why)) {
			t.Errorf("%s: %q, %v, want %q", row.name, warning, err, row.why)
		}
		s.Exposed = errors.New("mode 0777")
		if _, err := row.policy.Judge(s); !errors.Is(err, ErrUntrusted) {
			t.Errorf("%s, and others can write: %v", row.name, err)
		}
		// If the policy does not require signatures, the same reason is one line of warning.
		row.policy.Required = false
		s.Exposed = nil
		if warning, err := row.policy.Judge(s); err != nil || (warning == "") != (row.why == "" || len(row.proofs) == 0) {
			t.Errorf("%s, not required: %q, %v", row.name, warning, err)
		}
	}
}

// Without keys, artifacts that were made here or verified when pulled pass without a warning.
func TestJudgeWithoutKeys(t *testing.T) {
	_, private, _ := ed25519.GenerateKey(nil)
	for name, row := range map[string]struct {
		s     Subject
		doubt string
	}{
		"made here": {Subject{}, ""},
		"pulled":    {Subject{Proofs: []Proof{{Reference: "r/m:1"}}}, "pulled from r/m:1 and no signature was verified"},
		"verified":  {Subject{Proofs: []Proof{signed(private, "r/m:1", 0)}}, ""},
		"exposed":   {Subject{Exposed: errors.New("mode 0777")}, "others can change it"},
		"copied":    {Subject{Proofs: []Proof{{Exposed: "f: mode 0666"}}}, "copied from a file that others could change: f: mode 0666"},
		"both":      {Subject{Proofs: []Proof{{Exposed: "f: mode 0666"}, signed(private, "r/m:1", 0)}}, ""},
	} {
		if warning, err := (&Policy{}).Judge(row.s); err != nil || !strings.Contains(warning, row.doubt) || (warning == "") != (row.doubt == "") {
			t.Errorf("%s: %q, %v", name, warning, err)
		}
	}
}

func TestPatterns(t *testing.T) {
	for _, row := range []struct {
		pattern, repository string
		want                bool
	}{
		{"r/a", "r/a", true}, {"r/a", "r/ab", false}, {"r/*", "r/a/b", true}, {"r/*", "rx/a", false}, {"r/a/*", "r/a", false},
		{"r/*/b", "r/a/b", true}, {"r/*/b", "r/a/bc", false}, {"r/a*a", "r/a", false}, {"r/*x*y", "r/axby", true}, {"r/*x*y", "r/ayx", false},
	} {
		if got := matches(row.pattern, row.repository); got != row.want {
			t.Errorf("%s for %s: %v", row.pattern, row.repository, got)
		}
	}
	for ref, want := range map[string]string{"r:5000/a:v1": "r:5000/a", "r:5000/a": "r:5000/a", "r/a@sha256:00": "r/a", "r/a:v1@sha256:00": "r/a"} {
		if got := Repository(ref); got != want {
			t.Errorf("%s: %s", ref, got)
		}
	}
}

func TestReadPolicy(t *testing.T) {
	dir := t.TempDir()
	if err := Generate(filepath.Join(dir, "a")); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "trust.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const good = "mode: required\nkeys:\n  - name: a\n    file: a.pub\n    scopes: [r/llm/*]\n    expires: 2030-01-01\nminimum:\n  r/llm/llama: 7\n"
	write(good)
	p, err := ReadPolicy(path)
	if err != nil || !p.Required || len(p.Keys) != 1 || p.Keys[0].Scopes[0] != "r/llm/*" || p.Keys[0].Expires.Year() != 2030 || p.Minimum["r/llm/llama"] != 7 {
		t.Fatalf("%+v %v", p, err)
	}
	for text, why := range map[string]string{
		"":                 "needs one document",
		"keys: []":         "want warn or required",
		"mode: maybe\n":    `mode "maybe"`,
		"mode: required":   "needs keys",
		"mode: warn\nx: 1": "x",
		strings.Replace(good, "a.pub", "b.pub", 1):         "b.pub",
		strings.Replace(good, "2030-01-01", "soon", 1):     "expires",
		strings.Replace(good, "[r/llm/*]", "['*']", 1):     `scope "*"`,
		strings.Replace(good, "r/llm/*", "r*/llm", 1):      `scope "r*/llm"`,
		strings.Replace(good, "llama: 7", "llama:1: 7", 1): "without a tag",
		strings.Replace(good, "name: a", "name: ''", 1):    "needs a name",
		strings.Replace(good, "llama: 7", "llama: 010", 1): "trust.yaml:8:16: read YAML: 010 begins with 0",
		strings.Replace(good, "llama: 7", "llama: 7.9", 1): "trust.yaml:8:16: read YAML: the field needs a whole number, not 7.9",
		strings.Replace(good, "llama: 7", "llama:", 1):     "trust.yaml:8:16: read YAML: the field has no value",
		strings.Replace(good, "2030-01-01", "''", 1):       "expires",
		strings.Replace(good, " 2030-01-01", "", 1):        "trust.yaml:6:13: read YAML: the field has no value",
		strings.Replace(good, " [r/llm/*]", "", 1):         "trust.yaml:5:12: read YAML: the field has no value",
		strings.Replace(good, "[r/llm/*]", "[]", 1):        "key a: scopes is empty",
		good + "  <<: {r/llm/llama: 1}\n":                  "trust.yaml:9:3: read YAML: merge keys",
		"mode: warn\n---\n" + good:                         "needs one document",
		good + "x: " + strings.Repeat("[", 1000):           "nests too deeply",
	} {
		write(text)
		began := time.Now()
		if _, err := ReadPolicy(path); err == nil || !strings.Contains(err.Error(), why) || !strings.Contains(err.Error(), path) {
			t.Errorf("%.200q: %.200v, want %q", text, err, why)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("%.200q: took %v", text, took)
		}
	}
	write(good)
	for _, open := range []string{path, filepath.Join(dir, "a.pub"), dir} {
		before, err := os.Stat(open)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(open, 0o777); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadPolicy(path); err == nil || !strings.Contains(err.Error(), open+": others can write") {
			t.Errorf("%s is open: %v", open, err)
		}
		if err := os.Chmod(open, before.Mode()); err != nil {
			t.Fatal(err)
		}
	}
	// A key on the command line narrows the policy.
	t.Setenv("MEDUSA_TRUST", path)
	if p, err := FromEnv(filepath.Join(dir, "a.pub")); err != nil || len(p.Keys) != 1 || p.Keys[0].Name != "a" || p.Minimum["r/llm/llama"] != 7 {
		t.Errorf("%+v %v", p, err)
	}
	if err := Generate(filepath.Join(dir, "other")); err != nil {
		t.Fatal(err)
	}
	if _, err := FromEnv(filepath.Join(dir, "other.pub")); !errors.Is(err, ErrUntrusted) {
		t.Errorf("a key that the policy does not have: %v", err)
	}
}
