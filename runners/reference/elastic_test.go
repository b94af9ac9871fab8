package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"medusa/runners/reference/engine"
)

// An engine whose KV cache has pages of few blocks: a row of pages, one for keys and one for values, has eight blocks, and a sequence of full
// length four.
const (
	rowBytes  = 2 * 2 << 20
	rowBlocks = 8
)

var wide = shape{hidden: 16, intermediate: 24, heads: 16, kvHeads: 16, headDim: 128, vocab: 64, layers: 1, dtype: "F32"}

// elastic returns the arguments of such an engine.
func elastic(t *testing.T, rows, mapped int) []string {
	dir := t.TempDir()
	c := wide.checkpoint()
	c.config["max_position_embeddings"] = 128
	c.write(t, dir)
	return []string{"--model", dir, "--batch-sizes", "1,2,4,8", "--page-size", "32", "--kv", "elastic", "--kv-cache-bytes", fmt.Sprint(rows * rowBytes),
		"--kv-mapped-bytes", fmt.Sprint(mapped * rowBytes)}
}

// kv asks for another size, or, for 0 rows, for the size as it is.
func (s *server) kv(ctx context.Context, rows int) (size engine.KVSize, status int, err error) {
	method, path := http.MethodGet, "/kv_cache"
	if rows != 0 {
		method, path = http.MethodPost, fmt.Sprintf("/kv_cache?bytes=%d", rows*rowBytes)
	}
	request, err := http.NewRequestWithContext(ctx, method, s.url+path, nil)
	if err != nil {
		return size, 0, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return size, 0, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode == http.StatusOK {
		err = json.Unmarshal(text, &size)
	}
	return size, response.StatusCode, err
}

func (s *server) get(path string) (string, error) {
	response, err := http.Get(s.url + path)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return string(text), err
}

// resizes demands that a resize succeeds.
func (s *server) resizes(t *testing.T, rows int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	size, status, err := s.kv(ctx, rows)
	if want := (engine.KVSize{Range: 3 * rowBytes, Least: rowBytes, Mapped: uint64(rows * rowBytes), Page: rowBytes, Blocks: rows * rowBlocks}); err != nil || size != want {
		t.Fatalf("resize to %d rows: status %d, %+v, want %+v: %v", rows, status, size, want, err)
	}
}

// stream returns the tokens of an answer, and calls first at its first piece, or at an error before.
func (s *server) stream(i, tokens int, first func()) (ids []int, err error) {
	first = sync.OnceFunc(first)
	defer first()
	response, err := s.post(context.Background(), "/v1/completions", request(i, tokens, true))
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		data, is := strings.CutPrefix(lines.Text(), "data: ")
		if !is || data == "[DONE]" {
			continue
		}
		first()
		var r reply
		if err := json.Unmarshal([]byte(data), &r); err != nil || len(r.Choices) == 0 {
			return nil, fmt.Errorf("event %s: %v", data, err)
		}
		ids = append(ids, r.Choices[0].TokenIDs...)
	}
	return ids, nil
}

// request is a body; different ones have different prompts.
func request(i, tokens int, stream bool) map[string]any {
	return map[string]any{"model": "wide", "prompt": []int{1 + i, 7, 3}, "max_tokens": tokens, "ignore_eos": true, "return_token_ids": true,
		"stream": stream}
}

