package pool

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	protocol    = 1
	mostMessage = 64 << 20
	mostFiles   = 253 // the kernel's limit for one message
)

// send writes a message with descriptors.
func send(c *net.UnixConn, message any, files ...*os.File) error {
	text, err := json.Marshal(message)
	if err != nil {
		return err
	}
	if len(files) > mostFiles {
		return fmt.Errorf("send message: %d descriptors (at most %d)", len(files), mostFiles)
	}
	data := binary.BigEndian.AppendUint32(nil, uint32(len(text)))
	data = append(data, text...)
	var beside []byte
	if len(files) > 0 {
		var numbers []int
		for _, f := range files {
			numbers = append(numbers, int(f.Fd()))
		}
		beside = unix.UnixRights(numbers...)
	}
	n, _, err := c.WriteMsgUnix(data, beside, nil)
	if err == nil && n < len(data) {
		_, err = c.Write(data[n:])
	}
	return err
}

// receive reads a message. The caller closes the files, also after an error.
func receive(c *net.UnixConn, message any) (files []*os.File, err error) {
	head := make([]byte, 4)
	beside := make([]byte, unix.CmsgSpace(4*mostFiles))
	n, besides, flags, _, err := c.ReadMsgUnix(head, beside)
	if besides > 0 {
		files = received(beside[:besides])
	}
	if err != nil {
		return files, err
	}
	if n == 0 {
		return files, io.EOF
	}
	if flags&unix.MSG_CTRUNC != 0 {
		return files, errors.New("read message: descriptors are missing")
	}
	if _, err := io.ReadFull(c, head[n:]); err != nil {
		return files, io.ErrUnexpectedEOF
	}
	size := binary.BigEndian.Uint32(head)
	if size > mostMessage {
		return files, fmt.Errorf("read message: %d bytes (at most %d)", size, mostMessage)
	}
	text, err := io.ReadAll(io.LimitReader(c, int64(size)))
	if err != nil {
		return files, err
	}
	if len(text) < int(size) {
		return files, io.ErrUnexpectedEOF
	}
	return files, json.Unmarshal(text, message)
}

func received(beside []byte) (files []*os.File) {
	messages, _ := syscall.ParseSocketControlMessage(beside)
	for i := range messages {
		numbers, _ := syscall.ParseUnixRights(&messages[i])
		for _, fd := range numbers {
			files = append(files, os.NewFile(uintptr(fd), "received"))
		}
	}
	return files
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

// request is the message of a caller.
type request struct {
	Protocol    int      `json:"protocol"`
	Ask         string   `json:"ask"` // start or status
	Argv        [][]byte `json:"argv"`
	Executable  string   `json:"executable"`
	Environment [][]byte `json:"environment"`
	Descriptors []int    `json:"descriptors"`
	Like        int      `json:"like"`
	Spawned     bool     `json:"spawned"`   // for a process that an engine spawns with multiprocessing
	Arguments   [][]byte `json:"arguments"` // sys.argv of that process
}

// answer is the pool's answer.
type answer struct {
	Pid         int      `json:"pid,omitempty"`
	Engine      string   `json:"engine,omitempty"`
	Differences []string `json:"differences,omitempty"`
	Error       string   `json:"error,omitempty"`
	Status      *Status  `json:"status,omitempty"`
}

// job lists the modules that a process has to import.
type job struct {
	Modules   []string `json:"modules"`
	Arguments [][]byte `json:"arguments"`
}

// handover makes a waiting process the caller's.
type handover struct {
	Interpreter [][]byte   `json:"interpreter"` // with the interpreter's options
	Argv        [][]byte   `json:"argv"`        // the arguments after these
	Environment [][]byte   `json:"environment"`
	Descriptors []int      `json:"descriptors"`
	Umask       int        `json:"umask"`
	Limits      [][3]int64 `json:"limits"`
	Mask        []int      `json:"mask"`
	Ignored     []int      `json:"ignored"`
	OOMScoreAdj int        `json:"oom_score_adj"`
	Spawned     string     `json:"spawned"` // the socket, if the pool has processes for the engine's children
}

// told is an answer of a process.
type told struct {
	Ready   *facts `json:"ready"`
	Applied bool   `json:"applied"`
	Failed  string `json:"failed"`
}

// facts are the inputs on which a process's imports depend, and the state that they have left.
type facts struct {
	Pid         int                `json:"pid"`
	Reads       map[string]*[]byte `json:"reads"` // variables; null: it was not set
	Whole       bool               `json:"whole"` // the whole environment was read
	Folder      bool               `json:"folder"`
	Arguments   bool               `json:"arguments"`
	Files       []stamp            `json:"files"`
	Options     []string           `json:"options"` // options of a process that it spawns
	Names       []string           `json:"names"`   // of modules, up to the first dot
	Descriptors []int              `json:"descriptors"`
	Threads     int                `json:"threads"`
}
