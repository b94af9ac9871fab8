// Command stub is a stubengine as a process.
package main

import (
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"medusa/test/stubengine"
)

func main() {
	var s stubengine.Stub
	listen := flag.String("listen", "127.0.0.1:0", "address")
	flag.StringVar(&s.Model, "model", "stub", "name of the model")
	flag.DurationVar(&s.Load, "load", 0, "time of a start")
	flag.DurationVar(&s.WakeUp, "wake", 0, "time of a wake-up")
	flag.DurationVar(&s.Service, "service", 0, "time of an answer")
	flag.IntVar(&s.Pieces, "pieces", 8, "pieces of a stream")
	flag.IntVar(&s.Crash, "crash", 0, "end at the request of this number")
	flag.BoolVar(&s.Drowsy, "drowsy", false, "never wake from sleep")
	broken := flag.String("broken", "", "mute: accept connections and answer nothing; garbage: answer what is no HTTP")
	flag.Parse()
	time.Sleep(s.Load)
	l, err := net.Listen("tcp", *listen)
	if err == nil {
		fmt.Fprintf(os.Stderr, "serving %s on http://%s\n", s.Model, l.Addr())
		switch *broken {
		case "mute":
			err = http.Serve(l, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
		case "garbage":
			err = http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { stubengine.Garble(w) }))
		default:
			err = http.Serve(l, stubengine.New(s).Handler(func() { os.Exit(7) }))
		}
	}
	fmt.Fprintf(os.Stderr, "stub: %v\n", err)
	os.Exit(1)
}
