package pool

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"medusa/test/testenv"
)

// serve runs a pool without processes.
func serve(t *testing.T) (socket string) {
	t.Helper()
	dir := t.TempDir()
	socket = filepath.Join(dir, "folder", "pool")
	l, err := Listen(socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- New(&Spec{Socket: socket}, io.Discard).Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return socket
}

// A malformed request gets an error, and the next request is served.
func TestMalformedRequests(t *testing.T) {
	socket := serve(t)
	for _, row := range []struct{ sent, want string }{
		{"", ""},
		{"\x00", "unexpected EOF"},
		{"\x00\x00\x00\x04{}", "unexpected EOF"},
		{"\xff\xff\xff\xff", "4294967295 bytes"},
		{"\x00\x00\x00\x02[]", "cannot unmarshal"},
		{"\x00\x00\x00\x02{}", "protocol 0 is not known"},
		{"\x00\x00\x00\x1e" + `{"protocol": 1, "ask": "dance"}`[:30], "unexpected end"},
		{"\x00\x00\x00\x1f" + `{"protocol": 1, "ask": "dance"}`, `"dance" is not known`},
		{"\x00\x00\x00\x1f" + `{"protocol": 1, "ask": "start"}`, "0 descriptors came"},
	} {
		c, err := dial(socket)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = c.Write([]byte(row.sent))
		_ = c.CloseWrite()
		var a answer
		if _, err := receive(c, &a); row.want == "" && err == nil || row.want != "" && !strings.Contains(a.Error, row.want) {
			t.Errorf("%q: got %+v, %v, want %s", row.sent, a, err, row.want)
		}
		_ = c.Close()
	}
	if _, err := ReadStatus(socket); err != nil {
		t.Error(err)
	}
}

// Other users must not be able to open the folder of the socket.
func TestOpenFolder(t *testing.T) {
	dir := t.TempDir()
	open := filepath.Join(dir, "open")
	if err := os.Mkdir(open, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(filepath.Join(open, "pool")); err == nil || !strings.Contains(err.Error(), "chmod 700") {
		t.Errorf("got %v", err)
	}
	if _, err := ReadStatus(filepath.Join(open, "pool")); !errors.Is(err, os.ErrNotExist) || strings.Contains(err.Error(), "chmod") {
		t.Errorf("a socket that is missing: got %v", err)
	}
	if err := os.WriteFile(filepath.Join(open, "pool"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadStatus(filepath.Join(open, "pool")); err == nil || !strings.Contains(err.Error(), "chmod 700") {
		t.Errorf("got %v", err)
	}
}

// A second pool does not take the socket of the first. A pool that was killed leaves a socket that no process
// serves.
func TestSocketOfAnother(t *testing.T) {
	socket := serve(t)
	if _, err := Listen(socket); err == nil || !strings.Contains(err.Error(), "another pool serves it") {
		t.Errorf("got %v", err)
	}
	left := filepath.Join(t.TempDir(), "folder", "pool")
	l, err := Listen(left)
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	_ = l.Close()
	if l, err = Listen(left); err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
}

// asks makes this program act as another user's process: it sends a whole request for the status.
const asks = "medusa-test-asks"

func init() {
	if os.Args[0] == asks {
		c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: os.Args[1], Net: "unix"})
		if err != nil {
			_, _ = os.Stdout.WriteString(err.Error())
			os.Exit(0)
		}
		_ = send(c, request{Protocol: protocol, Ask: "status"})
		_, _ = io.Copy(os.Stdout, c)
		os.Exit(0)
	}
}

func TestAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		testenv.Skip(t, testenv.Superuser)
	}
	socket := serve(t)
	ask := func() string {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		// A copy that all users can read: they may not be able to open the test's own folder.
		dir, err := os.MkdirTemp("/tmp", "medusa-pool-")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		data, err := os.ReadFile(self)
		if err == nil {
			err = os.Chmod(dir, 0o755)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "asks"), data, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
		cmd := &exec.Cmd{Path: filepath.Join(dir, "asks"), Args: []string{asks, socket}, Dir: "/",
			SysProcAttr: &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 54321, Gid: 54321}}}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return string(out)
	}
	if got := ask(); !strings.Contains(got, "permission denied") {
		t.Errorf("the folder lets another user in: %q", got)
	}
	// All folders and the socket are open to all users, as by a mistake.
	for path := socket; path != "/tmp" && path != "/"; path = filepath.Dir(path) {
		if err := os.Chmod(path, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if got := ask(); !strings.Contains(got, "this pool is user 0's") {
		t.Errorf("the pool answers another user: %q", got)
	}
}

// A descriptor arrives with a message of any length.
func TestMessages(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, size := range []int{0, 1, 5 << 20} {
		go func() {
			c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: socket, Net: "unix"})
			if err != nil {
				return
			}
			defer c.Close()
			r, w, err := os.Pipe()
			if err != nil {
				return
			}
			_, _ = w.WriteString("through the pipe")
			_ = w.Close()
			_ = send(c, answer{Error: strings.Repeat("x", size)}, r)
			_ = r.Close()
		}()
		c, err := l.AcceptUnix()
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		var a answer
		files, err := receive(c, &a)
		if err != nil || len(files) != 1 || len(a.Error) != size {
			t.Fatalf("got %d files, %d bytes, %v", len(files), len(a.Error), err)
		}
		var text bytes.Buffer
		if _, err := text.ReadFrom(files[0]); err != nil || text.String() != "through the pipe" {
			t.Errorf("got %q, %v", text.String(), err)
		}
		closeAll(files)
		_ = c.Close()
	}
}
