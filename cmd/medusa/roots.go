package main

// The container image has no certificates of a system. Where there are none, these of Mozilla's programme count.
import _ "golang.org/x/crypto/x509roots/fallback"