// A cache that shrinks under load waits for the blocks that running requests have and may still need: they get the tokens that they get alone.
func TestServeResizes(t *testing.T) {
	s := serving(t, nil, append(elastic(t, 3, 3), "--served-model-name", "wide")...)
	ask := func(i, tokens int) ([]int, error) {
		_, ids, err := s.ask("/v1/completions", request(i, tokens, false))
		return ids, err
	}
	// Four are done early. The last one has blocks of the second and third row by then.
	lengths := []int{100, 100, 100, 100, 122}
	want := make([][]int, len(lengths))
	for i, n := range lengths {
		var err error
		if want[i], err = ask(i, n); err != nil {
			t.Fatal(err)
		}
	}
	var all, started sync.WaitGroup
	started.Add(len(lengths))
	for i, n := range lengths {
		all.Go(func() {
			ids, err := s.stream(i, n, started.Done)
			if err != nil || !slices.Equal(ids, want[i]) {
				t.Errorf("request %d: %v\n got %v\nwant %v", i, err, ids, want[i])
			}
		})
	}
	started.Wait()
	s.resizes(t, 1)
	all.Wait()
	s.resizes(t, 3)
	text, err := s.get("/metrics")
	for _, line := range []string{fmt.Sprintf("medusa_kv_range_bytes %d", 3*rowBytes), fmt.Sprintf("medusa_kv_mapped_bytes %d", 3*rowBytes), fmt.Sprintf("medusa_kv_blocks %d", 3*rowBlocks)} {
		if err != nil || !strings.Contains(text, line+"\n") {
			t.Errorf("metrics lack %q: %v\n%s", line, err, text)
		}
	}
	for _, row := range []struct{ rows, status int }{{4, 400}, {-1, 400}} {
		if _, status, err := s.kv(t.Context(), row.rows); status != row.status {
			t.Errorf("resize to %d rows: status %d, %v", row.rows, status, err)
		}
	}
	s.stop(t)
}

// A client that leaves takes its resize with it: the cache keeps its size.
func TestResizeIsKept(t *testing.T) {
	s := serving(t, nil, append(elastic(t, 3, 3), "--served-model-name", "wide")...)
	var all, started sync.WaitGroup
	started.Add(5)
	for i := range 5 {
		all.Go(func() {
			if _, err := s.stream(i, 122, started.Done); err != nil {
				t.Error(err)
			}
		})
	}
	started.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if size, _, err := s.kv(ctx, 1); err == nil {
		t.Errorf("a cache in use has shrunk: %+v", size)
	}
	all.Wait()
	s.resizes(t, 3)
	s.stop(t)
}

// If a call of a resize fails, the cache has its old size, and the next resize succeeds.
func TestFailedResize(t *testing.T) {
	// The start makes two mappings, and the resize four: the last of a row fails, and the first of the next.
	for _, fault := range []string{"cuMemSetAccess:4", "cuMemMap:5"} {
		s := serving(t, []string{"SIMGPU_FAIL=" + fault + ":CUDA_ERROR_OUT_OF_MEMORY"}, elastic(t, 3, 1)...)
		if _, status, err := s.kv(t.Context(), 3); status != 500 {
			t.Errorf("%s: status %d, %v", fault, status, err)
		}
		if size, _, err := s.kv(t.Context(), 0); err != nil || size.Mapped != rowBytes || size.Blocks != rowBlocks {
			t.Errorf("%s: %+v, %v", fault, size, err)
		}
		s.resizes(t, 3)
		s.stop(t)
	}
}

// An artifact serves with any part of the cache mapped. Verification has only the least part: a graph that touched another block would fail.
func TestElasticRestored(t *testing.T) {
	dir := t.TempDir()
	artifact := filepath.Join(dir, "a.medusa")
	run := func(mapped int) []string {
		return append([]string{"run", "--batches", "1:40,2:3", "--seed", "11", "-o", "json"}, elastic(t, 8, mapped)...)
	}
	if p := underMedusa(t, nil, []string{"materialize", "-o", artifact}, run(8)...); p.code != 0 {
		t.Fatalf("materialize ends with exit code %d\n%s", p.code, p.stderr)
	}
	for _, mapped := range []int{1, 2} {
		native := result[runResult](t, nil, run(mapped)...)
		p := underMedusa(t, nil, []string{"restore", artifact}, run(mapped)...)
		restored := decodeRun(t, p)
		if restored.Start != "restored" || restored.KVBlocks != mapped*rowBlocks || native.KVBlocks != restored.KVBlocks {
			t.Errorf("%d rows: start %q, %d blocks, natively %d\n%s", mapped, restored.Start, restored.KVBlocks, native.KVBlocks, p.stderr)
		}
		if !reflect.DeepEqual(restored.Runs, native.Runs) {
			t.Errorf("%d rows: tokens differ:\nnative   %v\nrestored %v", mapped, native.Runs, restored.Runs)
		}
	}
}

