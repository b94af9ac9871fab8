package status

import (
	"os"
	"path/filepath"
	"testing"
)

// A status that cannot be written leaves a mark, and what a link of that name leads to stays as it is.
func TestUnwrittenFollowsNoLink(t *testing.T) {
	dir := t.TempDir()
	victim, path := filepath.Join(dir, "victim"), filepath.Join(dir, "status.json")
	if err := os.WriteFile(victim, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o700); err != nil { // no file can take this place
		t.Fatal(err)
	}
	if err := Write(path, &Status{}); err == nil {
		t.Fatal("the status is written")
	}
	if _, err := os.Lstat(path + Unwritten); err != nil {
		t.Error(err)
	}
	if err := os.Remove(path + Unwritten); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(victim, path+Unwritten); err != nil {
		t.Fatal(err)
	}
	if err := Write(path, &Status{}); err == nil {
		t.Fatal("the status is written")
	}
	if text, err := os.ReadFile(victim); err != nil || string(text) != "secret" {
		t.Errorf("the victim has %q (%v)", text, err)
	}
}
