package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// An artifact that is evicted between open and lock is not pinned.
func TestPinNoticesEviction(t *testing.T) {
	data, digest := made(t)
	s := opened(t, 1<<20)
	p := add(t, s, data, digest, "")
	p.Close()
	evictor, err := os.Open(p.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer evictor.Close()
	if err := unix.Flock(int(evictor.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	got := make(chan error)
	go func() {
		p, err := s.Pin(digest)
		if err == nil {
			p.Close()
		}
		got <- err
	}()
	// Wait until Pin has opened the file: /proc then shows two descriptors of it, one of them the evictor's.
	for deadline := time.Now().Add(10 * time.Second); opens(t, p.Path) < 2; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the file is never opened")
		}
	}
	if err := errors.Join(os.Remove(p.Path), evictor.Close()); err != nil {
		t.Fatal(err)
	}
	if err := <-got; !errors.Is(err, ErrNotFound) {
		t.Errorf("pinned an evicted artifact: %v", err)
	}
}

// opens counts this process's descriptors of a file.
func opens(t *testing.T, path string) int {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, fd := range fds {
		if to, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && to == path {
			n++
		}
	}
	return n
}

// Workers that add, use and evict at once see complete artifacts or none.
func TestWorkersAtOnce(t *testing.T) {
	var data [3][]byte
	var digest [3]string
	for i := range data {
		data[i], digest[i] = made(t, model(fmt.Sprint(i)))
	}
	dir := t.TempDir()
	limit := int64(len(data[0]) + len(data[1])/2) // room for one artifact
	var group sync.WaitGroup
	for w := range 6 {
		group.Go(func() {
			s, err := Open(dir, limit)
			if err != nil {
				t.Error(err)
				return
			}
			for round := range 60 {
				i := (w + round) % len(data)
				p, err := s.Add(context.Background(), digest[i], int64(len(data[i])), "name", nil, func(ctx context.Context, f *os.File, have int64) error {
					for ; have < int64(len(data[i])); have++ { // slowly, so that others meet a partial file
						if _, err := f.Write(data[i][have : have+1]); err != nil {
							return err
						}
					}
					return nil
				})
				if err != nil {
					t.Errorf("worker %d: %v", w, err)
					continue
				}
				if got, err := os.ReadFile(p.Path); err != nil || !bytes.Equal(got, data[i]) {
					t.Errorf("worker %d: pinned artifact has %d bytes, %v", w, len(got), err)
				}
				if _, err := s.Find("name"); err != nil && !errors.Is(err, ErrNotFound) {
					t.Error(err)
				}
				p.Close()
			}
		})
	}
	group.Wait()
	s, err := Open(dir, limit)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Prune(limit); err != nil {
		t.Fatal(err)
	}
	if got := digests(t, s); len(got) != 1 {
		t.Errorf("%d artifacts are left with room for one", len(got))
	}
}
