package main

import "context"

func archives(context.Context, *attacker) error    { return nil }
func registry(context.Context, *attacker) error    { return nil }
func environment(context.Context, *attacker) error { return nil }
func kills(context.Context, *attacker) error       { return nil }
func disks(context.Context, *attacker) error       { return nil }
