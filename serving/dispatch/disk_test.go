package dispatch

import (
	"bytes"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// stuck is a disk that does not write before it is released.
type stuck struct {
	release chan struct{}
	bytes.Buffer
}

func (s *stuck) Write(p []byte) (int, error) {
	<-s.release
	return s.Buffer.Write(p)
}

// If a disk does not write, decisions go on, and the log takes bounded memory. The log ends before the first decision that is missing, and
// the lines before it replay.
func TestDiskThatIsStuck(t *testing.T) {
	var out stuck
	out.release = make(chan struct{})
	var failed atomic.Int32
	disk := NewDisk(&out, func(error) { failed.Add(1) })
	log := NewLog(disk)
	queue := func() {
		q, err := NewQueue(Config{Policy: "fcfs", Params: paramsFor(2), GPUs: 1}, newWorld(1, 8), func() float64 { return 0 }, log)
		if err != nil {
			t.Fatal(err)
		}
		for i := range maxPieces {
			turn, err := q.Wait(t.Context(), Ask{Fn: i % 2})
			if err != nil {
				t.Fatal(err)
			}
			q.end(turn.Request.ID)
			turn.Done(1)
		}
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		queue()
	}()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Error("decisions wait for the disk")
	}
	close(out.release)
	<-ended
	if err := log.Close(); !errors.Is(err, ErrBehind) || failed.Load() != 1 {
		t.Errorf("closed: %v, %d errors were told", err, failed.Load())
	}
	_ = disk.Close()
	if r, err := Replay(&out.Buffer); err != nil || r.Decisions == 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

// Lines are on the disk as soon as they are decided, not at the end of the run.
func TestDecisionsAreWrittenAtOnce(t *testing.T) {
	written := make(chan string, 100)
	disk := NewDisk(told(written), func(err error) { t.Error(err) })
	log := NewLog(disk)
	q, err := NewQueue(Config{Policy: "fcfs", Params: paramsFor(1), GPUs: 1}, newWorld(1, 8), func() float64 { return 0 }, log)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := q.Wait(t.Context(), Ask{Fn: 0}); err != nil {
		t.Fatal(err)
	}
	for text := ""; !strings.Contains(text, `"decided":{"id":0`); {
		select {
		case more := <-written:
			text += more
		case <-time.After(time.Minute):
			t.Fatalf("written so far: %s", text)
		}
	}
	if err := errors.Join(log.Close(), disk.Close()); err != nil {
		t.Error(err)
	}
}

type told chan string

func (c told) Write(p []byte) (int, error) {
	c <- string(p)
	return len(p), nil
}

// If a server was killed, its log may end within a line. The lines before it replay.
func TestReplayOfACutLog(t *testing.T) {
	var data bytes.Buffer
	log := NewLog(&data)
	drive(t, "mqfq", 1, log)
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	whole := data.Bytes()
	cut := 0
	for end := len(whole) / 2; end < len(whole)/2+200; end++ {
		r, err := Replay(bytes.NewReader(whole[:end]))
		if err != nil || r.Decisions == 0 {
			t.Fatalf("of %d bytes, %d: %+v, %v", len(whole), end, r, err)
		}
		if r.Cut {
			cut++
		}
	}
	if cut == 0 || cut == 200 {
		t.Errorf("%d of 200 ends are within a line", cut)
	}
	if _, err := Replay(strings.NewReader(string(whole[:len(whole)/2]) + "\n")); err == nil {
		t.Error("half a line before the end is accepted")
	}
}