// A cache with a floor gives way to another process of the device, under load, and takes the memory again when that ends.
func TestFloor(t *testing.T) {
	shared := []string{"SIMGPU_MEMORY=512M", "SIMGPU_SHARED=" + filepath.Join(t.TempDir(), "device")}
	s := serving(t, shared, append(elastic(t, 3, 3), "--served-model-name", "wide", "--kv-free-floor", fmt.Sprint(300<<20))...)
	until := func(rows int) {
		t.Helper()
		for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
			size, _, err := s.kv(t.Context(), 0)
			if err == nil && size.Mapped == uint64(rows*rowBytes) {
				return
			}
			if err != nil || time.Now().After(end) {
				t.Fatalf("%+v, want %d rows: %v\n%s", size, rows, err, s.stderr)
			}
		}
	}
	_, want, err := s.ask("/v1/completions", request(1, 100, false))
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
				}
				if _, ids, err := s.ask("/v1/completions", request(1, 100, false)); err != nil || !slices.Equal(ids, want) {
					t.Errorf("%v\n got %v\nwant %v", err, ids, want)
					return
				}
			}
		})
	}
	until(3)
	other := elastic(t, 64, 64)
	neighbour := serving(t, shared, other...)
	until(1)
	neighbour.stop(t)
	until(3)
	s.resizes(t, 2)
	neighbour = serving(t, shared, other...)
	until(1)
	neighbour.stop(t)
	until(2)
	close(over)
	all.Wait()
	s.stop(t)
	if p := start(t, nil, "serve", "--model", "models/tiny", "--kv-free-floor", "1"); p.code != 2 || !strings.Contains(p.stderr, "not elastic") {
		t.Errorf("a fixed cache with a floor: exit code %d\n%s", p.code, p.stderr)
	}
}

// An elastic cache has no memory while the engine sleeps. It wakes with its old size, or with the memory that the device has left.
func TestElasticSleeps(t *testing.T) {
	const rows = 24
	shared := []string{"SIMGPU_MEMORY=256M", "SIMGPU_SHARED=" + filepath.Join(t.TempDir(), "device")}
	s := serving(t, shared, append(elastic(t, rows, rows), "--served-model-name", "wide", "--enable-sleep-mode")...)
	answers := func() []int {
		t.Helper()
		_, ids, err := s.ask("/v1/completions", request(1, 100, false))
		if err != nil {
			t.Fatal(err)
		}
		return ids
	}
	post := func(path string, status int) {
		t.Helper()
		response, err := s.post(t.Context(), path, nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != status {
			t.Fatalf("%s: status %s", path, response.Status)
		}
	}
	has := func() engine.KVSize {
		t.Helper()
		size, _, err := s.kv(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		return size
	}
	want, before := answers(), has()
	post("/sleep?level=1", 200)
	if size := has(); size.Mapped != 0 || size.Blocks != 0 {
		t.Errorf("asleep: %+v", size)
	}
	post(fmt.Sprintf("/kv_cache?bytes=%d", rowBytes), 503)
	post("/wake_up", 200)
	if size := has(); size != before || !slices.Equal(answers(), want) {
		t.Errorf("awake: %+v, before %+v", size, before)
	}
	post("/sleep?level=1", 200)
	neighbour := serving(t, shared, elastic(t, 40, 40)...)
	post("/wake_up", 200)
	if size := has(); size.Mapped <= rowBytes || size.Mapped >= before.Mapped || size.Blocks != int(size.Mapped/rowBytes)*rowBlocks || !slices.Equal(answers(), want) {
		t.Errorf("beside another engine: %+v, before %+v", size, before)
	}
	post("/sleep?level=1", 200)
	neighbour.stop(t)
	neighbour = serving(t, shared, elastic(t, 60, 60)...)
	post("/wake_up", 500)
	if size := has(); size.Mapped != 0 {
		t.Errorf("without room for the least part: %+v", size)
	}
	neighbour.stop(t)
	post("/wake_up", 200)
	if !slices.Equal(answers(), want) {
		t.Error("after a wake without room: other tokens")
	}
	post("/sleep?level=1", 200) // and ends asleep
	s.stop(t)
}
