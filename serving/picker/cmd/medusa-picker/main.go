// Command medusa-picker picks endpoints for Envoy: see docs/gateway.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"

	"medusa/internal/private"
	"medusa/serving/dispatch"
	"medusa/serving/picker/server"
	"medusa/serving/picker/settings"
)

func main() {
	var from source
	flag.StringVar(&from.file, "endpoints", "", "file with the endpoints; it is read again when it changes")
	flag.StringVar(&from.pool, "pool", "", "InferencePool of this cluster, as NAMESPACE/NAME; of several pickers one is active")
	decisions := flag.String("decisions", "", "write each decision to this file, for medusa simulate --replay")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: medusa-picker --endpoints FILE | --pool NAMESPACE/NAME SETTINGS")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 1 || (from.file == "") == (from.pool == "") {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, flag.Arg(0), from, *decisions); err != nil {
		fmt.Fprintf(os.Stderr, "medusa-picker: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, path string, from source, decisions string) (err error) {
	s, err := settings.Load(path)
	if err != nil {
		return err
	}
	var log *dispatch.Log
	if decisions != "" {
		f, err := private.Create(decisions)
		if err != nil {
			return fmt.Errorf("write decision log: %w", err)
		}
		disk := dispatch.NewDisk(f, func(err error) { fmt.Fprintf(os.Stderr, "medusa-picker: write decision log: %v (it ends here)\n", err) })
		log = dispatch.NewLog(disk)
		defer func() { err = errors.Join(err, log.Close(), disk.Close(), f.Close()) }()
	}
	p, err := server.New(s, os.Stderr, log)
	if err != nil {
		return err
	}
	envoy, err := server.Listen(s)
	if err != nil {
		return fmt.Errorf("listen for Envoy: %w", err)
	}
	admin, err := net.Listen("tcp", s.Admin)
	if err != nil {
		return fmt.Errorf("listen for metrics: %w", err)
	}
	fmt.Fprintf(os.Stderr, "medusa-picker: picking for Envoy at %s, metrics at http://%s\n", envoy.Addr(), admin.Addr())
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	followed := make(chan error, 1)
	go func() {
		defer stop() // a picker is useless if it cannot follow endpoints
		followed <- from.follow(ctx, p)
	}()
	err = p.Serve(ctx, envoy, admin)
	stop()
	return errors.Join(err, <-followed)
}
