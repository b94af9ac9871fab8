package main

// The container image has no system certificates. If the system has none, this package supplies Mozilla's.
import _ "golang.org/x/crypto/x509roots/fallback"
